/** The points that the charts are drawn from: those of each release, oldest first. Pure. */

/** @typedef {{began_s: number | null, points: Map<string, object[]>}} History */

/** @type {History} */
export const NOTHING = { began_s: null, points: new Map() };

/** Whether `snapshot` is of another server than what is remembered. */
export const isAnother = (history, snapshot) =>
  history.began_s !== null && history.began_s !== snapshot.service.began_s;

/**
 * With what `snapshot` tells. Another server's charts begin anew. Where the server's clock was put
 * back, points of a time to come go: no newer ones would be asked for until then.
 */
export function merged(history, snapshot) {
  const before = isAnother(history, snapshot) ? NOTHING : history;
  const points = kept(before.points, (point) => point.at_s <= snapshot.at_s);
  for (const point of snapshot.points) {
    const known = points.get(point.release) ?? [];
    if (!known.length || point.at_s > known.at(-1).at_s) points.set(point.release, [...known, point]);
  }
  return { began_s: snapshot.service.began_s, points: kept(points, (point) => point.at_s > snapshot.at_s - snapshot.keep_s) };
}

function kept(points, which) {
  const chosen = [...points].map(([release, told]) => [release, told.filter(which)]);
  return new Map(chosen.filter(([, told]) => told.length > 0));
}

/** The time of the newest point: what to ask for comes behind it. */
export function newest(history) {
  return Math.max(0, ...[...history.points.values()].map((told) => told.at(-1).at_s));
}
