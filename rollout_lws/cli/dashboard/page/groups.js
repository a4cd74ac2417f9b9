// Every group of every version as a cell. A cell leads to the panel of its group; the arrow keys go from cell to cell.

import { asked, addressWith } from "./address.js";
import { arrange, delegate, h, show, slug, update } from "./dom.js";
import { GROUP_STATES, plural } from "./words.js";

/** From so many groups of a version on, cells are smaller. */
const MANY = 40;
const BACK = ["ArrowLeft", "ArrowUp"];
const ON = ["ArrowRight", "ArrowDown"];

export class Groups {
  #box = h("div", { class: "bands" });
  #bands = new Map();
  element = h("section", { class: "card groups-part", "aria-labelledby": "groups-title" },
    h("div", { class: "part-head" }, h("h2", { id: "groups-title" }, "Groups"), legend()),
    h("p", { class: "unseen", id: "cells-help" }, "The arrow keys go from group to group."), this.#box);

  constructor() {
    delegate(this.#box, "keydown", ".cell a", (cell, event) => this.#step(cell, event));
    delegate(this.#box, "focusin", ".cell a", (cell) => stand(cell));
  }

  of(seen) {
    return [seen.groupsTold, location.search];
  }

  draw(seen) {
    this.element.hidden = !seen.versions.length;
    const bands = new Map();
    for (const version of seen.versions) {
      const key = `${version.workload}/${version.role}/${version.revision}`;
      const band = this.#bands.get(key) ?? new Band(`band-${slug(key)}`);
      band.draw(version);
      bands.set(key, band);
    }
    this.#bands = bands;
    arrange(this.#box, [...bands.values()].map((each) => each.element));
  }

  /** Puts the focus on the cell of a group. */
  focus(group) {
    this.#box.querySelector(`[data-group="${CSS.escape(group)}"]`)?.focus();
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

/** The groups of one version. */
class Band {
  #facts = h("div");
  #cells;
  #known = new Map();

  constructor(id) {
    this.id = id;
    this.#cells = h("ul", { "aria-labelledby": id, "aria-describedby": "cells-help" });
    this.element = h("div", {}, this.#facts, this.#cells);
  }

  draw(version) {
    const missing = Math.max(0, version.asked - version.groups.length);
    this.element.className = `band ${version.new ? "new" : "old"}`;
    this.#cells.className = version.groups.length + missing > MANY ? "cells many" : "cells";
    show(this.#facts, facts(version, missing, this.id));
    const known = new Map();
    version.groups.forEach((group, place) => {
      // While a group is replaced there may be another one of its index.
      const again = place && version.groups[place - 1].index === group.index;
      const key = again ? `${group.index}/again` : String(group.index);
      known.set(key, this.#cell(key, version.workload, group));
    });
    for (let place = 0; place < missing; place += 1) known.set(`missing/${place}`, this.#known.get(`missing/${place}`) ?? none());
    this.#known = known;
    arrange(this.#cells, [...known.values()].map((each) => each.element));
    // One cell is reached by Tab, the others by arrows.
    if (!this.#cells.querySelector("a[tabindex='0']")) this.#cells.querySelector("a")?.setAttribute("tabindex", "0");
  }

  /** The cell of a group, drawn again only if it shows something else. */
  #cell(key, workload, group) {
    const told = JSON.stringify([group, location.search]);
    const before = this.#known.get(key);
    if (before?.told === told) return before;
    const drawn = cell(workload, group);
    if (before) update(before.element, drawn);
    return { told, element: before?.element ?? drawn };
  }
}

function none() {
  return { told: "", element: h("li", { class: "cell missing", "aria-hidden": "true" }) };
}

function facts(version, missing, id) {
  return [
    h("h3", { id },
      h("span", { class: "swatch", "aria-hidden": "true" }), version.workload, " ",
      h("span", { class: "role" }, version.role || "version"), " ",
      version.revision ? h("code", { class: "dim" }, version.revision) : null),
    h("p", { class: "band-facts" },
      version.weight ? h("b", {}, `${version.weight} of requests`) : null,
      h("span", {}, counts(version, missing)),
      version.info ? h("span", { class: "dim" }, version.info) : null),
  ];
}

/** Makes a cell the one that Tab leads to. */
function stand(cell) {
  for (const each of cell.closest(".cells").querySelectorAll("a[tabindex='0']")) each.setAttribute("tabindex", "-1");
  cell.setAttribute("tabindex", "0");
}

function counts(version, missing) {
  const found = GROUP_STATES.map(({ state }) => [state, version.groups.filter((each) => each.state === state).length]);
  const words = found.filter(([state, count]) => count || state === "ready").map(([state, count]) =>
    state === "ready" ? `${count} of ${Math.max(version.asked, version.groups.length)} ready` : `${count} ${state}`);
  return [...words, missing ? `${missing} not there yet` : ""].filter(Boolean).join(", ");
}

function cell(workload, group) {
  const address = `${workload}/${group.index}`;
  const { mark } = GROUP_STATES.find((each) => each.state === group.state) ?? { mark: "?" };
  const open = asked("group") === address;
  const words = [`group ${group.index}`, group.state, group.why, group.node ? `on ${group.node}` : "", group.pods > 1 ? plural(group.pods, "pod") : ""];
  return h("li", { class: `cell ${group.state}` },
    h("a", {
      href: addressWith({ group: address }), "data-link": true, "data-group": address, title: words.filter(Boolean).join(", "),
      "aria-label": words.filter(Boolean).join(", "), "aria-current": open ? "true" : null, tabindex: "-1",
    }, h("span", { class: "index" }, brief(String(group.index))), mark ? h("i", {}, mark) : null));
}

/** Groups without numbers have keys, of which the end tells one from another. */
function brief(index) {
  return index.length > 4 ? `…${index.slice(-3)}` : index;
}
