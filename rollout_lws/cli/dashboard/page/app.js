// The page: its address says what is shown, and one stream says what is true.

import { asked, listAddress, addressWith } from "./address.js";
import { delegate, h, show } from "./dom.js";
import { listView } from "./list.js";
import { releaseView } from "./release.js";
import { whenHidden } from "./sleep.js";
import { Stream } from "./stream.js";
import { said } from "./text.js";
import { clock, since, timeOfDay } from "./time.js";
import { setTitle, titleOld } from "./title.js";
import "./copy.js";

const main = document.getElementById("main");
const lost = document.getElementById("lost");
const word = document.getElementById("live-word");
let stream = null;
let view = null;
let path = "";
let trouble = "";
let old = "";

/** The view that an address names. */
function viewOf(address) {
  const parts = address.split("/").filter(Boolean).map(decodeURIComponent);
  return parts.length === 2 ? releaseView(main, parts[0], parts[1]) : listView(main);
}

function open() {
  stream?.close();
  view?.close?.();
  path = location.pathname;
  old = trouble = "";
  setTitle("Releases", "");
  look();
  view = viewOf(path);
  show(document.getElementById("where"), view.where ?? "");
  listen();
}

function listen() {
  stream = new Stream(view.stream, { ...view.on, trouble: hearTrouble }, lose, comeBack);
}

function look() {
  document.body.classList.toggle("wall", asked("wall") === "1");
  document.getElementById("home").setAttribute("href", listAddress());
  const wall = document.getElementById("wall");
  wall.textContent = asked("wall") ? "Full view" : "Wall view";
  wall.setAttribute("href", addressWith({ wall: asked("wall") ? "" : "1" }));
}

function comeBack(hello) {
  old = trouble = "";
  document.getElementById("cluster").textContent = hello.cluster;
  document.getElementById("read-only").hidden = !hello.readOnly;
  view.hello?.(hello);
  tell("live");
}

function lose(why, silent) {
  old ||= new Date(clock() - silent).toISOString();
  trouble = why;
  tell("lost");
}

/** The server is there, and does not see all of the cluster; "" when it does again. */
function hearTrouble(told) {
  trouble = told.message;
  old = trouble && told.old !== false ? old || new Date(clock()).toISOString() : "";
  tell(old ? "old" : "live");
}

function tell(state) {
  document.body.dataset.live = state;
  document.body.classList.toggle("old", Boolean(old));
  titleOld(Boolean(old));
  word.textContent = state;
  document.getElementById("trouble").hidden = !trouble;
  show(lost, old ? h("strong", {}, "What is shown is old: ") : "", trouble ? said(trouble) : "");
  // Outside of the alert, which else would be read out each second.
  show(document.getElementById("lost-since"), old ? ["· for ", since(old)] : "");
}

function moved() {
  if (location.pathname !== path) return open();
  look();
  view.moved?.();
}

/** Follows links within the page without loading it again. */
delegate(document, "click", "a[data-link]", (link, event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.href);
});

/** Goes to an address of this page, by a step in the browser's history. */
export function go(address) {
  const there = new URL(address, location.href);
  const leaves = there.pathname !== location.pathname;
  history.pushState(null, "", there);
  moved();
  if (!leaves) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

addEventListener("popstate", moved);
addEventListener("page:go", (event) => go(event.detail));
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const words = document.getElementById("words");
    if (!words) return;
    event.preventDefault();
    words.focus();
    words.select();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) view?.escape?.(event);
});
setInterval(() => {
  document.getElementById("clock").textContent = timeOfDay(clock());
}, 1000);
whenHidden(
  () => {
    stream.close();
    old = new Date(clock()).toISOString();
    trouble = "this tab rests while it is hidden";
    tell("resting");
  },
  listen,
);
open();
