/** The page: what is known, and who shows which part of it. */

import { html, render } from "./dom.js";
import { Attention, Head } from "./head.js";
import { Feed } from "./feed.js";
import { SignIn } from "./key.js";
import { trouble } from "./attention.js";
import { Now } from "./panel-now.js";
import { Throughput } from "./panel-throughput.js";
import { Lengths } from "./panel-lengths.js";
import { Positions } from "./panel-positions.js";
import { Releases } from "./panel-releases.js";
import { Replicas } from "./panel-replicas.js";
import { Rollout } from "./panel-rollout.js";
import { Jobs } from "./panel-jobs.js";
import { Runs } from "./panel-runs.js";

const root = document.getElementById("app");
const SHOWN = "outrider.figures"; // the mark of when they were first on the page
const feed = new Feed(show);

function show(known) {
  document.title = titleOf(known);
  render(html`<${Page} known=${known} />`, root);
  if (known.snapshot && !performance.getEntriesByName(SHOWN).length) performance.mark(SHOWN);
}

function titleOf({ snapshot, link }) {
  const said = trouble(snapshot, link);
  const name = snapshot ? `${snapshot.service.name} – Outrider` : "Outrider console";
  return said ? `● ${said} – ${name}` : name;
}

function Page({ known }) {
  const { snapshot, link } = known;
  return html`
    <a class="skip" href="#main">Skip to the figures</a>
    <${Head} known=${known} onLeave=${() => feed.signOut()} />
    <main id="main" tabindex="-1">
      ${link === "locked" && html`<${SignIn} wasRefused=${known.wasRefused} onKey=${(key) => feed.signIn(key)} />`}
      ${!snapshot && link !== "locked" && html`<p class="bare">${link === "lost" ? "The server does not answer yet. This page goes on trying." : "Asking the server…"}</p>`}
      ${snapshot && html`<${Panels} known=${known} />`}
    </main>`;
}

function Panels({ known }) {
  const { snapshot, history, link } = known;
  return html`
    <${Attention} snapshot=${snapshot} link=${link} />
    <div class="panels ${link === "live" ? "" : "is-old"}">
      <${Now} snapshot=${snapshot} history=${history} />
      <${Throughput} snapshot=${snapshot} history=${history} />
      <${Lengths} snapshot=${snapshot} history=${history} />
      <${Positions} snapshot=${snapshot} history=${history} />
      <${Releases} snapshot=${snapshot} />
      <${Replicas} snapshot=${snapshot} />
      <${Rollout} snapshot=${snapshot} order=${(...said) => feed.order(...said)} />
      <${Jobs} snapshot=${snapshot} />
      <${Runs} snapshot=${snapshot} />
    </div>`;
}

root.replaceChildren();
feed.begin();
