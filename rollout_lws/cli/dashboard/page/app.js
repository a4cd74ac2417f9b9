// The page: its address says what is shown, and one stream says what is true.

import { MOVED, asked, addressWith, go, listAddress } from "./address.js";
import { delegate, show } from "./dom.js";
import { guard, whenBroken } from "./guard.js";
import { listView } from "./list.js";
import { releaseView } from "./release.js";
import { whenHidden } from "./sleep.js";
import * as standing from "./standing.js";
import { Stream } from "./stream.js";
import { clock, timeOfDay } from "./time.js";
import { setTitle } from "./title.js";
import { isOtherVersion } from "./version.js";
import { View } from "./view.js";
import "./copy.js";

const main = document.getElementById("main");
let stream = null;
/** What is shown, and the view that it is shown in. */
let shown = null;
let view = null;
let path = "";

function open() {
  stream?.close();
  view?.close();
  path = location.pathname;
  standing.begins();
  setTitle("Releases", "");
  look();
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  view = new View(main, parts.length === 2 ? "release-view" : "list-view");
  shown = parts.length === 2 ? releaseView(view, ...parts) : listView(view);
  show(document.getElementById("where"), shown.where ?? "");
  listen();
}

function listen() {
  const trouble = (told) => {
    standing.isTroubled(told);
    shown.troubled?.(told);
  };
  stream = new Stream(shown.stream, { ...shown.on, trouble }, standing.isLost, comeBack);
}

function look() {
  document.body.classList.toggle("wall", asked("wall") === "1");
  document.getElementById("home").setAttribute("href", listAddress());
  const wall = document.getElementById("wall");
  wall.textContent = asked("wall") ? "Full view" : "Wall view";
  wall.setAttribute("href", addressWith({ wall: asked("wall") ? "" : "1" }));
}

function comeBack(hello) {
  if (isOtherVersion(hello.version)) return;
  document.getElementById("cluster").textContent = hello.cluster;
  document.getElementById("read-only").hidden = !hello.readOnly;
  standing.isLive();
  shown.hello?.(hello);
}

function moved() {
  if (location.pathname !== path) return open();
  look();
  shown.moved();
}

/** Follows links within the page without loading it again. */
delegate(document, "click", "a[data-link]", (link, event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.href);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const words = document.getElementById("words");
    if (!words) return;
    event.preventDefault();
    words.focus();
    words.select();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) shown.escape?.();
});
for (const type of ["popstate", MOVED]) addEventListener(type, moved);
setInterval(() => {
  document.getElementById("clock").textContent = timeOfDay(clock());
}, 1000);
whenHidden(
  () => {
    stream.close();
    standing.rests();
  },
  listen,
);
whenBroken(standing.isBroken);
guard("this address", open);
