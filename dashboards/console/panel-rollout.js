/** The rollout: where it stands, why, what comes next, what the evidence says, what can be done. */

import { Badge, Empty, Panel, html, useState } from "./view.js";
import { Actions, Ask } from "./actions.js";
import { goOn } from "./attention.js";
import { Stepper } from "./stepper.js";
import { VERDICTS, Verdicts } from "./verdicts.js";
import { clock, digest, duration, share, words } from "./format.js";

const BEGIN = `'release="draft=fixed length.max=4"' plan=quick gates=rough`;
const NUM_MOVES = 8;

export function Rollout({ snapshot, order }) {
  const { rollout, past } = snapshot;
  const [asked, setAsked] = useState(null);
  return html`
    <${Panel} id="rollout" title="Rollout" kind="full" aside=${rollout && html`<code>${rollout.rollout_id}</code>`}>
      ${rollout
        ? html`<${Told} rollout=${rollout} now_s=${snapshot.at_s} onAsk=${setAsked} />`
        : html`<${Empty} command="${goOn(snapshot.service)} ${BEGIN}">No release is being tried beside stable. Begin a rollout:</${Empty}>`}
      ${past.length > 0 && html`<${PastOnes} past=${past} now_s=${snapshot.at_s} />`}
      ${asked && html`<${Ask} key="${asked.verb} ${asked.rollout.rollout_id}" ...${asked} current=${rollout} service=${snapshot.service} order=${order} onClose=${() => setAsked(null)} />`}
    </${Panel}>`;
}

function Told({ rollout, now_s, onAsk }) {
  return html`
    <p class="lead"><b>${rollout.candidate}</b> <code>${digest(rollout.candidate_fingerprint)}</code> beside <b>${rollout.stable}</b> <code>${digest(rollout.stable_fingerprint)}</code></p>
    <${Stepper} rollout=${rollout} />
    <div class="rollout-body">
      <div>
        <${Place} rollout=${rollout} now_s=${now_s} />
        ${!rollout.is_over && html`<${Actions} rollout=${rollout} onAsk=${onAsk} />`}
      </div>
      <div>
        <h3>Moves</h3>
        <${Moves} moves=${rollout.moves} now_s=${now_s} />
      </div>
    </div>
    <h3>Verdicts <${Overall} rollout=${rollout} /></h3>
    ${rollout.findings.length
      ? html`<${Verdicts} findings=${rollout.findings} />`
      : html`<p class="aside">Nothing was measured in this step yet.</p>`}`;
}

function Place({ rollout, now_s }) {
  const { is_over, elapsed_s } = rollout;
  return html`
    <dl class="place">
      <dt>Stands at</dt>
      <dd><b>${placeOf(rollout)}</b>${rollout.is_paused && html` <${Badge} level="wait">paused</${Badge}>`}${rollout.has_stalled && !is_over && html` <${Badge} level="wait">stalled</${Badge}>`}
        <span class="aside"> ${is_over ? `${duration(elapsed_s)} ago` : `for ${duration(elapsed_s)}`}, begun ${clock(rollout.began_s, now_s)}</span><br />${rollout.sentence}</dd>
      ${rollout.reason && html`<dt>Why</dt><dd>${rollout.reason}</dd>`}
      ${rollout.waits && !is_over && html`<dt>Waits for</dt><dd>an operator: ${rollout.waits}</dd>`}
      ${rollout.next.length > 0 && html`<dt>Next</dt><dd>${rollout.next.map((text) => html`<div>${text}</div>`)}</dd>`}
      ${!is_over && html`<dt>Share</dt><dd>wanted ${share(rollout.weight)}, achieved ${share(rollout.achieved_ratio, 1)}</dd>`}
      ${rollout.criteria && html`<dt>Criteria</dt><dd><code title=${rollout.criteria}>${digest(rollout.criteria)}</code></dd>`}
    </dl>`;
}

function placeOf({ phase, step, weights }) {
  return phase === "canary" ? `canary, step ${step + 1} of ${weights.length}` : words(phase);
}

function Overall({ rollout }) {
  if (!rollout.findings.length) return null;
  const { level, word } = VERDICTS[rollout.verdict];
  return html`<${Badge} level=${level}>${word}</${Badge}> <span class="aside">${rollout.verdict_reason}</span>`;
}

/** Newest first. */
function Moves({ moves, now_s }) {
  if (!moves.length) return html`<p class="aside">None yet.</p>`;
  return html`
    <ol class="moves">
      ${moves.slice(-NUM_MOVES).reverse().map((move) => html`
        <li key="${move.at_s} ${move.phase}"><time>${clock(move.at_s, now_s)}</time>
          <span><b>${words(move.phase)}</b>${move.phase === "canary" && `, ${share(move.weight)}`}: ${move.reason}${move.who && html` <span class="aside">by ${move.who}</span>`}</span></li>`)}
    </ol>`;
}

function PastOnes({ past, now_s }) {
  return html`
    <details class="past">
      <summary>Earlier rollouts (${past.length})</summary>
      <ol class="moves">
        ${past.map((one) => html`<li key=${one.rollout_id}><time>${clock(one.began_s, now_s)}</time>
          <span><b>${one.candidate}</b> <code>${digest(one.candidate_fingerprint)}</code> ${words(one.phase)}: ${one.reason}</span></li>`)}
      </ol>
    </details>`;
}
