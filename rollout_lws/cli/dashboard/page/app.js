// The page: its address says what is shown, one stream says what is true.

import { h, show } from "./dom.js";
import { setClock } from "./time.js";
import { listView } from "./list.js";
import { releaseView } from "./release.js";

const main = document.getElementById("main");
const lost = document.getElementById("lost");
let stream = null;
let view = null;

/** The view that an address names. */
function viewOf(path) {
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return parts.length === 2 ? releaseView(main, parts[0], parts[1]) : listView(main);
}

function open() {
  close();
  view = viewOf(location.pathname);
  stream = new EventSource(view.stream);
  stream.addEventListener("hello", (event) => {
    const hello = JSON.parse(event.data);
    setClock(hello.now);
    document.getElementById("cluster").textContent = hello.cluster;
    say("");
  });
  stream.addEventListener("trouble", (event) => say(JSON.parse(event.data).message, "old"));
  for (const kind of view.kinds) stream.addEventListener(kind, (event) => view.take(kind, JSON.parse(event.data)));
  stream.onerror = () => {
    say("rollout-lws dashboard does not answer: what is shown is old; trying again");
    if (stream && stream.readyState === EventSource.CLOSED) setTimeout(again, 2000);
  };
}

function close() {
  if (stream) stream.close();
  stream = null;
  if (view && view.close) view.close();
}

async function again() {
  if (stream && stream.readyState !== EventSource.CLOSED) return;
  try {
    const answer = await fetch(view.stream, { method: "HEAD" });
    if (answer.status === 401) return say("this page is not let in any more: open the address that rollout-lws dashboard printed");
  } catch {
    // It is not back yet.
  }
  open();
}

function say(message) {
  lost.textContent = message;
  document.body.classList.toggle("old", Boolean(message));
}

/** Follows links within the page without loading it anew. */
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-link]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  open();
  main.focus();
});
addEventListener("popstate", open);
// A tab that nobody sees holds no connection, of which a browser has six for all tabs.
let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(close, 30000);
  else if (!stream) open();
});
open();
