/** What an operator can ask of the rollout: a button each, and a dialog that says what will happen. */

import { goOn } from "./attention.js";
import { Command, html, useEffect, useRef, useState } from "./view.js";

const NAME = "outrider.operator";
const WORDS = {
  pause: {
    title: "Pause",
    says: () => "Nothing moves forward and no time counts until it is resumed. A gate that fails still takes the candidate back.",
  },
  resume: { title: "Resume", says: () => "It goes on where it was paused." },
  approve: { title: "Approve", says: ({ waits }) => `It goes on from where it waits${waits ? `: ${waits}` : ""}.` },
  promote: {
    title: "Promote",
    says: ({ candidate, stable }) => `${candidate} takes all traffic and becomes champion, whatever its gates say. ${stable} stays warm for a while.`,
    sure: ({ candidate }) => `Yes, ${candidate} shall take all traffic`,
  },
  abort: {
    title: "Abort",
    says: ({ candidate, stable }) => `${stable} has all traffic again and ${candidate} is taken away. This rollout is over then.`,
    sure: ({ candidate }) => `Yes, ${candidate} shall be taken back`,
  },
};
const ORDER = Object.keys(WORDS);

export function Actions({ rollout, onAsk }) {
  return html`
    <div class="actions" role="group" aria-label="Actions on the rollout">
      ${ORDER.filter((verb) => rollout.verbs.includes(verb)).map((verb) => html`
        <button key=${verb} type="button" class=${verb === "abort" ? "danger" : ""} onClick=${() => onAsk({ verb, rollout })}>${WORDS[verb].title}…</button>`)}
    </div>`;
}

/**
 * The dialog: about the rollout as it was when it was opened. It stays with the server's answer until
 * it is closed. `current`: the rollout as it is now, which alone a command would reach.
 */
export function Ask({ verb, rollout, current, service, order, onClose }) {
  const dialog = useRef(null);
  const [answer, setAnswer] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const close = () => dialog.current.close();
  const leave = () => {
    onClose();
    setTimeout(backToPanel);
  };
  const { title, says } = WORDS[verb];
  const isGone = current?.rollout_id !== rollout.rollout_id || current.is_over;
  return html`
    <dialog ref=${dialog} onClose=${leave} aria-labelledby="ask-title" aria-describedby="ask-says">
      <h2 id="ask-title">${title} the rollout of ${rollout.candidate}</h2>
      <p id="ask-says">${says(rollout)}</p>
      ${!isGone && !current.is_controlled && html`<p class="warning">Nobody controls this rollout now. The command waits until this runs again:</p><${Command} text=${goOn(service)} />`}
      ${answer?.isDone && html`<${Last} level="good" text=${answer.text} onClose=${close} />`}
      ${!answer?.isDone && isGone && html`<${Last} level="bad" text="This rollout is over meanwhile: nothing was asked." onClose=${close} />`}
      ${!answer?.isDone && !isGone && html`<${Form} verb=${verb} rollout=${rollout} answer=${answer} onCancel=${close} ask=${(...said) => asked(order(verb, rollout.rollout_id, ...said), setAnswer)} />`}
    </dialog>`;
}

function Last({ level, text, onClose }) {
  return html`
    <p role="status" class="answer ${level}">${text}</p>
    <div class="actions"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></div>`;
}

async function asked(answered, setAnswer) {
  setAnswer({ isWaiting: true, text: "Asking the server…" });
  try {
    setAnswer({ isDone: true, text: await answered });
  } catch (error) {
    const text = error.name === "TimeoutError" ? "The server did not answer in time: see in Moves whether the command arrived." : error.message;
    setAnswer({ text });
  }
}

/** What was focused may be gone with the button; the panel's title is not. */
function backToPanel() {
  if (document.activeElement === document.body) document.getElementById("rollout-title")?.focus();
}

function Form({ verb, rollout, answer, ask, onCancel }) {
  const { title, sure } = WORDS[verb];
  const [reason, setReason] = useState("");
  const [who, setWho] = useState(localStorage.getItem(NAME) ?? "");
  const [isSure, setSure] = useState(!sure);
  const submit = (event) => {
    event.preventDefault();
    localStorage.setItem(NAME, who.trim());
    if (isSure && !answer?.isWaiting) ask(reason.trim(), who.trim());
  };
  return html`
    <form onSubmit=${submit}>
      <label for="ask-reason">Reason, kept with the move</label>
      <input id="ask-reason" maxlength="200" autofocus autocomplete="off" value=${reason} onInput=${(event) => setReason(event.target.value)} />
      <label for="ask-who">Your name</label>
      <input id="ask-who" maxlength="60" autocomplete="username" value=${who} onInput=${(event) => setWho(event.target.value)} />
      ${sure && html`<label class="check"><input id="ask-sure" type="checkbox" checked=${isSure} onChange=${(event) => setSure(event.target.checked)} /> <span>${sure(rollout)}</span></label>`}
      <p role="status" class="answer ${answer && !answer.isWaiting ? "bad" : ""}">${answer?.text}</p>
      <div class="actions">
        <button type="submit" class=${verb === "abort" ? "danger solid" : "primary"} disabled=${!isSure}>${title}</button>
        <button type="button" onClick=${onCancel}>Cancel</button>
      </div>
    </form>`;
}
