/** The page's head: which service this is, whether the page hears of it, and what needs somebody. */

import { Mark, html, useEffect, useState } from "./view.js";
import { attention } from "./attention.js";
import { duration } from "./format.js";
import { savedKey } from "./key.js";

const STATES = {
  starting: { level: "still", word: "connecting" },
  live: { level: "good", word: "live" },
  lost: { level: "bad", word: "reconnecting" },
  locked: { level: "wait", word: "signed out" },
};

export function Head({ known, onLeave }) {
  const { snapshot } = known;
  const service = snapshot?.service;
  return html`
    <header class="head">
      <h1><span class="brand">Outrider</span> ${service ? html`<span class="service">${service.name}</span>` : "console"}</h1>
      ${service && html`<p class="facts"><span>${service.model}</span><span>${service.url}</span><span>Outrider ${service.version}</span></p>`}
      <${Link} known=${known} />
      ${snapshot?.needs_key && savedKey() && html`<button type="button" class="quiet" onClick=${onLeave}>Sign out</button>`}
    </header>`;
}

function Link({ known }) {
  const { link, why, seenMs, restarts } = known;
  const ago = useAgo(link === "lost" ? seenMs : 0);
  const { level, word } = STATES[link];
  return html`
    <p class="link ${level}">
      <${Mark} level=${level} />
      <span role="status" aria-live="polite">${word}</span>
      ${link === "lost" && html`<span class="aside">${seenMs ? `last seen ${duration(ago)} ago` : why}</span>`}
      ${link === "live" && restarts > 0 && html`<span class="aside">restarted: the charts began anew</span>`}
    </p>`;
}

/** Seconds since `sinceMs`, running; of 0, nothing runs. */
function useAgo(sinceMs) {
  const [nowMs, setNow] = useState(0);
  useEffect(() => {
    if (!sinceMs) return undefined;
    const timer = setInterval(() => setNow(performance.now()), 1000);
    setNow(performance.now());
    return () => clearInterval(timer);
  }, [sinceMs]);
  return Math.max(0, nowMs - sinceMs) / 1000;
}

export function Attention({ snapshot, link }) {
  const told = attention(snapshot);
  const calm = link === "live" ? "Nothing needs attention." : "";
  return html`
    <section class="attention" aria-labelledby="attention-title">
      <h2 id="attention-title" class="unseen">Needs attention</h2>
      <ul aria-live="polite">
        ${told.map(({ level, text }) => html`<li key=${text} class=${level}><${Mark} level=${level} /> <span>${text}</span></li>`)}
        ${!told.length && html`<li key="calm" class="calm">${calm}</li>`}
      </ul>
    </section>`;
}
