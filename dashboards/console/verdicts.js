/** What the evidence says about each figure: an interval beside its floor, and the same in numbers. */

import { Badge, html } from "./view.js";
import { evenOf, isFloor, kindOf, scaleOf, written } from "./figure-kinds.js";
import { UNKNOWN, number, words } from "./format.js";

const KINDS = ["ratio", "difference", "count"];
export const VERDICTS = {
  pass: { level: "good", word: "pass" },
  fail: { level: "bad", word: "fail" },
  inconclusive: { level: "still", word: "inconclusive" },
};
const TITLES = {
  ratio: "Ratios to stable’s figure",
  difference: "Difference to stable’s share",
  count: "Counts",
};

export function Verdicts({ findings }) {
  const groups = KINDS.map((kind) => [kind, findings.filter((one) => kindOf(one.figure) === kind)]);
  return html`
    <div class="scroll" role="group" tabindex="0" aria-label="Verdict of each figure">
      <table class="verdicts stacked">
        <caption class="unseen">Verdict of each figure, with its interval and the bound that is allowed</caption>
        <thead><tr>
          <th scope="col">Figure</th><th scope="col">Verdict</th><th scope="col" class="wide">Beside what is allowed</th>
          <th scope="col" class="num">Estimate</th><th scope="col" class="num">Interval</th><th scope="col" class="num">Allowed</th><th scope="col" class="num">Requests</th>
        </tr></thead>
        ${groups.filter(([, told]) => told.length).map(([kind, told]) => html`<${Group} key=${kind} kind=${kind} findings=${told} />`)}
      </table>
    </div>`;
}

function Group({ kind, findings }) {
  const scale = scaleOf(kind, findings);
  return html`
    <tbody>
      <tr class="axis"><th scope="rowgroup" colspan="2">${TITLES[kind]}</th><td class="wide"><${Ticks} kind=${kind} scale=${scale} /></td><td colspan="4"></td></tr>
      ${findings.map((found) => html`<${Row} key="${found.figure} ${found.group}" found=${found} kind=${kind} scale=${scale} />`)}
    </tbody>`;
}

function Row({ found, kind, scale }) {
  const { level, word } = VERDICTS[found.verdict];
  const side = isFloor(found.figure) ? "≥" : "≤";
  return html`
    <tr title=${found.reason}>
      <th scope="row">${words(found.figure)} ${found.group && html`<span class="aside">${found.group}</span>`}</th>
      <td data-head="Verdict"><${Badge} level=${level}>${word}</${Badge}>${!found.counts && html` <span class="aside">told only</span>`}</td>
      <td class="wide"><${Interval} found=${found} kind=${kind} scale=${scale} level=${level} /></td>
      <td data-head="Estimate" class="num"><b>${written(kind, found.estimate)}</b></td>
      <td data-head="Interval" class="num">${rangeOf(found, kind)}</td>
      <td data-head="Allowed" class="num">${side} ${written(kind, found.bound)}</td>
      <td data-head="Requests" class="num">${number(found.num_candidate)} <span class="aside">beside ${number(found.num_stable)}</span></td>
    </tr>`;
}

function rangeOf({ low, high }, kind) {
  if (low === null && high === null) return UNKNOWN;
  return `${written(kind, low).replace(/ [×%]$/, "")} to ${written(kind, high)}`;
}

function Ticks({ kind, scale }) {
  return html`<svg class="ticks" width="100%" height="14" aria-hidden="true">
    ${scale.ticks.map((tick) => html`<text x="${scale.at(tick)}%" y="11" text-anchor="middle">${kind === "ratio" ? `${tick}×` : written(kind, tick)}</text>`)}
  </svg>`;
}

/** The bar from low to high, the estimate by the verdict's shape, the bound, and what lies beyond. */
function Interval({ found, kind, scale, level }) {
  const at = (value) => `${scale.at(value)}%`;
  const bound = scale.at(found.bound);
  const beyond = isFloor(found.figure) ? [0, bound] : [bound, 100 - bound];
  return html`
    <svg class="interval" width="100%" height="24" aria-hidden="true">
      <rect class="beyond" x="${beyond[0]}%" width="${beyond[1]}%" y="2" height="20" />
      <line class="even" x1=${at(evenOf(kind))} x2=${at(evenOf(kind))} y1="0" y2="24" />
      ${found.low !== null && found.high !== null && html`<line class="bar ${level}" x1=${at(found.low)} x2=${at(found.high)} y1="12" y2="12" />`}
      <line class="bound" x1="${bound}%" x2="${bound}%" y1="0" y2="24" />
      ${found.estimate !== null && html`<svg x=${at(found.estimate)} y="12" overflow="visible"><${Dot} level=${level} /></svg>`}
    </svg>`;
}

function Dot({ level }) {
  if (level === "bad") return html`<path class="dot bad" d="M-5 0 0-5 5 0 0 5Z" />`;
  return html`<circle class="dot ${level}" r="4.5" />`;
}
