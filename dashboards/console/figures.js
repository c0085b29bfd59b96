/**
 * Figures out of counters. Pure.
 *
 * Points are those of `outrider.console.snapshot.Point`: what the replicas of one release did in one
 * span. A ratio with nothing below it is null, which is shown as a dash and never as 0.
 */

const COUNTS = ["emitted", "drafted", "evaluated", "accepted", "num_rounds", "rounds_s", "plain_rounds_s", "span_s"];
const ARRAYS = ["rounds_by_draft_length", "position_evaluated", "position_accepted"];

/** @returns {number | null} */
export const ratio = (above, below) => (below > 0 ? above / below : null);

/** Counters of many points as one; arrays grow to the longest. */
export function total(points) {
  const sums = Object.fromEntries(COUNTS.map((name) => [name, 0]));
  for (const point of points) for (const name of COUNTS) sums[name] += point[name];
  for (const name of ARRAYS) sums[name] = added(points.map((point) => point[name]));
  return sums;
}

function added(arrays) {
  const sums = Array(Math.max(0, ...arrays.map((array) => array.length))).fill(0);
  for (const array of arrays) array.forEach((count, index) => (sums[index] += count));
  return sums;
}

const sumOf = (counts) => counts.reduce((sum, count) => sum + count, 0);

/** Those of the last `window_s` seconds before `now_s`. */
export const recent = (points, now_s, window_s) => points.filter((point) => point.at_s > now_s - window_s);

/** How many times faster than plain decoding of the same tokens, by the engines' cost models. */
export const speedup = (sums) => ratio(sums.plain_rounds_s, sums.rounds_s);

/** Tokens per second that an engine spends in rounds. */
export const busyRate = (sums) => ratio(sums.emitted, sums.rounds_s);

/** The same for plain decoding of these tokens. */
export const plainRate = (sums) => ratio(sums.emitted, sums.plain_rounds_s);

/** Accepted of those that were tested. */
export const acceptance = (sums) => ratio(sums.accepted, sums.evaluated);

/** Drafted tokens per round that drafted. */
export function meanDraftLength(sums) {
  const rounds = sums.rounds_by_draft_length;
  return ratio(sumOf(rounds.map((count, length) => count * length)), sumOf(rounds.slice(1)));
}

/** Rounds that drafted, of all. */
export function draftingShare(sums) {
  const rounds = sums.rounds_by_draft_length;
  const all = sumOf(rounds);
  return ratio(all - (rounds[0] ?? 0), all);
}

/**
 * A line over time: `figure` of the `width_s` seconds before each point. Where nothing is known, and
 * where points are missing, its value is null: a gap.
 *
 * @returns {{at_s: number, value: number | null}[]}
 */
export function line(points, figure, { width_s, period_s }) {
  const told = [];
  let first = 0;
  points.forEach((point, index) => {
    while (points[first].at_s <= point.at_s - width_s) first += 1;
    const before = points[index - 1];
    if (before && point.at_s - point.span_s - before.at_s > period_s / 2) {
      told.push({ at_s: before.at_s + period_s / 2, value: null });
      first = index;
    }
    told.push({ at_s: point.at_s, value: point.num_rounds > 0 ? figure(total(points.slice(first, index + 1))) : null });
  });
  return told;
}

/**
 * Shares of rounds by draft length over time: one cell a bin and length that was drafted.
 *
 * @returns {{from_s: number, to_s: number, length: number, share: number, rounds: number}[]}
 */
export function cells(points, { bin_s }) {
  return [...binned(points, bin_s)].flatMap(([from_s, inside]) => {
    const rounds = total(inside).rounds_by_draft_length;
    const all = sumOf(rounds);
    return rounds
      .map((count, length) => ({ from_s, to_s: from_s + bin_s, length, share: count / all, rounds: count }))
      .filter((cell) => cell.rounds > 0);
  });
}

/** Points by the begin of their bin. */
export function binned(points, bin_s) {
  const bins = new Map();
  for (const point of points) {
    const from_s = Math.floor((point.at_s - point.span_s / 2) / bin_s) * bin_s;
    bins.set(from_s, [...(bins.get(from_s) ?? []), point]);
  }
  return bins;
}

/** Acceptance by draft position, from 1. */
export function positions(sums) {
  return sums.position_evaluated
    .map((evaluated, index) => ({
      position: index + 1,
      evaluated,
      accepted: sums.position_accepted[index] ?? 0,
      share: ratio(sums.position_accepted[index] ?? 0, evaluated),
    }))
    .filter((bar) => bar.evaluated > 0);
}
