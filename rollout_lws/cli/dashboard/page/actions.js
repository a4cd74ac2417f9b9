// What one may do with a release: buttons that are greyed out with the reason, a question before each, and what came of
// it. Each request is pinned to the release and the step that the page shows.

import { command } from "./copy.js";
import { delegate, h, show, slug } from "./dom.js";
import { visible } from "./text.js";

const DANGEROUS = ["abort", "undo", "skip"];
/** Milliseconds that what came of a request is shown. */
const SHOWN = 60_000;
const told = document.getElementById("told");

export class Actions {
  #seen = null;
  #rights = { act: "", undo: "" };
  #rightsOf = null;
  #busy = "";
  #result = null;
  #timer = 0;

  /** Buttons may be anywhere in `root`; `changed()` is called when they have to be drawn again. */
  constructor(root, namespace, name, changed) {
    Object.assign(this, { namespace, name, changed });
    delegate(root, "click", "[data-offer]", (button) => this.#pressed(button.dataset.offer));
  }

  /** Takes the release that is shown from now on. */
  take(seen) {
    this.#seen = seen;
    if (this.#rightsOf !== (seen.kind ?? "")) this.#askRights(seen.kind);
    this.#warn();
  }

  /** Asks for the rights again, since another server may answer now. */
  again() {
    this.#rightsOf = null;
  }

  /** What the buttons show besides the release, to tell whether they have to be drawn again. */
  get state() {
    return [this.#rights, this.#busy, this.#result];
  }

  /** The offers that the predicate wants, each with why it is refused, by the release or for want of a right. */
  offers(wanted) {
    return (this.#seen?.offers ?? []).filter(wanted).map((each) => this.#judged(each));
  }

  #judged(offer) {
    const lacks = offer.action === "undo" ? this.#rights.undo || this.#rights.act : this.#rights.act;
    return { ...offer, refused: lacks || offer.refused, key: keyOf(offer) };
  }

  /** The offer to undo to a stored version. */
  undoTo(number) {
    const found = this.offers((each) => each.action === "undo")[0];
    if (!found) return null;
    const offer = { ...found, revision: number, question: `Put version ${number} back into the workload?` };
    return { ...offer, label: "Undo to this", key: keyOf(offer) };
  }

  /** The button of an offer. */
  button(offer, label = offer.label, cls = "") {
    const why = offer.refused || offer.effect;
    const id = `why-${slug(offer.key)}`;
    const busy = this.#busy === offer.key;
    const style = [cls, offer.action, DANGEROUS.includes(offer.action) ? "danger" : ""].filter(Boolean).join(" ");
    return h("span", { class: "offer", "data-key": offer.key },
      h("button", {
        type: "button", class: style, "data-offer": offer.key, title: cls ? why : null, "aria-describedby": why ? id : null,
        "aria-disabled": offer.refused || busy ? "true" : null, "aria-busy": busy ? "true" : null,
        "aria-label": label === offer.label ? null : offer.label,
      }, label),
      why ? h("span", { id, class: "unseen why", "data-why": why }, offer.refused ? `Not now: ${why}` : why) : null);
  }

  /** What came of the last request if it was made by one of these buttons. */
  result(...keys) {
    const found = this.#result;
    if (!found || !keys.includes(found.key)) return null;
    return h("p", { class: `result ${found.bad ? "bad" : "good"}`, "data-key": "result" }, visible(found.text));
  }

  #offer(key) {
    const [action, number] = key.split(":");
    if (action === "undo" && number) return this.undoTo(Number(number));
    return this.offers((each) => keyOf(each) === key)[0];
  }

  async #pressed(key) {
    const offer = this.#offer(key);
    if (!offer || this.#busy) return;
    if (offer.refused) return this.#say(key, `${offer.label} is not possible now: ${offer.refused}`, true);
    const pin = { release: this.#seen.release, step: this.#seen.at };
    const reason = await this.#question(offer, pin);
    if (reason === null) return;
    this.#busy = key;
    this.changed();
    try {
      const { action, gate, toStep, revision } = offer;
      const answer = await fetch(`/actions/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ action, gate, toStep, revision, ...pin, reason }),
      });
      const found = await answer.json();
      this.#busy = "";
      this.#say(key, found.told ?? found.refused, !answer.ok);
    } catch (error) {
      this.#busy = "";
      this.#say(key, `It is not known whether this was done, rollout-lws dashboard does not answer: ${error.message}`, true);
    }
  }

  #say(key, text, bad) {
    this.#result = { key, text, bad };
    told.textContent = visible(text);
    this.changed();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#result = null;
      this.changed();
    }, SHOWN);
  }

  async #askRights(kind) {
    this.#rightsOf = kind ?? "";
    try {
      const answer = await fetch(`/rights/${encodeURIComponent(this.namespace)}/${encodeURIComponent(this.name)}`);
      if (!answer.ok) return;
      this.#rights = { act: "", undo: "", ...(await answer.json()) };
      this.changed();
    } catch {
      // Then the API server refuses what is asked for.
    }
  }

  /** Asks whether an action is meant; the reason that was typed, null for no. */
  #question(offer, pin) {
    const dialog = document.getElementById("question");
    const reason = h("input", { id: "reason", maxlength: 500, autocomplete: "off" });
    const danger = DANGEROUS.includes(offer.action);
    dialog.replaceChildren(h("form", { method: "dialog" },
      h("h2", { id: "question-title" }, visible(offer.question || `${offer.label}?`)),
      h("p", { id: "question-effect" }, visible(offer.effect ?? "")),
      h("p", { class: "pin dim" }, pin.release ? `Only for release ${pin.release}` : "Only for the release that is shown", pin.step ? `, step ${pin.step}.` : "."),
      h("p", { id: "moved-on", role: "status" }),
      h("label", { for: "reason" }, "Reason ", h("span", { class: "dim" }, "(optional, kept in the Rollout's events)")), reason,
      h("div", { class: "answers" },
        h("button", { value: "yes", class: danger ? "danger main" : "main" }, offer.label),
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"))));
    dialog.dataset.release = pin.release;
    dialog.dataset.step = pin.step;
    return new Promise((resolve) => {
      dialog.onclose = () => resolve(dialog.returnValue === "yes" ? reason.value.trim() : null);
      dialog.returnValue = "";
      dialog.showModal();
    });
  }

  /** Says in an open question that the release has moved on. */
  #warn() {
    const dialog = document.getElementById("question");
    const note = document.getElementById("moved-on");
    if (!dialog.open || !note) return;
    const same = dialog.dataset.release === this.#seen.release && Number(dialog.dataset.step) === this.#seen.at;
    const text = same ? "" : `The release has moved on meanwhile: release ${this.#seen.release}, step ${this.#seen.at}.`;
    if (note.textContent !== text) note.textContent = text;
  }
}

function keyOf(offer) {
  return [offer.action, offer.gate ?? offer.toStep ?? offer.revision].filter((each) => each !== undefined).join(":");
}

/** The buttons that are about the release as a whole, and what can be typed instead. */
export class ActionsPart {
  #hint = h("p", { class: "hint" });
  #box = h("div");
  #commands = h("ul", { class: "commands" });
  #instead = h("details", { class: "instead" }, h("summary", {}, "On the command line"), this.#commands);
  #usual = "";

  constructor(actions) {
    this.actions = actions;
    this.element = h("section", { class: "card actions", "aria-labelledby": "actions-title" },
      h("h2", { id: "actions-title" }, "Actions"), this.#box, this.#hint, this.#instead);
    for (const type of ["pointerover", "focusin"]) {
      delegate(this.#box, type, ".offer", (offer) => this.#tell(offer.querySelector(".why")?.dataset.why));
    }
    for (const type of ["pointerout", "focusout"]) delegate(this.#box, type, ".offer", () => this.#tell(this.#usual));
  }

  of(seen) {
    return [seen.offers, seen.commands, seen.release, seen.at, this.actions.state];
  }

  draw(seen) {
    const offers = this.actions.offers((each) => !["jump", "skip"].includes(each.action));
    const refusals = new Set(offers.map((each) => each.refused));
    // Where all are refused for the same reason, it is said once for all.
    const [common] = refusals.size === 1 ? refusals : [""];
    this.#usual = common || (offers.find((each) => each.action === "approve" && !each.refused)?.effect ?? "");
    show(this.#box,
      h("div", { class: "offers", role: "group", "aria-labelledby": "actions-title" }, offers.map((each) => this.actions.button(each))),
      this.actions.result(...offers.map((each) => each.key)));
    if (!this.#box.querySelector(":focus, :hover")) this.#tell(this.#usual);
    this.#instead.hidden = !seen.commands?.length;
    show(this.#commands, (seen.commands ?? []).map(command));
  }

  #tell(text) {
    this.#hint.textContent = visible(text ?? "");
  }
}
