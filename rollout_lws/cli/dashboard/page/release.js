// One release: its parts, each drawn again only when what it shows has changed.

import { Actions } from "./actions.js";
import { ActionsPart } from "./actions-part.js";
import { asked, listAddress, addressWith, go } from "./address.js";
import { route } from "./ask.js";
import { h } from "./dom.js";
import { Events } from "./events.js";
import { Gates } from "./gates.js";
import { Groups } from "./groups.js";
import { guard } from "./guard.js";
import { Headline } from "./headline.js";
import { History } from "./history.js";
import { Panel } from "./panel.js";
import { Steps } from "./steps.js";
import { visible } from "./text.js";
import { setTitle } from "./title.js";
import { Vitals } from "./vitals.js";
import { Weights } from "./weights.js";
import { toneOf } from "./words.js";

const ASKING = "Asking the cluster …";

export function releaseView(view, namespace, name) {
  let seen = null;
  let state = "";
  let isTold = false;
  const actions = new Actions(view, namespace, name, draw);
  const history = new History(view, namespace, name, actions, draw);
  const panel = new Panel(view, namespace, name);
  const groups = new Groups();
  const weights = new Weights(view);
  const gates = new Gates(actions);
  const events = new Events();
  const top = new Map([
    ["the headline", new Headline()], ["the actions", new ActionsPart(actions)], ["the steps", new Steps(actions)],
    ["the numbers", new Vitals()], ["the groups", groups],
  ]);
  const parts = new Map([...top, ["the course", weights], ["the gates", gates], ["the history", history]]);
  const drawn = new Map();
  setTitle(name, "");
  plain(ASKING);
  panel.open(asked("group"));

  /** A text in place of the parts. */
  function plain(...told) {
    view.content.replaceChildren(h("div", { class: "plain" },
      h("h1", {}, h("span", { class: "dim" }, `${namespace}/`), name), told.map((each) => h("p", {}, each))));
  }

  function take(told) {
    isTold = true;
    if (!seen) arrangeParts();
    announce(told);
    // Of hundreds of groups, to be compared by several parts.
    seen = { ...told, groupsTold: JSON.stringify(told.versions) };
    for (const each of [actions, history, panel]) guard("the release", () => each.take(seen));
    draw();
    entitle();
  }

  function arrangeParts() {
    view.content.replaceChildren(...[...top.values()].map((each) => each.element),
      h("div", { class: "measures" }, gates.element, weights.element, history.element),
      h("div", { class: "log" }, events.element));
  }

  function draw() {
    if (!seen || view.closed) return;
    for (const [what, part] of parts) guard(what, () => redraw(part));
  }

  function redraw(part) {
    const now = JSON.stringify(part.of(seen));
    if (drawn.get(part) === now) return;
    drawn.set(part, now);
    part.draw(seen);
  }

  function announce(told) {
    if (state && state !== told.state) document.getElementById("told").textContent = visible(`${name}: ${told.state}. ${told.message}`);
    state = told.state;
  }

  function entitle() {
    const at = seen.ending || (seen.releasing && seen.at ? `${seen.at}/${seen.steps.length}` : "");
    setTitle([seen.state || "Unknown", at, "·", name].filter(Boolean).join(" "), toneOf(seen.state));
  }

  function gone({ message }) {
    isTold = true;
    seen = null;
    drawn.clear();
    panel.open("");
    actions.gone(message);
    plain(visible(message), h("a", { href: listAddress(), "data-link": true }, "All releases"));
    setTitle(`gone · ${name}`, "");
  }

  return {
    stream: route("stream", "release", namespace, name),
    where: [h("span", { class: "dim" }, " › "), `${namespace}/${name}`],
    hello() {
      for (const each of [actions, history, panel]) each.again();
    },
    troubled({ message }) {
      if (!isTold) plain(message ? "This release cannot be shown yet, for the reason above." : ASKING);
    },
    on: { release: take, gone, events: (told) => events.take(told) },
    moved() {
      if (!seen) return;
      const before = panel.group;
      const other = panel.open(asked("group"));
      draw();
      events.draw();
      if (other && panel.group) document.getElementById("panel-title").focus({ preventScroll: true });
      else if (other) groups.focus(before);
    },
    escape() {
      if (asked("group")) go(addressWith({ group: "" }));
    },
  };
}
