/** The admin key: kept for this tab only, sent as a header, never part of an address. */

import { html, useState } from "./view.js";

const NAME = "outrider.admin-key";

export const savedKey = () => sessionStorage.getItem(NAME) ?? "";
export const saveKey = (key) => sessionStorage.setItem(NAME, key);
export const forgetKey = () => sessionStorage.removeItem(NAME);

/** @returns {Record<string, string>} headers */
export function authorization() {
  const key = savedKey();
  return key ? { authorization: `Bearer ${key}` } : {};
}

/** Asks for it. `wasRefused`: the one that was given does not fit. */
export function SignIn({ wasRefused, onKey }) {
  const [key, setKey] = useState("");
  const submit = (event) => {
    event.preventDefault();
    setKey("");
    if (key.trim()) onKey(key.trim());
  };
  return html`
    <section class="panel sign-in" aria-labelledby="sign-in-title">
      <h2 id="sign-in-title">Sign in</h2>
      <p>This service has admin keys. Give one of those in its <code>admin_keys_file</code>.</p>
      <form onSubmit=${submit}>
        <label for="admin-key">Admin key</label>
        <input id="admin-key" type="password" autocomplete="off" spellcheck="false" value=${key}
          aria-describedby="key-kept" aria-invalid=${wasRefused ? "true" : "false"}
          onInput=${(event) => setKey(event.target.value)} />
        <p role="alert" class="refusal">${wasRefused ? "That key was refused. Try another one." : ""}</p>
        <button class="primary" type="submit">Sign in</button>
        <p id="key-kept" class="aside">It is kept in this tab only, until the tab is closed.</p>
      </form>
    </section>`;
}
