/** How often a drafted token is accepted, by its place in the draft. */

import { Chart, Empty, Panel, html } from "./view.js";
import { positions as draw } from "./charts.js";
import { positions, recent, total } from "./figures.js";
import { number, share, short } from "./format.js";
import { byArm } from "./arms.js";
import { useChoice } from "./choice.js";

const WINDOW_S = 300;

export function Positions({ snapshot, history }) {
  const [chosen, choice] = useChoice(byArm(snapshot, history), "acceptance");
  const bars = positions(total(recent(chosen?.points ?? [], snapshot.at_s, WINDOW_S)));
  return html`
    <${Panel} id="positions" title="Acceptance by position" aside=${choice || "the last 5 min"}>
      ${bars.length
        ? html`
          <p class="key">Of the tokens tested at each draft position, those accepted; the number tested below. Faint: fewer than 50.</p>
          <${Chart} version="${chosen.release} ${chosen.points.at(-1).at_s}" summary=${summary(bars)} caption="Acceptance by draft position, the last 5 minutes"
            draw=${(width) => draw({ width, bars, write: (bar) => number(100 * bar.share), count: (bar) => short(bar.evaluated) })} table=${() => tableOf(bars)} />`
        : html`<${Empty}>No drafted token was tested in the last 5 minutes.</${Empty}>`}
    </${Panel}>`;
}

const summary = (bars) => `Bar chart. ${bars.map((bar) => `Position ${bar.position}: ${share(bar.share)} accepted`).join(", ")}.`;

const tableOf = (bars) => ({
  head: ["Position", "Accepted", "Tested", "Share"],
  rows: bars.map((bar) => [bar.position, number(bar.accepted), number(bar.evaluated), share(bar.share, 1)]),
});
