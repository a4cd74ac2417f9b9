// Every group of every version as a cell. A cell leads to the panel of its group; the arrow keys go from cell to cell.

import { asked, with_ } from "./address.js";
import { delegate, h, show } from "./dom.js";
import { GROUP_STATES, plural } from "./words.js";

/** From so many groups of a version on, cells are smaller. */
const MANY = 40;
const BACK = ["ArrowLeft", "ArrowUp"];
const ON = ["ArrowRight", "ArrowDown"];

export class Groups {
  #box = h("div", { class: "bands" });
  element = h("section", { class: "card groups-part", "aria-labelledby": "groups-title" },
    h("div", { class: "part-head" }, h("h2", { id: "groups-title" }, "Groups"), legend()),
    h("p", { class: "unseen", id: "cells-help" }, "The arrow keys go from group to group."), this.#box);

  constructor() {
    delegate(this.#box, "keydown", ".cell a", (cell, event) => this.#step(cell, event));
    delegate(this.#box, "focusin", ".cell a", (cell) => this.#stand(cell));
  }

  of(seen) {
    return [seen.versions, asked("group"), location.search];
  }

  draw(seen) {
    this.element.hidden = !seen.versions.length;
    show(this.#box, seen.versions.map((each, index) => band(each, index)));
    // One cell of each version is reached by Tab, the others by arrows.
    for (const cells of this.#box.querySelectorAll(".cells")) {
      if (!cells.querySelector("a[tabindex='0']")) cells.querySelector("a")?.setAttribute("tabindex", "0");
    }
  }

  /** Puts the focus on the cell of a group. */
  focus(group) {
    this.#box.querySelector(`[data-group="${CSS.escape(group)}"]`)?.focus();
  }

  #stand(cell) {
    for (const each of cell.closest(".cells").querySelectorAll("a[tabindex='0']")) each.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
  }

  #step(cell, event) {
    const cells = [...cell.closest(".cells").querySelectorAll("a")];
    const at = cells.indexOf(cell);
    const to = ON.includes(event.key) ? at + 1 : BACK.includes(event.key) ? at - 1 : { Home: 0, End: cells.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    cells[Math.min(cells.length - 1, Math.max(0, to))].focus();
  }
}

function legend() {
  return h("ul", { class: "legend", "aria-hidden": "true" }, GROUP_STATES.map(({ state, mark }) =>
    h("li", {}, h("span", { class: `cell ${state}` }, h("i", {}, mark)), state)));
}

function band(version, index) {
  const missing = Math.max(0, version.asked - version.groups.length);
  const id = `band-${index}`;
  return h("div", { class: `band ${version.new ? "new" : "old"}`, "data-key": `${version.workload}/${version.role}/${version.revision}` },
    h("h3", { id },
      h("span", { class: "swatch", "aria-hidden": "true" }), version.workload, " ",
      h("span", { class: "role" }, version.role || "version"), " ",
      version.revision ? h("code", { class: "dim" }, version.revision) : null),
    h("p", { class: "band-facts" },
      version.weight ? h("b", {}, `${version.weight} of requests`) : null,
      h("span", {}, counts(version, missing)),
      version.info ? h("span", { class: "dim" }, version.info) : null),
    h("ul", { class: `cells ${version.groups.length + missing > MANY ? "many" : ""}`, "aria-labelledby": id, "aria-describedby": "cells-help" },
      version.groups.map((group) => cell(version, group)),
      Array.from({ length: missing }, (_, place) => h("li", { class: "cell missing", "data-key": `missing/${place}`, "aria-hidden": "true" }))));
}

function counts(version, missing) {
  const found = GROUP_STATES.map(({ state }) => [state, version.groups.filter((each) => each.state === state).length]);
  const words = found.filter(([state, count]) => count || state === "ready").map(([state, count]) =>
    state === "ready" ? `${count} of ${Math.max(version.asked, version.groups.length)} ready` : `${count} ${state}`);
  return [...words, missing ? `${missing} not there yet` : ""].filter(Boolean).join(", ");
}

function cell(version, group) {
  const address = `${version.workload}/${group.index}`;
  const { mark } = GROUP_STATES.find((each) => each.state === group.state) ?? { mark: "?" };
  const open = asked("group") === address;
  const words = [`group ${group.index}`, group.state, group.why, group.node ? `on ${group.node}` : "", group.pods > 1 ? plural(group.pods, "pod") : ""];
  return h("li", { class: `cell ${group.state}`, "data-key": `${address}/${group.created}` },
    h("a", {
      href: with_({ group: address }), "data-link": true, "data-group": address, title: words.filter(Boolean).join(", "),
      "aria-label": words.filter(Boolean).join(", "), "aria-current": open ? "true" : null, tabindex: "-1",
    }, h("span", { class: "index" }, brief(String(group.index))), mark ? h("i", {}, mark) : null));
}

/** Groups without numbers have keys, of which the end tells one from another. */
function brief(index) {
  return index.length > 4 ? `…${index.slice(-3)}` : index;
}
