// The versions that are stored, what differs between them, and the way back to each.

import { Answer } from "./answer.js";
import { route } from "./ask.js";
import { delegate, h, show } from "./dom.js";
import { long, said } from "./text.js";
import { since } from "./time.js";

export class History {
  #answer;
  element = h("section", { class: "card history-part tool", "aria-labelledby": "history-title" });

  constructor(view, namespace, name, actions, changed) {
    Object.assign(this, { namespace, name, actions });
    this.#answer = new Answer(view, () => {
      actions.versions = this.#answer.value?.versions ?? [];
      changed();
    });
    delegate(this.element, "click", "[data-again]", () => this.again());
  }

  of(seen) {
    return [this.#answer.value, this.#answer.trouble, this.actions.state, seen.offers];
  }

  /** Asks for the history again when there may be another version, or another role for one. */
  take(seen) {
    const versions = seen.versions.map((each) => [each.revision, each.role]);
    const about = JSON.stringify([seen.release, seen.releasing, seen.ending, seen.state === "Aborted", versions]);
    this.#answer.keep(route("history", this.namespace, this.name), about);
  }

  /** Asks again, since what was told last may be old. */
  again() {
    this.#answer.again();
  }

  draw() {
    const { value, trouble } = this.#answer;
    const found = value?.versions ?? [];
    const undos = found.map((each) => this.actions.undoTo(each)).filter(Boolean);
    this.element.hidden = !value && !trouble;
    show(this.element,
      h("h2", { id: "history-title" }, "History"),
      trouble ? this.#answer.standing : null,
      value && !found.length ? h("p", { class: "dim" }, "No version is stored yet.") : null,
      h("ol", { class: "history" }, found.map((each) => version(each, this.actions))),
      this.actions.results(undos));
  }
}

function version(each, actions) {
  const undo = ["stable", "new"].includes(each.role) ? null : actions.undoTo(each);
  return h("li", { "data-key": `version/${each.number}` },
    h("div", { class: "version-head" },
      h("b", {}, `${each.number}`), each.role ? h("span", { class: `badge ${each.role}` }, each.role) : null,
      each.left && each.left !== each.role ? h("span", { class: "badge" }, each.left) : null,
      h("code", { class: "dim" }, each.revision || each.version),
      each.created ? h("span", { class: "dim" }, since(each.created), " ago") : null,
      undo ? actions.button(undo, "Undo to this", "small") : null),
    h("p", { class: "images" }, each.images.map((image) => h("code", {}, said(image)))),
    each.change ? h("div", { class: "change" }, h("span", { class: "dim" }, "Changed: "), long(each.change, `change/${each.number}`, "span")) : null);
}
