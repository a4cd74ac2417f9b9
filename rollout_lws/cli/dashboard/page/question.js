// Asks whether an action is meant, and why.

import { h } from "./dom.js";
import { visible } from "./text.js";

export class Question {
  #note = h("p", { id: "moved-on", role: "status" });
  #pin = { release: "", step: 0 };
  #dialog = h("dialog", { id: "question", "aria-labelledby": "question-title", "aria-describedby": "question-effect" });

  constructor(view) {
    view.element.append(this.#dialog);
  }

  /** Asks about an offer for the release and the step of the pin: the reason that was typed, null for no. */
  ask(offer, pin, danger) {
    const dialog = this.#dialog;
    const reason = h("input", { id: "reason", maxlength: 500, autocomplete: "off" });
    // Undo writes the workload, which keeps no reason; only the abort that it may begin with does.
    const tells = offer.action !== "undo" || offer.aborts;
    this.#pin = pin;
    this.note("");
    dialog.replaceChildren(h("form", { method: "dialog" },
      h("h2", { id: "question-title" }, visible(offer.question || `${offer.label}?`)),
      h("p", { id: "question-effect" }, visible(offer.effect ?? "")),
      h("p", { class: "pin dim" }, pin.release ? `Only for release ${pin.release}` : "Only for the release that is shown", pin.step ? `, step ${pin.step}.` : "."),
      this.#note,
      tells ? [h("label", { for: "reason" }, "Reason ", h("span", { class: "dim" }, "(optional, kept in the Rollout's events)")), reason] : null,
      h("div", { class: "answers" },
        h("button", { value: "yes", class: danger ? "danger main" : "main" }, offer.label),
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"))));
    return new Promise((resolve) => {
      dialog.onclose = () => resolve(dialog.returnValue === "yes" ? reason.value.trim() : null);
      dialog.returnValue = "";
      dialog.showModal();
    });
  }

  /** Says in an open question that the release has moved on. */
  compare(release, step) {
    const same = this.#pin.release === release && this.#pin.step === step;
    this.note(same ? "" : `The release has moved on meanwhile: release ${release}, step ${step}.`);
  }

  /** Says what has become of the release. */
  note(text) {
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }
}
