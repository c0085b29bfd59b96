/** The phases of a rollout in their order, and the one it is in. */

import { html } from "./view.js";
import { number, words } from "./format.js";

const GOOD = ["pending", "deploying", "warming", "shadow", "canary", "confirming", "promoting", "keeping", "promoted"];

export function Stepper({ rollout }) {
  const phases = phasesOf(rollout);
  const at = phases.indexOf(rollout.phase);
  return html`
    <ol class="stepper" aria-label="Phases of the rollout">
      ${phases.map((phase, index) => html`
        <li key=${phase} class=${classOf(phase, index, at, rollout)} aria-current=${index === at ? "step" : undefined}>
          <span class="dot" aria-hidden="true"></span>
          <span>${words(phase)}${phase === "canary" && html`<${Steps} rollout=${rollout} />`}</span>
          ${index < at && html`<span class="unseen">, done</span>`}
        </li>`)}
    </ol>`;
}

/** Of one that ended badly: the phases it had, then the end. */
function phasesOf(rollout) {
  if (GOOD.includes(rollout.phase)) return GOOD;
  const had = GOOD.filter((phase) => phase === "pending" || rollout.moves.some((move) => move.phase === phase));
  return [...had, rollout.phase];
}

function classOf(phase, index, at, rollout) {
  if (index < at) return "done";
  if (index > at) return "to-come";
  const isBad = rollout.is_over && phase !== "promoted";
  return isBad ? "now bad" : "now";
}

/** The shares of the canary's steps. */
function Steps({ rollout }) {
  const isNow = rollout.phase === "canary";
  return html` <span class="aside">${rollout.weights.map((weight, step) => html`${step > 0 && " → "}<span class=${isNow && step === rollout.step ? "step-now" : ""}>${number(100 * weight)}</span>`)} %</span>`;
}
