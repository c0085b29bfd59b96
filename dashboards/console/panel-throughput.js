/** Tokens per busy second of each release, beside what plain decoding would give. */

import { Chart, Empty, Panel, html } from "./view.js";
import { lines } from "./charts.js";
import { binned, busyRate, line, plainRate, total } from "./figures.js";
import { clock, number, rate } from "./format.js";
import { byArm } from "./arms.js";

const WIDTH_S = 10; // each point of a line is of so many seconds
const ROW_S = 60; // of the table
const LEAST_S = 120; // that a chart shows

export function Throughput({ snapshot, history }) {
  const drawn = byArm(snapshot, history);
  const series = drawn.flatMap((one) => seriesOf(one, snapshot));
  const minutes = number(snapshot.keep_s / 60);
  return html`
    <${Panel} id="throughput" title="Throughput" aside="tokens per busy second of an engine, ${minutes} min">
      ${series.some(hasValue)
        ? html`
          <${Legend} series=${series} />
          <${Chart} version=${snapshot.at_s} summary=${summary(series, minutes)} caption="Tokens per busy second, by minute"
            draw=${(width) => lines({ width, series, ...spanOf(snapshot, drawn), label: "↑ tokens/s", tell })} table=${() => tableOf(drawn, snapshot)} />`
        : html`<${Empty}>Nothing was decoded in the last ${minutes} minutes.</${Empty}>`}
    </${Panel}>`;
}

function seriesOf({ release, points, colour, plainColour }, { period_s }) {
  const told = { width_s: WIDTH_S, period_s };
  return [
    { name: release, colour, isDashed: false, points: line(points, busyRate, told) },
    { name: `plain decoding of ${release}’s tokens (estimate)`, colour: plainColour, isDashed: true, points: line(points, plainRate, told) },
  ];
}

function Legend({ series }) {
  return html`
    <ul class="legend">
      ${series.map(({ name, colour, isDashed, points }) => html`
        <li><svg width="22" height="8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" stroke=${colour}
          stroke-width=${isDashed ? 1.5 : 2.5} stroke-dasharray=${isDashed ? "4 3" : "none"} /></svg>
          ${name} <b>${rate(points.at(-1)?.value)}</b></li>`)}
    </ul>`;
}

const hasValue = ({ points }) => points.some((point) => point.value !== null);
const tell = (row) => `${row.name}\n${rate(row.value)} tokens/s\n${clock(row.at_s)}`;

/** What the charts show: all that is kept, less where the server is younger. */
export function spanOf({ at_s, keep_s }, drawn) {
  const first_s = Math.min(...drawn.map(({ points }) => points[0].at_s - points[0].span_s));
  return { from_s: Math.max(at_s - keep_s, Math.min(first_s, at_s - LEAST_S)), to_s: at_s };
}

function summary(series, minutes) {
  const told = series.filter(hasValue).map(({ name, points }) => {
    const values = points.map((point) => point.value).filter((value) => value !== null);
    return `${name}: ${rate(Math.min(...values))} to ${rate(Math.max(...values))}, last ${rate(values.at(-1))}`;
  });
  return `Line chart of tokens per busy second over ${minutes} minutes. ${told.join(". ")}.`;
}

function tableOf(drawn, { at_s }) {
  const rows = drawn.flatMap(({ release, points }) =>
    [...binned(points, ROW_S)].map(([from_s, inside]) => ({ release, from_s, sums: total(inside) })),
  );
  rows.sort((one, other) => other.from_s - one.from_s);
  return {
    head: ["From", "Release", "Tokens/s", "Plain (estimate)", "Tokens"],
    rows: rows.map(({ release, from_s, sums }) => [clock(from_s, at_s), release, rate(busyRate(sums)), rate(plainRate(sums)), number(sums.emitted)]),
  };
}
