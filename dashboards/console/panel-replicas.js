/** The engines: how each decodes, and how full it is. */

import { Badge, Empty, Panel, Table, html } from "./view.js";
import { ratio } from "./figures.js";
import { counted, number, share } from "./format.js";

const HEAD = ["Replica", "Release", "Mode", "Breaker", "Rows run", "Rows wait", "KV blocks used"];
const BREAKERS = {
  closed: { level: "good", word: "closed" },
  open: { level: "bad", word: "open" },
  half_open: { level: "wait", word: "half open" },
};
const SILENT = { level: "bad", word: "no answer" };

export function Replicas({ snapshot }) {
  return html`
    <${Panel} id="replicas" title="Replicas" kind="full">
      ${snapshot.replicas.length
        ? html`<${Table} caption="Replicas" head=${HEAD} kind="stacked">${snapshot.replicas.map((replica) => html`<${Row} key="${replica.release} ${replica.replica}" replica=${replica} />`)}</${Table}>`
        : html`<${Empty} command="curl ${snapshot.service.url}/readyz">No replica answers. The server's terminal tells why; this asks whether it is ready:</${Empty}>`}
    </${Panel}>`;
}

function Row({ replica }) {
  const breaker = BREAKERS[replica.breaker_phase] ?? SILENT;
  const used = replica.num_blocks - replica.num_free_blocks;
  return html`
    <tr>
      <th scope="row">${replica.replica}</th>
      <td data-head="Release">${replica.release}</td>
      <td data-head="Mode">${modeOf(replica)}</td>
      <td data-head="Breaker" title=${replica.breaker_sentence}><${Badge} level=${breaker.level}>${breaker.word}</${Badge}>${openRows(replica)}</td>
      <td data-head="Rows run" class="num">${number(replica.num_running)}</td>
      <td data-head="Rows wait" class="num">${number(replica.num_waiting)} <span class="aside">of ${number(replica.max_waiting)}</span></td>
      <td data-head="KV blocks used" class="num">${share(ratio(used, replica.num_blocks))} <span class="aside">${number(used)} of ${number(replica.num_blocks)}</span></td>
    </tr>`;
}

const modeOf = ({ mode, max_draft_length }) => (max_draft_length === null ? mode : `${mode}, at most ${max_draft_length}`);

function openRows({ num_open_rows }) {
  return num_open_rows > 0 && html` <span class="aside">${counted(num_open_rows, "row")} by itself</span>`;
}
