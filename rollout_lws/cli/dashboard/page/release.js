// One release: its parts, each drawn again only when what it shows has changed.

import { asked, listAddress, addressWith } from "./address.js";
import { Actions, ActionsPart } from "./actions.js";
import { h } from "./dom.js";
import { Events } from "./events.js";
import { Gates } from "./gates.js";
import { Groups } from "./groups.js";
import { Headline } from "./headline.js";
import { History } from "./history.js";
import { Panel } from "./panel.js";
import { Steps } from "./steps.js";
import { setTitle } from "./title.js";
import { Vitals } from "./vitals.js";
import { Weights } from "./weights.js";
import { toneOf } from "./words.js";

export function releaseView(main, namespace, name) {
  let seen = null;
  let state = "";
  const actions = new Actions(main, namespace, name, draw);
  const history = new History(namespace, name, actions, draw);
  const panel = new Panel(namespace, name);
  const groups = new Groups();
  const weights = new Weights();
  const events = new Events();
  const gates = new Gates(actions);
  const top = [new Headline(), new ActionsPart(actions), new Steps(actions), new Vitals(), groups];
  const parts = [...top, weights, gates, history];
  const drawn = new Map();
  const waiting = h("div", { class: "plain" }, h("h1", {}, h("span", { class: "dim" }, `${namespace}/`), name), h("p", { class: "dim" }, "Asking the cluster …"));
  main.className = "release-view";
  main.replaceChildren(waiting);
  setTitle(name, "");
  panel.address();

  function take(told) {
    if (!seen) arrangeParts();
    announce(told);
    // Of hundreds of groups, to be compared by several parts.
    seen = { ...told, groupsTold: JSON.stringify(told.versions) };
    actions.take(seen);
    history.take(seen);
    panel.take(seen);
    draw();
    entitle();
  }

  function arrangeParts() {
    main.replaceChildren(...top.map((each) => each.element),
      h("div", { class: "measures" }, gates.element, weights.element, history.element),
      h("div", { class: "log" }, events.element),
      panel.element);
  }

  function draw() {
    if (!seen) return;
    for (const part of parts) {
      const now = JSON.stringify(part.of(seen));
      if (drawn.get(part) === now) continue;
      drawn.set(part, now);
      part.draw(seen);
    }
  }

  function announce(told) {
    if (state && state !== told.state) document.getElementById("told").textContent = `${name}: ${told.state}. ${told.message}`;
    state = told.state;
  }

  function entitle() {
    const at = seen.ending || (seen.releasing && seen.at ? `${seen.at}/${seen.steps.length}` : "");
    setTitle([seen.state || "Unknown", at, "·", name].filter(Boolean).join(" "), toneOf(seen.state));
  }

  function gone(told) {
    seen = null;
    drawn.clear();
    main.replaceChildren(h("div", { class: "plain" }, h("h1", {}, h("span", { class: "dim" }, `${namespace}/`), name), h("p", {}, told.message),
      h("p", {}, h("a", { href: listAddress(), "data-link": true }, "All releases"))));
    setTitle(`gone · ${name}`, "");
  }

  return {
    stream: `/stream/release/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`,
    where: [h("span", { class: "dim" }, " › "), `${namespace}/${name}`],
    hello() {
      for (const each of [actions, history, panel]) each.again();
    },
    on: { release: take, gone, events: (told) => events.take(told) },
    moved() {
      const before = panel.group;
      const other = panel.address();
      draw();
      events.draw();
      if (other && panel.group) document.getElementById("panel-title").focus({ preventScroll: true });
      else if (other) groups.focus(before);
    },
    escape() {
      if (asked("group")) dispatchEvent(new CustomEvent("page:go", { detail: addressWith({ group: "" }) }));
    },
    close() {
      panel.close();
      weights.close();
      document.getElementById("question").close();
    },
  };
}
