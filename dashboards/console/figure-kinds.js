/**
 * What the findings of a rollout are about: in which unit, on which side the floor lies, and where
 * they stand on a scale that all of a kind share. Pure.
 */

import { number, share, times } from "./format.js";

const FLOORS = new Set(["tokens_per_s", "draft_acceptance_ratio", "tokens_per_round"]);

/** ratio: of the candidate's figure to stable's; difference: of shares; count. */
export function kindOf(figure) {
  if (figure === "failure_ratio") return "difference";
  return figure.startsWith("num_") ? "count" : "ratio";
}

/** Whether more is better: then the floor is the least that is allowed, else the most. */
export const isFloor = (figure) => FLOORS.has(figure);

/** No difference to stable. */
const EVEN = { ratio: 1, difference: 0, count: 0 };
export const evenOf = (kind) => EVEN[kind];

export function written(kind, value) {
  if (value === null) return number(null);
  if (kind === "ratio") return times(value);
  if (kind === "count") return number(value, Number.isInteger(value) ? 0 : 1);
  return `${value > 0 ? "+" : ""}${share(value, 1)}`.replace("-", "−");
}

/**
 * Where values of a kind lie, from 0 to 100, and the ticks below them. Ratios on a logarithm: half
 * is as far from one as double.
 *
 * @returns {{at: (value: number) => number, ticks: number[]}}
 */
export function scaleOf(kind, findings) {
  const told = findings.flatMap((one) => [one.bound, one.estimate, one.low, one.high]).filter((value) => value !== null && Number.isFinite(value));
  return kind === "ratio" ? logarithmic(told) : linear(kind, told);
}

function logarithmic(told) {
  const reach = Math.max(1.6, ...told.map((value) => (value > 0 ? Math.max(value, 1 / value) : 1)));
  const most = Math.min(4, reach * 1.08);
  const at = (value) => clamped(50 + (50 * Math.log(Math.max(value, 1e-9))) / Math.log(most));
  return { at, ticks: [0.25, 0.5, 0.75, 1, 1.33, 2, 4].filter((tick) => tick > 1 / most && tick < most) };
}

function linear(kind, told) {
  if (kind === "count") {
    const most = Math.max(1, ...told) * 1.1;
    return { at: (value) => clamped((100 * value) / most), ticks: [0] };
  }
  const most = Math.max(0.02, ...told.map(Math.abs)) * 1.08;
  const step = stepOf(most);
  return { at: (value) => clamped(50 + (50 * value) / most), ticks: [-step, 0, step] };
}

/** The largest of 1, 2, 5, 10, 20 … (times a power of ten) that is not above `most`. */
function stepOf(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].find((times) => times * power <= most) * power;
}

const clamped = (percent) => Math.min(100, Math.max(0, percent));
