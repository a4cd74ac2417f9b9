// The buttons that are about the release as a whole, and what can be typed instead.

import { command } from "./copy.js";
import { delegate, h, show } from "./dom.js";
import { visible } from "./text.js";

export class ActionsPart {
  #hint = h("p", { class: "hint" });
  #box = h("div");
  #commands = h("ul", { class: "commands" });
  #instead = h("details", { class: "instead" }, h("summary", {}, "On the command line"), this.#commands);
  #usual = "";
  /** The offer that the pointer or the focus is on. */
  #on = "";

  constructor(actions) {
    this.actions = actions;
    this.element = h("section", { class: "card actions", "aria-labelledby": "actions-title" },
      h("h2", { id: "actions-title" }, "Actions"), this.#box, this.#hint, this.#instead);
    for (const type of ["pointerover", "focusin"]) {
      delegate(this.#box, type, ".offer", (offer) => this.#tell(offer.dataset.key));
    }
    for (const type of ["pointerout", "focusout"]) delegate(this.#box, type, ".offer", () => this.#tell(""));
  }

  of(seen) {
    return [seen.offers, seen.commands, seen.release, seen.at, this.actions.state];
  }

  draw(seen) {
    const offers = this.actions.offers((each) => !["jump", "skip"].includes(each.action));
    const refusals = new Set(offers.map((each) => each.refused));
    // Where all are refused for the same reason, it is said once for all.
    const [common] = refusals.size === 1 ? refusals : [""];
    const approve = offers.find((each) => each.action === "approve");
    this.#usual = common || approve?.lacks || (approve?.refused ? "" : approve?.effect ?? "");
    show(this.#box,
      h("div", { class: "offers", role: "group", "aria-labelledby": "actions-title" }, offers.map((each) => this.actions.button(each))),
      this.actions.results(offers));
    this.#tell(this.#on);
    this.#instead.hidden = !seen.commands?.length;
    show(this.#commands, (seen.commands ?? []).map(command));
  }

  /** What the offer with this key does, or why it is refused; what there is to say without one. */
  #tell(key) {
    this.#on = key;
    const offer = key && this.#box.querySelector(`.offer[data-key="${CSS.escape(key)}"]`);
    this.#hint.textContent = visible(offer ? offer.querySelector(".why")?.dataset.why ?? "" : this.#usual);
  }
}
