// What has happened, newest first.

import { asked, set } from "./address.js";
import { delegate, h, show } from "./dom.js";
import { long, said } from "./text.js";
import { at, since, timeOfDay } from "./time.js";

/** Lines that are shown at first. */
const FEW = 10;

export class Events {
  #known = new Map();
  #all = false;
  #list = h("ol", { class: "events", "aria-labelledby": "events-title" });
  #foot = h("p", { class: "foot" });
  #count = h("span", { class: "dim" });
  #warnings = h("input", { type: "checkbox", id: "warnings" });

  constructor() {
    this.element = h("section", { class: "card events-part", "aria-labelledby": "events-title" },
      h("div", { class: "part-head" }, h("h2", { id: "events-title" }, "Events"), this.#count,
        h("label", { class: "check tool" }, this.#warnings, " warnings only")),
      this.#list, this.#foot);
    this.#warnings.addEventListener("change", () => set({ events: this.#warnings.checked ? "warnings" : "" }));
    delegate(this.#foot, "click", "button", () => {
      this.#all = !this.#all;
      this.draw();
    });
    this.draw();
  }

  take(told) {
    if (told.all) this.#known.clear();
    for (const each of told.events) this.#known.set(each.uid, each);
    this.draw();
  }

  draw() {
    const only = asked("events") === "warnings";
    this.#warnings.checked = only;
    const every = [...this.#known.values()];
    const warnings = every.filter((each) => each.type === "Warning");
    const found = (only ? warnings : every).sort((a, b) => at(b.last) - at(a.last) || (a.uid < b.uid ? -1 : 1));
    const shown = this.#all ? found : found.slice(0, FEW);
    this.#count.textContent = every.length ? `${every.length}, ${warnings.length} of them warnings` : "";
    show(this.#list, shown.map(line));
    const more = found.length - FEW;
    show(this.#foot, found.length ? null : h("span", { class: "dim" }, only ? "No warnings." : "None yet."),
      more > 0 ? h("button", { type: "button", class: "link", "aria-expanded": String(this.#all) },
        this.#all ? "Show the newest alone" : `Show ${more} older`) : null);
  }
}

function line(each) {
  const warns = each.type === "Warning";
  // What controllers of workloads tell of each group takes less room than what the release tells.
  const minor = !warns && !each.about.startsWith("Rollout/");
  return h("li", { class: warns ? "warning" : minor ? "minor" : "", "data-key": each.uid },
    h("span", { class: "when" }, since(each.last), h("small", { class: "dim" }, Number.isNaN(at(each.last)) ? "" : timeOfDay(at(each.last)))),
    h("span", { class: "mark", "aria-hidden": "true" }, warns ? "!" : ""),
    h("div", {},
      h("p", {}, warns ? h("span", { class: "unseen" }, "Warning: ") : null, h("b", {}, said(each.reason)), " ",
        h("span", { class: "dim" }, said(each.about), each.count > 1 ? ` ×${each.count}` : "")), " ",
      long(each.message, `event/${each.uid}`)));
}
