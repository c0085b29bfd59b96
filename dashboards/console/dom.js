/** The library that keeps the page's elements, behind one door. */

import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";

export { html, render, useEffect, useLayoutEffect, useRef, useState };

let last = 0;

/** An id of its own for each place in the page that asks. */
export function useId() {
  const id = useRef("");
  if (!id.current) id.current = `part-${(last += 1)}`;
  return id.current;
}
