// The versions that are stored, what differs between them, and the way back to each.

import { h, show } from "./dom.js";
import { long, said } from "./text.js";
import { since } from "./time.js";

export class History {
  #versions = null;
  #trouble = "";
  #askedFor = "";
  element = h("section", { class: "card history-part tool", "aria-labelledby": "history-title" });

  constructor(namespace, name, actions, changed) {
    Object.assign(this, { namespace, name, actions, changed });
  }

  of(seen) {
    return [this.#versions, this.#trouble, this.actions.state, seen.offers];
  }

  /** Asks for the history again when there may be another version, or another role for one. */
  take(seen) {
    const versions = seen.versions.map((each) => [each.revision, each.role]);
    const now = JSON.stringify([seen.release, seen.releasing, seen.ending, seen.state === "Aborted", versions]);
    if (now === this.#askedFor) return;
    this.#askedFor = now;
    this.#ask(now);
  }

  /** Asks again, since what was heard last may be old. */
  again() {
    this.#askedFor = "";
  }

  async #ask(now) {
    try {
      const answer = await fetch(`/history/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}`);
      const told = await answer.json();
      if (now !== this.#askedFor) return;
      if (answer.ok) [this.#versions, this.#trouble] = [told.versions, ""];
      else this.#trouble = told.refused;
    } catch (error) {
      this.#trouble = `the history cannot be read: ${error.message}`;
    }
    this.changed();
  }

  draw() {
    const found = this.#versions ?? [];
    this.element.hidden = !this.#versions && !this.#trouble;
    const undos = found.map((each) => this.actions.undoTo(each.number)).filter(Boolean);
    show(this.element,
      h("h2", { id: "history-title" }, "History"),
      this.#trouble ? h("p", { class: "dim" }, said(this.#trouble)) : null,
      this.#versions && !found.length ? h("p", { class: "dim" }, "No version is stored yet.") : null,
      h("ol", { class: "history" }, found.map((each) => version(each, this.actions))),
      this.actions.result(...undos.map((each) => each.key)));
  }
}

function version(each, actions) {
  const undo = ["stable", "new"].includes(each.role) ? null : actions.undoTo(each.number);
  return h("li", { "data-key": `version/${each.number}` },
    h("div", { class: "version-head" },
      h("b", {}, `${each.number}`), each.role ? h("span", { class: `badge ${each.role}` }, each.role) : null,
      each.left ? h("span", { class: "badge" }, each.left) : null,
      h("code", { class: "dim" }, each.revision || each.version),
      each.created ? h("span", { class: "dim" }, since(each.created), " ago") : null,
      undo ? actions.button(undo, "Undo to this", "small") : null),
    h("p", { class: "images" }, each.images.map((image) => h("code", {}, said(image)))),
    each.change ? h("div", { class: "change" }, h("span", { class: "dim" }, "Changed: "), long(each.change, `change/${each.number}`, "span")) : null);
}
