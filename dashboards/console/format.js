/** Numbers in words. Pure. What is not known is a dash. */

export const UNKNOWN = "–";
const plain = new Map();

/** At most `digits` behind the point, thousands apart. */
export function number(value, digits = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return formatter(digits).format(value);
}

function formatter(digits) {
  if (!plain.has(digits)) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    plain.set(digits, new Intl.NumberFormat("en-GB", options));
  }
  return plain.get(digits);
}

/** 0.834 -> "83 %". */
export const share = (value, digits = 0) => (known(value) ? `${number(100 * value, digits)} %` : UNKNOWN);

/** 1.421 -> "1.42 ×". */
export const times = (value) => (known(value) ? `${number(value, 2)} ×` : UNKNOWN);

/** Tokens per second. */
export const rate = (value) => number(value, known(value) && value < 10 ? 1 : 0);

/** Three digits of a count: "1,204", "38k", "2.1M". */
export function short(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 1e4) return number(value);
  return value < 1e6 ? `${number(value / 1e3)}k` : `${number(value / 1e6, 1)}M`;
}

/** 3725 -> "1 h 2 min". */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return "0 s";
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** "14:05:09", in the reader's time zone; with its day where that is not today. */
export function clock(at_s, now_s = at_s) {
  const at = new Date(1000 * at_s);
  const time = at.toLocaleTimeString("en-GB");
  const isToday = at.toDateString() === new Date(1000 * now_s).toDateString();
  return isToday ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

/** A name of the catalogue as words: "tokens_per_s" -> "tokens per s". */
export const words = (name) => name.replaceAll("_", " ");

/** What is shown of a fingerprint. */
export const digest = (fingerprint) => fingerprint.slice(0, 12);

/** "1 row", "2 rows". */
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

function known(value) {
  return value !== null && value !== undefined && Number.isFinite(value);
}
