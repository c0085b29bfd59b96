/**
 * What needs a person's attention, a sentence each. Pure.
 *
 * They are read out when they change, so none of them holds a number that runs.
 */

/** @returns {{level: "bad" | "wait", text: string}[]} worst first */
export function attention(snapshot) {
  const told = [
    ...snapshot.releases.flatMap((release) => [...ofHealth(release), ...ofGuard(release)]),
    ...ofReplicas(snapshot),
    ...ofRollout(snapshot),
    ...snapshot.jobs.flatMap((job) => [...ofJob(job, snapshot.at_s)]),
    ...(snapshot.service.is_leaving ? [wait("The server is stopping: it takes no new calls.")] : []),
    ...snapshot.notes.map(wait),
  ];
  return [...told.filter((one) => one.level === "bad"), ...told.filter((one) => one.level !== "bad")];
}

/** Whether a release decodes plainly though it was made to draft. */
const isPlain = (snapshot) => snapshot.releases.some((release) => ["open", "probing"].includes(release.guard_phase));

/** The command that controls rollouts of this server, wherever it listens. */
export const goOn = ({ url }) => `python jobs/rollout.py url=${url}`;

/** What the window's title says before the name: the worst there is. */
export function trouble(snapshot, link) {
  if (link === "lost") return "no answer";
  if (!snapshot) return "";
  if (isPlain(snapshot)) return "plain";
  const told = attention(snapshot);
  if (told.some((one) => one.level === "bad")) return "trouble";
  return snapshot.rollout?.waits && !snapshot.rollout.is_over ? "approval" : "";
}

function* ofHealth(release) {
  if (release.health === "failed") yield bad(`Release ${release.name} has failed: ${release.message}`);
}

function* ofGuard(release) {
  if (release.guard_phase === "open") yield bad(`${release.name} decodes plainly. ${release.guard_sentence}`);
  if (release.guard_phase === "probing") yield wait(`${release.name} tries drafting again. ${release.guard_sentence}`);
}

function* ofReplicas({ replicas, releases }) {
  const silent = replicas.filter((replica) => !replica.breaker_phase).map((replica) => replica.replica);
  const open = replicas.filter((replica) => replica.breaker_phase === "open");
  const full = replicas.filter((replica) => replica.max_waiting > 0 && replica.num_waiting >= replica.max_waiting);
  if (!replicas.length) yield bad("No replica answers: nothing can be decoded.");
  if (silent.length) yield bad(`${listed(silent)} ${silent.length > 1 ? "do" : "does"} not answer.`);
  for (const replica of open) yield bad(`${replica.replica}: its breaker is open. ${replica.breaker_sentence}`);
  for (const replica of full) yield bad(`${replica.replica}: its queue is full; new calls get a 429.`);
  yield* told(replicas, releases);
}

/** Releases that an operator, not a guard, holds at plain decoding. */
function* told(replicas, releases) {
  const held = new Set(replicas.filter((replica) => replica.mode === "plain").map((replica) => replica.release));
  for (const { name, guard_phase } of releases) {
    if (held.has(name) && !["open", "probing"].includes(guard_phase)) yield wait(`${name} decodes plainly, as it was told to.`);
  }
}

const NEWS_S = 3600; // for how long an end that nobody wished for is told: its panel says it longer

function* ofRollout({ rollout, service }) {
  if (!rollout) return;
  if (["rolled_back", "failed"].includes(rollout.phase) && rollout.elapsed_s < NEWS_S) yield wait(`The rollout of ${rollout.candidate} ended: ${rollout.sentence}`);
  if (rollout.is_over) return;
  const name = `The rollout of ${rollout.candidate}`;
  if (rollout.waits) yield wait(`${name} waits for an operator: ${rollout.waits}`);
  if (rollout.has_stalled) yield wait(`${name} has stalled: its time ran out and nothing was decided.`);
  if (rollout.is_paused) yield wait(`${name} is paused.`);
  if (!rollout.is_controlled) yield wait(`Nobody controls the rollout of ${rollout.candidate}: ${goOn(service)} goes on with it.`);
}

function* ofJob(job, now_s) {
  if (now_s - job.at_s > NEWS_S) return;
  if (job.state === "failed") yield bad(`Bulk job ${job.name} has failed.`);
  if (job.state === "stopped") yield wait(`Bulk job ${job.name} was stopped before its end.`);
}

const bad = (text) => ({ level: "bad", text });
const wait = (text) => ({ level: "wait", text });
const listed = (names) => new Intl.ListFormat("en-GB").format(names);
