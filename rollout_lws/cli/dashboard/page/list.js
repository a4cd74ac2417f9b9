// The list of all Rollouts that one may see: those that need a person first.

import { listAddress, releaseAddress } from "./address.js";
import { route } from "./ask.js";
import { arrange, delegate, h, update } from "./dom.js";
import * as figures from "./figures.js";
import { Filters } from "./filters.js";
import { guard } from "./guard.js";
import { stateOf } from "./icons.js";
import { said } from "./text.js";
import { at, since } from "./time.js";
import { setTitle } from "./title.js";
import { KINDS, kindOf, plural, toneOf, urgency } from "./words.js";

/** Rows that are made before the browser draws, so that the first ones are there at once. */
const AT_ONCE = 40;
const COLUMNS = ["Rollout", "State", "Step", "Traffic", "Groups", "For", "Waits for"];

export function listView(view) {
  // By UID: the row as told, the text that words are looked for in, and its element.
  const known = new Map();
  let frame = 0;
  // What all links keep of the address.
  let links = listAddress();
  const filters = new Filters();
  const bodies = KINDS.map((kind) => body(kind));
  const count = h("p", { class: "dim count", role: "status" }, "Asking the cluster …");
  const where = h("p", { class: "dim", hidden: true });
  const none = h("p", { class: "plain", hidden: true });
  view.content.append(
    h("div", { class: "list-head" }, h("h1", {}, "Releases"), where, count),
    filters.element,
    h("table", { class: "list", role: "table", "aria-label": "Rollouts" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map((each) => h("th", { scope: "col", role: "columnheader" }, each)))),
      bodies.map((each) => each.element)),
    none);
  delegate(view.content, "click", "tbody tr[data-key]", follow);
  view.closing(() => cancelAnimationFrame(frame));

  function take(told) {
    if (told.all) {
      const uids = new Set(told.rows.map((row) => row.uid));
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    }
    for (const row of told.rows) learn(row);
    for (const uid of told.gone) known.delete(uid);
    draw();
  }

  function learn(row) {
    const entry = known.get(row.uid) ?? { element: null };
    const text = `${row.namespace}/${row.name} ${row.state} ${row.workload}`.toLowerCase();
    const told = JSON.stringify([row, links]);
    if (entry.told === told) return;
    if (entry.element) update(entry.element, line(row));
    known.set(row.uid, { row, text, told, element: entry.element });
  }

  function draw() {
    const every = [...known.values()];
    const wanted = every.filter(({ row, text }) => filters.fits(row, text));
    drawRows(wanted);
    filters.draw(every.map(({ row, text }) => [row, text]));
    count.textContent = wanted.length === every.length ? plural(every.length, "Rollout") : `${wanted.length} of ${plural(every.length, "Rollout")}`;
    none.hidden = wanted.length > 0;
    none.textContent = every.length ? "None fits these filters." : "There is no Rollout here yet: rollout-lws init makes one.";
    const waiting = every.filter(({ row }) => kindOf(row.state) === "person");
    const tone = waiting.some(({ row }) => toneOf(row.state) === "bad") ? "bad" : waiting.length ? "waits" : "";
    setTitle(waiting.length ? `${waiting.length} to look at · Releases` : "Releases", tone);
  }

  function drawRows(wanted) {
    let left = AT_ONCE;
    let missing = false;
    for (const each of bodies) {
      const entries = wanted.filter(({ row }) => kindOf(row.state) === each.kind.name).sort(before);
      const there = entries.filter((entry) => entry.element || left-- > 0);
      for (const entry of there) entry.element ??= line(entry.row);
      missing ||= there.length < entries.length;
      each.draw(there, entries.length);
    }
    cancelAnimationFrame(frame);
    if (missing) frame = requestAnimationFrame(() => drawRows(wanted));
  }

  return {
    stream: route("stream", "list"),
    on: { rows: take },
    hello({ namespace }) {
      where.hidden = !namespace;
      where.textContent = `in namespace ${namespace}`;
    },
    moved() {
      filters.read();
      if (links !== listAddress()) {
        links = listAddress();
        for (const { row } of known.values()) learn(row);
      }
      draw();
    },
  };
}

/** The rows of one kind, with their heading. */
function body(kind) {
  const number = h("span", { class: "number" });
  const heading = h("tr", { role: "row", class: "kind" }, h("th", { scope: "rowgroup", role: "rowheader" }, kind.title, " ", number));
  const element = h("tbody", { role: "rowgroup", class: kind.name, hidden: true }, heading);
  return {
    kind,
    element,
    draw(entries, count) {
      element.hidden = !count;
      number.textContent = String(count);
      arrange(element, [heading, ...entries.map((entry) => entry.element)]);
    },
  };
}

/** The most urgent first, of these the one that waits the longest; others by name. */
function before({ row: a }, { row: b }) {
  const urgent = urgency(a.state) - urgency(b.state);
  if (urgent) return urgent;
  const waited = kindOf(a.state) === "person" ? at(a.since) - at(b.since) : 0;
  if (waited) return waited;
  return `${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1;
}

/** The row of one Rollout; one that cannot be shown does not hide the others. */
function line(row) {
  const tone = toneOf(row.state);
  return h("tr", { "data-key": row.uid, role: "row", class: tone },
    h("th", { scope: "row", role: "rowheader", class: "name" },
      h("a", { href: releaseAddress(row.namespace, row.name), "data-link": true },
        h("span", { class: "dim" }, `${row.namespace}/`), h("wbr"), row.name)),
    guard(`all of ${row.namespace}/${row.name}`, () => cells(row, tone)));
}

function cells(row, tone) {
  return [
    cell("state-cell", stateOf(row.state)),
    cell("step", row.step && row.steps ? [figures.steps(row.steps, row.at, tone), h("span", {}, row.step)] : null),
    cell("traffic", row.weight === null ? traffic(row) : [figures.share(row.weight), h("span", {}, `${row.weight}%`)]),
    cell("groups", counted("new", row.new), counted("stable", row.stable)),
    cell("for", since(row.since)),
    cell("message", said(row.message)),
  ];
}

function cell(name, ...children) {
  return h("td", { role: "cell", class: name }, ...children);
}

function traffic(row) {
  return row.traffic ? h("span", {}, row.traffic) : null;
}

function counted(name, groups) {
  if (!groups || !(groups.total ?? 0)) return null;
  return h("span", { class: (groups.ready ?? 0) < groups.total ? "short" : "" }, h("small", { class: "dim" }, name), ` ${groups.ready ?? 0}/${groups.total}`);
}

/** A click anywhere in a row goes where its name leads, unless a text is being selected. */
function follow(row, event) {
  if (event.target.closest("a, button") || String(getSelection())) return;
  row.querySelector("a").click();
}
