/** Which release is drawn how: stable in the accent, a candidate in the other colour. Pure. */

const STYLES = {
  stable: { colour: "var(--spec)", plainColour: "var(--plain)" },
  candidate: { colour: "var(--candidate)", plainColour: "var(--candidate-plain)" },
  none: { colour: "var(--third)", plainColour: "var(--plain)" },
};

/** The arm of a release; "none" of one that has no share any more, or not yet. */
export const armOf = (snapshot, release) => snapshot.arms.find((arm) => arm.release === release)?.arm ?? "none";

/** Releases with points, stable first. */
export function byArm(snapshot, history) {
  const order = ["stable", "candidate", "none"];
  return [...history.points]
    .map(([release, points]) => ({ release, points, arm: armOf(snapshot, release) }))
    .sort((one, other) => order.indexOf(one.arm) - order.indexOf(other.arm))
    .map((one) => ({ ...one, ...STYLES[one.arm] }));
}
