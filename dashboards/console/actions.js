/** What an operator can ask of the rollout: a button each, and a dialog that says what will happen. */

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

export function Actions({ rollout, order }) {
  const [verb, setVerb] = useState("");
  const verbs = ORDER.filter((one) => rollout.verbs.includes(one));
  return html`
    <div class="actions" role="group" aria-label="Actions on the rollout">
      ${verbs.map((one) => html`<button key=${one} type="button" class=${one === "abort" ? "danger" : ""} onClick=${() => setVerb(one)}>${WORDS[one].title}…</button>`)}
    </div>
    ${verb && html`<${Ask} key=${verb} verb=${verb} rollout=${rollout} order=${order} onClose=${() => setVerb("")} />`}`;
}

/** The dialog. It stays open with the server's answer until it is closed. */
function Ask({ verb, rollout, order, onClose }) {
  const dialog = useRef(null);
  const [answer, setAnswer] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const close = () => dialog.current.close();
  const leave = () => {
    onClose();
    setTimeout(backToPanel);
  };
  const { title, says } = WORDS[verb];
  return html`
    <dialog ref=${dialog} onClose=${leave} aria-labelledby="ask-title" aria-describedby="ask-says">
      <h2 id="ask-title">${title} the rollout of ${rollout.candidate}</h2>
      <p id="ask-says">${says(rollout)}</p>
      ${!rollout.is_controlled && html`<p class="warning">Nobody controls this rollout now. The command waits until this runs again:</p><${Command} text="python jobs/rollout.py" />`}
      ${answer?.isDone
        ? html`<p role="status" class="answer good">${answer.text}</p><div class="actions"><button type="button" class="primary" autofocus onClick=${close}>Close</button></div>`
        : html`<${Form} verb=${verb} rollout=${rollout} answer=${answer} onCancel=${close} ask=${(...said) => asked(order(verb, ...said), setAnswer)} />`}
    </dialog>`;
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
