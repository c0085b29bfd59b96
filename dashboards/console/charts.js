/**
 * Drawings over time and by position, as SVG elements. The one module that knows the charting
 * library (Observable Plot on d3, classic scripts of index.html).
 *
 * Colours are CSS custom properties, so a drawing follows light and dark by itself.
 */

const HEIGHT = 220;
const FEW = 50; // tested tokens below which a position's share says little

const date = (at_s) => new Date(1000 * at_s);
const { Plot } = globalThis;

const FRAME = { height: HEIGHT, marginLeft: 40, marginRight: 8, marginTop: 18, marginBottom: 26, style: { fontSize: "11px" } };

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const overTime = (width, from_s, to_s) => ({
  type: "time",
  domain: [date(from_s), date(to_s)],
  label: null,
  ticks: minutes(from_s, to_s, Math.max(2, Math.floor(width / 90))),
  tickFormat: (at) => hours.format(at),
});

/** Whole minutes between two times, at most about `most` of them. */
function minutes(from_s, to_s, most) {
  const step_s = 60 * ([1, 2, 5, 10, 15, 30].find((step) => (to_s - from_s) / (60 * step) <= most) ?? 60);
  const first_s = Math.ceil(from_s / step_s) * step_s;
  return Array.from({ length: Math.max(0, Math.floor((to_s - first_s) / step_s) + 1) }, (_, index) => date(first_s + index * step_s));
}

/**
 * Lines over time; null values are gaps.
 *
 * @param {{name: string, colour: string, isDashed: boolean, points: {at_s: number, value: number | null}[]}[]} series
 */
export function lines({ width, from_s, to_s, series, label, tell }) {
  const rows = series.flatMap(({ name, points }) => points.filter((point) => point.value !== null).map((point) => ({ name, ...point })));
  return Plot.plot({
    ...FRAME,
    width,
    x: overTime(width, from_s, to_s),
    y: { zero: true, nice: true, grid: true, ticks: 5, label },
    marks: [
      Plot.ruleY([0], { stroke: "var(--line)" }),
      ...series.map(({ points, colour, isDashed }) =>
        Plot.line(points, {
          x: (point) => date(point.at_s),
          y: "value",
          stroke: colour,
          strokeWidth: isDashed ? 1.5 : 2,
          strokeDasharray: isDashed ? "4 3" : undefined,
          curve: "linear",
        }),
      ),
      Plot.tip(rows, Plot.pointer({ x: (row) => date(row.at_s), y: "value", title: tell })),
    ],
  });
}

/**
 * Shares of rounds by draft length over time: the darker, the more. Length 0 is plain decoding.
 *
 * @param {{from_s: number, to_s: number, length: number, share: number}[]} cells
 */
export function lengths({ width, from_s, to_s, cells, tell }) {
  const most = Math.max(4, ...cells.map((cell) => cell.length));
  const seen = cells.filter((cell) => cell.to_s > from_s && cell.from_s < to_s);
  return Plot.plot({
    ...FRAME,
    width,
    x: overTime(width, from_s, to_s),
    y: { domain: [-0.5, most + 0.5], ticks: whole(most), tickFormat: (length) => `${length}`, label: "↑ draft length", tickSize: 0 },
    opacity: { type: "identity" },
    marks: [
      Plot.rect(seen, {
        x1: (cell) => date(Math.max(from_s, cell.from_s)),
        x2: (cell) => date(Math.min(to_s, cell.to_s)),
        y1: (cell) => cell.length - 0.5,
        y2: (cell) => cell.length + 0.5,
        fill: (cell) => (cell.length ? "var(--spec)" : "var(--plain)"),
        fillOpacity: (cell) => shade(cell.share),
        insetTop: 0.5,
        insetBottom: 0.5,
      }),
      Plot.tip(seen, Plot.pointer({ x: (cell) => date((cell.from_s + cell.to_s) / 2), y: "length", title: tell })),
    ],
    color: { type: "identity" },
  });
}

/** Small shares must be seen beside large ones. */
const shade = (share) => 0.08 + 0.92 * Math.sqrt(share);

function whole(most) {
  const step = most > 8 ? 2 : 1;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

/**
 * Acceptance by draft position; faint where few tokens were tested.
 *
 * @param {{position: number, share: number, evaluated: number}[]} bars
 */
export function positions({ width, bars, write, count }) {
  const room = (width - 48) / Math.max(bars.length, 4);
  return Plot.plot({
    ...FRAME,
    marginTop: 30,
    marginBottom: 44,
    width,
    x: { type: "band", domain: bars.map((bar) => bar.position), label: null, tickSize: 0, padding: 0.2 },
    y: { domain: [0, 1], grid: true, ticks: 5, tickFormat: (value) => `${Math.round(100 * value)}`, label: "↑ accepted, %" },
    opacity: { type: "identity" },
    marks: [
      Plot.barY(bars, { x: "position", y: "share", fill: "var(--spec)", fillOpacity: (bar) => (bar.evaluated < FEW ? 0.35 : 1) }),
      Plot.ruleY([0], { stroke: "var(--line)" }),
      room > 20 && Plot.text(bars, { x: "position", y: "share", text: write, dy: -7, fill: "currentColor" }),
      room > 30 && Plot.text(bars, { x: "position", text: count, frameAnchor: "bottom", dy: 32, fill: "var(--faint)" }),
    ],
  });
}
