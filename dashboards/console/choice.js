/** Which release a panel is about, where there are several. */

import { html, useState } from "./view.js";

/** @returns {[object | undefined, object]} the chosen one of `drawn`, and what chooses it */
export function useChoice(drawn, name) {
  const [wanted, want] = useState("");
  const chosen = drawn.find((one) => one.release === wanted) ?? drawn[0];
  const choice = drawn.length > 1 && html`
    <fieldset class="choice">
      <legend class="unseen">Release of ${name}</legend>
      ${drawn.map(({ release }) => html`
        <label><input type="radio" name=${name} value=${release} checked=${release === chosen.release}
          onChange=${() => want(release)} /><span>${release}</span></label>`)}
    </fieldset>`;
  return [chosen, choice];
}
