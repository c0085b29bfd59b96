/**
 * What the page knows, asked of the server about once a second.
 *
 * It waits longer while the server is away, stops while nobody looks, and tells every change of
 * what is known to `show`.
 */

import { authorization, forgetKey, saveKey, savedKey } from "./key.js";
import { NOTHING, isAnother, merged, newest } from "./history.js";

const TURN_MS = 1000;
const MOST_MS = 5000; // between two tries while the server is away
const PATIENCE_MS = 4000; // with one answer
const DATA = new URL("data", import.meta.url);
const ORDERS = new URL("orders", import.meta.url);

/** Link: starting | live | lost | locked. `seenMs`: of the last answer, by `performance.now()`. */
const BEGINNING = { link: "starting", why: "", seenMs: 0, snapshot: null, history: NOTHING, restarts: 0, wasRefused: false };

export class Feed {
  #known = BEGINNING;
  #timer = 0;
  #isAsking = false;
  #misses = 0;
  #person = 0; // who looks: an answer for one who left is not shown to the next

  constructor(show) {
    this.show = show;
    document.addEventListener("visibilitychange", () => this.turn());
  }

  /** Tell that nothing is known yet, and ask. */
  begin() {
    this.show(this.#known);
    return this.turn();
  }

  /** Ask now, unless an answer is awaited. The next time follows by itself. */
  async turn() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#isAsking) return;
    this.#isAsking = true;
    const turnOf = this.#person;
    const known = await this.#look();
    this.#isAsking = false;
    if (turnOf === this.#person) this.#tell(known);
    this.#goOn();
  }

  #goOn() {
    if (this.#known.link !== "locked" || savedKey()) this.#timer = setTimeout(() => this.turn(), this.#waitMs());
  }

  /** Go on with another key. */
  signIn(key) {
    saveKey(key);
    return this.turn();
  }

  /** Forget the key and what it showed. */
  signOut() {
    forgetKey();
    clearTimeout(this.#timer);
    this.#person += 1;
    this.#tell({ ...BEGINNING, link: "locked" });
  }

  /** Leave a command for that rollout's controller; the server's sentence about it. Throws `Error`. */
  async order(verb, rollout_id, reason, who) {
    const answer = await asked(ORDERS, {
      method: "POST",
      headers: { "content-type": "application/json", ...authorization() },
      body: JSON.stringify({ verb, rollout_id, reason, who }),
    });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(told.error?.message ?? `the server answered ${answer.status}`);
    this.turn();
    return told.said;
  }

  async #look() {
    try {
      const url = new URL(DATA);
      url.searchParams.set("after", newest(this.#known.history));
      const answer = await asked(url, { headers: authorization(), cache: "no-store" });
      if (answer.status === 401) return this.#locked();
      if (!answer.ok) throw new Error(`it answered ${answer.status}`);
      return this.#seen(await answer.json());
    } catch (error) {
      return this.#missed(error);
    }
  }

  #seen(snapshot) {
    const { history, restarts } = this.#known;
    this.#misses = 0;
    return {
      link: "live",
      why: "",
      wasRefused: false,
      seenMs: performance.now(),
      snapshot,
      history: merged(history, snapshot),
      restarts: restarts + (isAnother(history, snapshot) ? 1 : 0),
    };
  }

  #locked() {
    const wasRefused = "authorization" in authorization();
    forgetKey();
    return { ...BEGINNING, link: "locked", wasRefused };
  }

  #missed(error) {
    this.#misses += 1;
    const why = error.name === "TimeoutError" ? "it does not answer" : error.message;
    return { ...this.#known, link: "lost", why };
  }

  #waitMs() {
    return Math.min(MOST_MS, TURN_MS * 2 ** Math.max(0, this.#misses - 1));
  }

  /** A fault of a drawing is the console's to tell; it must not end the asking. */
  #tell(known) {
    this.#known = known;
    try {
      this.show(known);
    } catch (error) {
      console.error(error);
    }
  }
}

const asked = (url, options) => fetch(url, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
