// Whether what is shown is true now: the word in the header, and the line of trouble below it.

import { h, show } from "./dom.js";
import { said } from "./text.js";
import { clock, since } from "./time.js";
import { titleOld } from "./title.js";

const line = document.getElementById("trouble");
const lost = document.getElementById("lost");
const lostSince = document.getElementById("lost-since");
const word = document.getElementById("live-word");
/** Since when it is old, why, and what the page cannot show; "" for none. */
let old = "";
let why = "";
let broken = "";

/** Another view is shown. */
export function begins() {
  old = why = broken = "";
}

/** The stream is there. */
export function isLive() {
  old = why = "";
  tell("live");
}

/** The stream has ended after so many milliseconds without a sign of life. */
export function isLost(reason, silent) {
  old ||= ago(silent);
  why = reason;
  tell("lost");
}

/** The server is there, and does not see all of the cluster; an empty message when it does again. */
export function isTroubled(told) {
  why = told.message;
  old = why && told.old !== false ? old || ago(0) : "";
  tell(old ? "old" : "live");
}

/** The tab is hidden, and hears nothing until it is looked at. */
export function rests() {
  old = ago(0);
  why = "this tab rests while it is hidden";
  tell("resting");
}

/** The page has failed; what is shown stays in doubt until it is loaded again. */
export function isBroken(text) {
  broken ||= text;
  tell("incomplete");
}

function ago(milliseconds) {
  return new Date(clock() - milliseconds).toISOString();
}

function tell(state) {
  const shown = broken && state === "live" ? "incomplete" : state;
  document.body.dataset.live = word.textContent = shown;
  document.body.classList.toggle("old", Boolean(old));
  titleOld(Boolean(old || broken));
  line.hidden = !why && !broken;
  show(lost,
    broken ? h("p", { "data-key": "broken" }, said(broken), ": ", h("a", { href: location.pathname + location.search }, "reload it"), ".") : null,
    why ? h("span", { "data-key": "why" }, old ? h("strong", {}, "What is shown is old: ") : "", said(why)) : null);
  // Outside of the alert, which else would be read out each second.
  show(lostSince, old ? ["· for ", since(old)] : "");
}
