// Times as people say them, by the API server's clock.

import { h } from "./dom.js";

const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const MINUTES = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const SECONDS = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
let ahead = 0;

/** Sets the clock to what the server has said. */
export function setClock(now) {
  const told = Date.parse(now);
  if (!Number.isNaN(told)) ahead = told - Date.now();
}

/** Milliseconds since the epoch, now. */
export function clock() {
  return Date.now() + ahead;
}

/** The two largest units, as kubectl shows ages: 41d, 3h12m, 11m42s, 8s. */
export function short(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count || parts.length) parts.push(count ? `${count}${unit}` : "");
  }
  return parts.slice(0, 2).join("") || "0s";
}

/** Milliseconds since the epoch of an RFC 3339 time; NaN for "" and what is none. */
export function at(time) {
  return time ? Date.parse(time) : NaN;
}

/** An element that says how long ago a time was, and goes on to; "" for a time that is not known. */
export function since(time) {
  const then = at(time);
  if (Number.isNaN(then)) return "";
  return h("time", { datetime: time, "data-since": then, title: whole(then) }, short((clock() - then) / 1000));
}

/** An element that says how long it is until a time, and goes on to; "0s" from then on. */
export function until(milliseconds) {
  return h("time", { "data-until": milliseconds, title: whole(milliseconds) }, short((milliseconds - clock()) / 1000));
}

/** How long something took between two times; "" when one of them is not known. */
export function between(from, to) {
  const seconds = (at(to) - at(from)) / 1000;
  return Number.isNaN(seconds) ? "" : short(seconds);
}

/** Date and time of this moment where the reader is. */
export function whole(milliseconds) {
  return WHOLE.format(milliseconds);
}

/** The time of day; with seconds unless told otherwise. */
export function timeOfDay(milliseconds, seconds = true) {
  return (seconds ? SECONDS : MINUTES).format(milliseconds);
}

/** How much of a span has passed, from 0 to 1. */
export function passed(from, seconds) {
  return Math.min(1, Math.max(0, (clock() - from) / 1000 / seconds));
}

function tick() {
  const now = clock();
  for (const each of document.querySelectorAll("[data-since]")) say(each, (now - Number(each.dataset.since)) / 1000);
  for (const each of document.querySelectorAll("[data-until]")) say(each, (Number(each.dataset.until) - now) / 1000);
  for (const each of document.querySelectorAll("[data-from]")) {
    each.setAttribute("width", `${100 * passed(Number(each.dataset.from), Number(each.dataset.span))}%`);
  }
}

function say(element, seconds) {
  const said = short(seconds);
  if (element.textContent !== said) element.textContent = said;
}

setInterval(tick, 1000);
