/** How long the drafts are, over time. */

import { Chart, Empty, Panel, html } from "./view.js";
import { lengths } from "./charts.js";
import { cells, draftingShare, meanDraftLength, total } from "./figures.js";
import { clock, counted, number, share } from "./format.js";
import { byArm } from "./arms.js";
import { useChoice } from "./choice.js";
import { spanOf } from "./panel-throughput.js";

const NUM_BINS = 90;
const ROW_S = 60; // of the table

export function Lengths({ snapshot, history }) {
  const drawn = byArm(snapshot, history);
  const [chosen, choice] = useChoice(drawn, "draft lengths");
  const points = chosen?.points ?? [];
  const bin_s = Math.max(2 * snapshot.period_s, snapshot.keep_s / NUM_BINS);
  const told = cells(points, { bin_s });
  return html`
    <${Panel} id="lengths" title="Draft lengths" aside=${choice || "share of rounds"}>
      ${told.length
        ? html`
          <${Legend} />
          <${Chart} version="${chosen.release} ${points.at(-1).at_s}" summary=${summary(points)} caption="Rounds by draft length, by minute"
            draw=${(width) => lengths({ width, cells: told, ...spanOf(snapshot, drawn), tell })} table=${() => tableOf(points, snapshot)} />`
        : html`<${Empty}>No round was decoded yet.</${Empty}>`}
    </${Panel}>`;
}

function Legend() {
  return html`
    <ul class="legend">
      <li><span class="swatch plain" aria-hidden="true"></span>0: plain</li>
      <li><span class="swatch ramp" aria-hidden="true"></span>drafted tokens a round; darker: more of the rounds</li>
    </ul>`;
}

const tell = (cell) => `${cell.length ? `draft length ${cell.length}` : "plain"}\n${share(cell.share)} of ${clock(cell.from_s)}–${clock(cell.to_s)}\n${counted(cell.rounds, "round")}`;

function summary(points) {
  const sums = total(points);
  return `Heat map of rounds by draft length over time. ${share(draftingShare(sums))} of rounds draft, ${number(meanDraftLength(sums), 1)} tokens on average.`;
}

function tableOf(points, { at_s }) {
  const told = cells(points, { bin_s: ROW_S });
  const most = Math.max(...told.map((cell) => cell.length));
  const columns = Array.from({ length: most + 1 }, (_, length) => length);
  const minutes = [...new Set(told.map((cell) => cell.from_s))].reverse();
  const shareOf = (from_s, length) => told.find((cell) => cell.from_s === from_s && cell.length === length)?.share ?? 0;
  return {
    head: ["From", ...columns.map((length) => (length ? `${length}` : "0 (plain)"))],
    rows: minutes.map((from_s) => [clock(from_s, at_s), ...columns.map((length) => share(shareOf(from_s, length)))]),
  };
}
