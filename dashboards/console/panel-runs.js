/** Where MLflow has what was recorded. */

import { Command, Empty, Panel, html } from "./view.js";

const MOST = 12;

export function Runs({ snapshot }) {
  const told = runsOf(snapshot).slice(0, MOST);
  const { url, open_command } = snapshot.runs;
  return html`
    <${Panel} id="runs" title="MLflow runs">
      ${told.length
        ? html`<ul class="runs">${told.map(({ what, run_id }) => html`<li key=${run_id}><span>${what}</span> <${Run} url=${url} run_id=${run_id} /></li>`)}</ul>`
        : html`<${Empty}>Nothing was recorded yet, or tracking is off.</${Empty}>`}
      ${!linked(url) && open_command && html`<p class="key">To look at them:</p><${Command} text=${open_command} />`}
    </${Panel}>`;
}

function Run({ url, run_id }) {
  if (!linked(url)) return html`<code>${run_id}</code>`;
  return html`<a href="${url.replace(/\/+$/, "")}/#/runs/${encodeURIComponent(run_id)}" rel="noreferrer" target="_blank">${run_id}</a>`;
}

/** Settings name it: nothing but a web address becomes a link. */
const linked = (url) => /^https?:\/\//.test(url);

function runsOf({ service, rollout, past, jobs }) {
  const told = [
    { what: "this server", run_id: service.run_id },
    { what: rollout && `rollout of ${rollout.candidate}`, run_id: rollout?.run_id },
    ...past.map(({ candidate, run_id }) => ({ what: `past rollout of ${candidate}`, run_id })),
    ...jobs.map(({ name, run_id }) => ({ what: `bulk job ${name}`, run_id })),
  ].filter(({ run_id }) => run_id);
  return told.filter(({ run_id }, at) => told.findIndex((other) => other.run_id === run_id) === at);
}
