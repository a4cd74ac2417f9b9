// Which Rollouts the list shows: words, a namespace, and states; all of it in the address.

import { asked, set } from "./address.js";
import { delegate, h, show } from "./dom.js";
import { icon } from "./icons.js";
import { KINDS, kindOf, toneOf, urgency } from "./words.js";

/** The filters above the list, which are read from the address whenever it changes. */
export class Filters {
  #words;
  #namespaces;
  #chips = h("div", { class: "chips", role: "group", "aria-label": "States" });

  constructor() {
    this.#words = h("input", {
      type: "search", id: "words", placeholder: "Filter", autocomplete: "off", spellcheck: "false",
      "aria-label": "Filter by name, namespace, workload or state", "aria-keyshortcuts": "/",
    });
    this.#namespaces = h("select", { id: "namespace", "aria-label": "Namespace" });
    this.element = h("div", { class: "tools", role: "search" },
      h("div", { class: "fields" }, h("span", { class: "search" }, this.#words, h("kbd", { "aria-hidden": "true" }, "/")), this.#namespaces),
      this.#chips);
    this.read();
    this.#words.addEventListener("input", () => set({ q: this.#words.value.trim() }));
    this.#namespaces.addEventListener("change", () => set({ ns: this.#namespaces.value }));
    delegate(this.#chips, "click", "button", (chip) => this.#toggle(chip.dataset.state));
  }

  /** Takes the filters from the address. */
  read() {
    this.words = asked("q");
    this.namespace = asked("ns");
    this.states = new Set(asked("state").split(",").filter(Boolean));
    if (this.#words.value.trim() !== this.words) this.#words.value = this.words;
  }

  #toggle(state) {
    const states = new Set(this.states);
    if (!state) states.clear();
    else if (states.has(state)) states.delete(state);
    else states.add(state);
    set({ state: [...states].join(",") });
  }

  /** Whether a row is wanted; `text` is what words are looked for in. */
  fits(row, text) {
    return this.#fitsButState(row, text) && this.#fitsState(row);
  }

  #fitsButState(row, text) {
    if (this.namespace && row.namespace !== this.namespace) return false;
    return this.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  #fitsState(row) {
    return !this.states.size || this.states.has(row.state || "Unknown") || this.states.has(kindOf(row.state));
  }

  /** Shows how many of the rows, each with the text that words are looked for in, would be left by each filter. */
  draw(rows) {
    const left = rows.filter(([row, text]) => this.#fitsButState(row, text)).map(([row]) => row);
    show(this.#chips, this.#chip("", "All", left.length, "", !this.states.size),
      KINDS.slice(0, 2).map((kind) => {
        const count = left.filter((row) => kindOf(row.state) === kind.name).length;
        return count || this.states.has(kind.name) ? this.#chip(kind.name, kind.title, count, "", this.states.has(kind.name)) : null;
      }),
      h("span", { class: "gap", "data-key": "gap" }),
      this.#statesOf(left).map(([state, count]) => this.#chip(state, state, count, toneOf(state), this.states.has(state))));
    this.#drawNamespaces(rows);
  }

  #statesOf(rows) {
    const counts = new Map([...this.states].filter((each) => !KINDS.some((kind) => kind.name === each)).map((each) => [each, 0]));
    for (const { state } of rows) counts.set(state || "Unknown", (counts.get(state || "Unknown") ?? 0) + 1);
    const rank = (state) => 100 * KINDS.findIndex((kind) => kind.name === kindOf(state)) + urgency(state);
    return [...counts].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  }

  #chip(state, label, count, tone, pressed) {
    return h("button", { type: "button", class: `chip ${tone}`, "data-state": state, "data-key": `chip/${state}`, "aria-pressed": String(pressed) },
      tone ? icon(tone) : null, label, " ", h("b", {}, String(count)));
  }

  #drawNamespaces(rows) {
    const names = [...new Set(rows.map(([row]) => row.namespace))].sort();
    if (this.namespace && !names.includes(this.namespace)) names.push(this.namespace);
    this.#namespaces.hidden = names.length < 2 && !this.namespace;
    show(this.#namespaces, h("option", { value: "", "data-key": "/" }, "All namespaces"),
      names.map((name) => h("option", { value: name, "data-key": `/${name}` }, name)));
    if (this.#namespaces.value !== this.namespace) this.#namespaces.value = this.namespace;
  }
}
