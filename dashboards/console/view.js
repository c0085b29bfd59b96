/** What the panels are made of. All text goes through the DOM as text: names are never markup. */

import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "./dom.js";

export { html, useEffect, useLayoutEffect, useRef, useState };

/** A titled part of the page. */
export function Panel({ id, title, aside, kind = "", children }) {
  return html`
    <section class="panel ${kind}" id=${id} aria-labelledby="${id}-title">
      <div class="panel-head">
        <h2 id="${id}-title" tabindex="-1">${title}</h2>
        ${aside && html`<div class="aside">${aside}</div>`}
      </div>
      ${children}
    </section>`;
}

/** Nothing to show, and what would change that. */
export function Empty({ children, command }) {
  return html`<div class="empty"><p>${children}</p>${command && html`<${Command} text=${command} />`}</div>`;
}

/** A command to copy. */
export function Command({ text }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return html`
    <div class="command">
      <code tabindex="0">${text}</code>
      ${navigator.clipboard && html`<button type="button" onClick=${copy}>${isCopied ? "Copied" : "Copy"}</button>`}
    </div>`;
}

/** A state by shape, colour and word. `level`: good | bad | wait | still. */
export function Badge({ level, children }) {
  return html`<span class="badge ${level}"><${Mark} level=${level} />${children}</span>`;
}

const MARKS = {
  good: html`<circle cx="6" cy="6" r="4.5" />`,
  bad: html`<path d="M2 2 10 10M10 2 2 10" />`,
  wait: html`<path d="M6 1 11 10.5 1 10.5Z" />`,
  still: html`<circle cx="6" cy="6" r="3.6" />`,
};

/** The shape of a level, 12 by 12. */
export function Mark({ level }) {
  return html`<svg class="mark ${level}" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">${MARKS[level]}</svg>`;
}

/** A table that scrolls in itself where the screen is narrow, and says what it is. */
export function Table({ caption, head, children, kind = "" }) {
  return html`
    <div class="scroll" role="group" tabindex="0" aria-label=${caption}>
      <table class=${kind}>
        <caption class="unseen">${caption}</caption>
        <thead><tr>${head.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
        <tbody>${children}</tbody>
      </table>
    </div>`;
}

/**
 * A chart with its summary in words and, where somebody wants it, as a table.
 *
 * `draw(width)` gives an element; it is drawn anew when `version` or the width changes.
 */
export function Chart({ draw, version, summary, caption, table }) {
  const box = useRef(null);
  const pointer = useRef(null);
  const width = useWidth(box);
  useLayoutEffect(() => {
    if (width === 0) return;
    box.current.replaceChildren(draw(width));
    pointAt(box.current, pointer.current);
  }, [width, version]);
  return html`
    <figure class="chart">
      <div role="img" aria-label=${summary}><div ref=${box} aria-hidden="true" class="drawing"
        onPointerMove=${(event) => (pointer.current = event)} onPointerLeave=${() => (pointer.current = null)}></div></div>
      <${AsTable} caption=${caption} table=${table} />
    </figure>`;
}

/** A drawing made anew shows what the pointer rests on, as the one before it did. */
function pointAt(box, pointer) {
  if (!pointer) return;
  const { clientX, clientY, pointerType } = pointer;
  box.querySelector("svg")?.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, pointerType }));
}

function useWidth(box) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** `table()` gives {head, rows}; it is called only while it is open. */
function AsTable({ caption, table }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const told = isOpen ? table() : null;
  return html`
    <button type="button" class="quiet" aria-expanded=${isOpen ? "true" : "false"} aria-controls=${id}
      onClick=${() => setOpen(!isOpen)}>${isOpen ? "Hide the table" : "Show as table"}</button>
    <div id=${id} class="as-table">
      ${told && html`<${Table} caption=${caption} head=${told.head}>
        ${told.rows.map((row) => html`<tr>${row.map((text, at) => (at ? html`<td>${text}</td>` : html`<th scope="row">${text}</th>`))}</tr>`)}
      </${Table}>`}
    </div>`;
}
