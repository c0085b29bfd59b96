/** The figures of the last seconds, in large. */

import { Empty, Panel, html } from "./view.js";
import { acceptance, draftingShare, meanDraftLength, ratio, recent, speedup, total } from "./figures.js";
import { number, rate, share, times } from "./format.js";

const RATE_S = 10; // tokens per second are those of so many seconds
const RATIO_S = 30; // ratios need more of them to be steady

export function Now({ snapshot, history }) {
  const all = [...history.points.values()];
  const sums = total(all.flatMap((points) => recent(points, snapshot.at_s, RATIO_S)));
  const rows = (name) => snapshot.replicas.reduce((sum, replica) => sum + replica[name], 0);
  return html`
    <${Panel} id="now" title="Now" kind="full" aside="the last ${RATIO_S} s, all releases">
      <dl class="tiles">
        <${Tile} name="Tokens per second" value=${rate(perSecond(all, snapshot.at_s))} note="that clients received, last ${RATE_S} s" />
        <${Tile} name="Against plain decoding" value=${times(speedup(sums))} note="by the engines’ cost model" kind="chief" />
        <${Tile} name="Acceptance" value=${share(acceptance(sums))} note="of the drafted tokens tested" />
        <${Tile} name="Draft length" value=${number(meanDraftLength(sums), 1)} note=${drafting(sums)} />
        <${Tile} name="In flight" value=${number(snapshot.service.num_calls)} note="${number(rows("num_running"))} rows run, ${number(rows("num_waiting"))} wait" />
      </dl>
      ${snapshot.replicas.length > 0 && !all.some(hasWorked) && html`<${NoTraffic} snapshot=${snapshot} />`}
    </${Panel}>`;
}

function Tile({ name, value, note, kind = "" }) {
  return html`<div class="tile ${kind}"><dt>${name}</dt><dd><span class="figure">${value}</span><span class="note">${note}</span></dd></div>`;
}

function NoTraffic({ snapshot }) {
  return html`<${Empty} command=${ask(snapshot.service)}>No request was decoded in the last ${number(snapshot.keep_s / 60)} minutes. Send one:</${Empty}>`;
}

/** A request that works when it is pasted, unless the service wants a key for it. */
function ask({ url, model }) {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Count to twenty." }] }).replaceAll("'", "\\u0027");
  return `curl ${url}/v1/chat/completions -H 'content-type: application/json' -d '${body}'`;
}

function perSecond(all, now_s) {
  const rates = all.map((points) => total(recent(points, now_s, RATE_S))).map((sums) => ratio(sums.emitted, sums.span_s));
  const known = rates.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

function drafting(sums) {
  const drafts = draftingShare(sums);
  return drafts === null ? "where rounds draft" : `in the ${share(drafts)} of rounds that draft`;
}

const hasWorked = (points) => points.some((point) => point.emitted > 0);
