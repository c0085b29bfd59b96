/** Bulk jobs: how far, how fast, until when. */

import { Badge, Empty, Panel, html } from "./view.js";
import { ratio } from "./figures.js";
import { clock, counted, duration, number, rate, share } from "./format.js";

const STATES = {
  running: { level: "good", word: "running" },
  stopped: { level: "wait", word: "stopped" },
  finished: { level: "still", word: "finished" },
  failed: { level: "bad", word: "failed" },
};

export function Jobs({ snapshot }) {
  return html`
    <${Panel} id="jobs" title="Bulk jobs">
      ${snapshot.jobs.length
        ? html`<ul class="cards">${snapshot.jobs.map((job) => html`<${Job} key=${job.job_dir} job=${job} now_s=${snapshot.at_s} />`)}</ul>`
        : html`<${Empty} command="python jobs/bulk.py input=my.jsonl job_dir=out/">No bulk job has run beside this server. Begin one:</${Empty}>`}
    </${Panel}>`;
}

function Job({ job, now_s }) {
  const state = STATES[job.state] ?? STATES.stopped;
  const ended = job.num_rows_done + job.num_rows_failed;
  return html`
    <li class="card">
      <h3 title=${job.job_dir}>${job.name} <${Badge} level=${state.level}>${state.word}</${Badge}></h3>
      <progress max=${Math.max(1, job.num_rows)} value=${ended} aria-label="Progress of ${job.name}"></progress>
      <p class="facts"><span><b>${share(ratio(ended, job.num_rows))}</b> ${number(ended)} of ${counted(job.num_rows, "row")}</span>${facts(job, now_s).map((text) => html`<span>${text}</span>`)}</p>
    </li>`;
}

function facts(job, now_s) {
  const isRunning = job.state === "running";
  const accepted = ratio(job.num_accepted_tokens, job.num_evaluated_tokens);
  return [
    job.num_rows_failed > 0 && html`<b class="bad">${number(job.num_rows_failed)} failed</b>`,
    isRunning && `${rate(job.tokens_per_s)} tokens/s`,
    accepted !== null && `acceptance ${share(accepted)}`,
    isRunning ? leftOf(job) : `since ${clock(job.at_s, now_s)}`,
    job.state === "stopped" && "the same command goes on from there",
  ].filter(Boolean);
}

const leftOf = ({ eta_s }) => (eta_s === null ? "time left not known yet" : `${duration(eta_s)} left`);
