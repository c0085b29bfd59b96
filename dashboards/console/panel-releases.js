/** The releases that serve: their share of the traffic, and whether their guard lets them draft. */

import { Badge, Empty, Panel, html } from "./view.js";
import { armOf } from "./arms.js";
import { clock, counted, digest, duration, share } from "./format.js";

const HEALTH = { ready: "good", failed: "bad" };
const GUARDS = {
  closed: { level: "good", word: "guard closed" },
  open: { level: "bad", word: "guard open" },
  probing: { level: "wait", word: "guard probing" },
};

export function Releases({ snapshot }) {
  return html`
    <${Panel} id="releases" title="Releases and arms">
      ${snapshot.releases.length
        ? html`<ul class="cards">${snapshot.releases.map((release) => html`<${Release} key=${release.name} release=${release} snapshot=${snapshot} />`)}</ul>`
        : html`<${Empty}>No release is deployed yet.</${Empty}>`}
    </${Panel}>`;
}

function Release({ release, snapshot }) {
  const arm = snapshot.arms.find((one) => one.release === release.name);
  return html`
    <li class="card ${armOf(snapshot, release.name)}">
      <h3>${release.name} <span class="aside">${arm ? arm.arm : "no share"} · <code title=${release.fingerprint}>${digest(release.fingerprint)}</code> · ${counted(release.num_replicas, "replica")}</span></h3>
      ${release.health !== "ready" && html`<p><${Badge} level=${HEALTH[release.health] ?? "wait"}>${release.health}</${Badge}> ${release.message}</p>`}
      ${arm && html`<${Share} arm=${arm} />`}
      <${Guard} release=${release} now_s=${snapshot.at_s} />
    </li>`;
}

/** Wanted and achieved share on one bar. */
function Share({ arm }) {
  const achieved = arm.achieved_ratio === null ? "no requests yet" : `${share(arm.achieved_ratio, 1)} of ${counted(arm.num_requests, "request")}`;
  return html`
    <div class="share">
      <svg class="share-bar" width="100%" height="16" aria-hidden="true">
        <rect class="track" x="0" y="5" width="100%" height="6" rx="3" />
        ${arm.achieved_ratio !== null && html`<rect class="achieved" x="0" y="5" width=${percent(arm.achieved_ratio)} height="6" rx="3" />`}
        <line class="wanted" x1=${percent(arm.weight)} x2=${percent(arm.weight)} y1="0" y2="16" />
      </svg>
      <p><span>wanted <b>${share(arm.weight)}</b></span> <span>achieved <b>${achieved}</b></span></p>
    </div>`;
}

const percent = (value) => `${100 * Math.min(1, Math.max(0, value))}%`;

function Guard({ release, now_s }) {
  const guard = GUARDS[release.guard_phase];
  if (!guard) return html`<p class="aside">No guard watches it.</p>`;
  return html`
    <div class="guard">
      <p><${Badge} level=${guard.level}>${guard.word}</${Badge}> ${release.guard_sentence}</p>
      ${release.guard_reason && html`<p class="aside">${since(release, now_s)}${release.guard_reason}</p>`}
      ${release.guard_phase === "open" && html`<p>Tries again in <b>${duration(leftOf(release, now_s))}</b>.</p>`}
    </div>`;
}

const since = ({ guard_since_s }, now_s) => (guard_since_s ? `since ${clock(guard_since_s, now_s)}: ` : "");
const leftOf = ({ guard_since_s, guard_wait_s }, now_s) => (guard_since_s ? guard_since_s + guard_wait_s - now_s : guard_wait_s);
