// What one may do with a release: buttons that are greyed out with the reason, a question before each, and what came of
// it. Each request is pinned to the release and the step that the page shows.

import { Answer } from "./answer.js";
import { Refused, ask, route } from "./ask.js";
import { delegate, h, slug } from "./dom.js";
import { Question } from "./question.js";
import { visible } from "./text.js";

const DANGEROUS = ["abort", "undo", "skip"];
/** Milliseconds that what came of a request is shown. */
const SHOWN = 60_000;
const ALL_RIGHTS = { act: "", undo: "" };
const announced = document.getElementById("told");

export class Actions {
  /** The versions that are stored, as the history tells of them. */
  versions = [];
  #seen = null;
  #busy = new Set();
  #results = new Map();
  #question;
  #rights;

  /** Buttons may be anywhere in the view; `changed()` is called when they have to be drawn again. */
  constructor(view, namespace, name, changed) {
    Object.assign(this, { view, namespace, name, changed });
    this.#question = new Question(view);
    this.#rights = new Answer(view, changed);
    delegate(view.element, "click", "[data-offer]", (button) => this.#pressed(button.dataset.offer));
    // A right may have been given or taken while one was elsewhere.
    view.listen(window, "focus", () => this.again());
    view.listen(document, "visibilitychange", () => document.hidden || this.again());
  }

  /** Takes the release that is shown from now on. */
  take(seen) {
    this.#seen = seen;
    this.#rights.keep(route("rights", this.namespace, this.name), `${seen.kind}/${seen.workload}`);
    this.#question.compare(seen.release, seen.at);
  }

  /** There is no such release any more. */
  gone(why) {
    this.#question.note(`There is nothing left to do: ${visible(why)}.`);
  }

  /** Asks for the rights again. */
  again() {
    this.#rights.again();
  }

  /** What the buttons show besides the release, to tell whether they have to be drawn again. */
  get state() {
    return [this.#rights.value, [...this.#busy], [...this.#results].map(([key, { text }]) => [key, text])];
  }

  /** The offers that the predicate wants, each with why it is refused, by the release or for want of a right. */
  offers(wanted) {
    return (this.#seen?.offers ?? []).filter(wanted).map((each) => this.#judged(each));
  }

  /** The offer to undo to a stored version, whose effect is its own. */
  undoTo({ number, undo }) {
    const found = this.#seen?.offers?.find((each) => each.action === "undo");
    if (!found) return null;
    const question = `Put version ${number} back into the workload?`;
    return this.#judged({ ...found, revision: number, label: "Undo to this", question, effect: undo?.effect, aborts: undo?.aborts });
  }

  #judged(offer) {
    const rights = this.#rights.value ?? ALL_RIGHTS;
    const lacks = offer.action === "undo" ? rights.undo || (offer.aborts && rights.act) : rights.act;
    return { ...offer, lacks, refused: lacks || offer.refused, key: keyOf(offer) };
  }

  /** The button of an offer. */
  button(offer, label = offer.label, cls = "") {
    const busy = this.#busy.has(offer.key);
    const why = busy ? beingDone(offer) : offer.refused || offer.effect;
    const id = `why-${slug(offer.key)}`;
    const style = [cls, offer.action, DANGEROUS.includes(offer.action) ? "danger" : ""].filter(Boolean).join(" ");
    return h("span", { class: "offer", "data-key": offer.key },
      h("button", {
        type: "button", class: style, "data-offer": offer.key, title: cls ? why : null, "aria-describedby": why ? id : null,
        "aria-disabled": offer.refused || busy ? "true" : null, "aria-busy": busy ? "true" : null,
        "aria-label": label === offer.label ? null : offer.label,
      }, label),
      why ? h("span", { id, class: "unseen why", "data-why": why }, offer.refused ? `Not now: ${why}` : why) : null);
  }

  /** What came of requests that were made by these buttons. */
  results(offers) {
    return offers.filter(({ key }) => this.#results.has(key)).map(({ key }) => {
      const { text, bad } = this.#results.get(key);
      return h("p", { class: `result ${bad ? "bad" : "good"}`, "data-key": `result/${key}` }, visible(text));
    });
  }

  #offer(key) {
    const every = [...this.offers(() => true), ...this.versions.map((each) => this.undoTo(each))];
    return every.find((each) => each?.key === key);
  }

  async #pressed(key) {
    const offer = this.#offer(key);
    if (!offer) return;
    if (this.#busy.has(key)) return this.#say(key, beingDone(offer), false);
    if (offer.refused) {
      this.again();
      return this.#say(key, `${offer.label} is not possible now: ${offer.refused}`, true);
    }
    const pin = { release: this.#seen.release, step: this.#seen.at };
    const reason = await this.#question.ask(offer, pin, DANGEROUS.includes(offer.action));
    if (reason === null) return;
    this.#busy.add(key);
    this.#forget(key);
    this.changed();
    const { action, gate, toStep, revision } = offer;
    const [text, bad] = await this.#request({ action, gate, toStep, revision, ...pin, reason });
    this.#busy.delete(key);
    this.#say(key, text, bad);
  }

  /** What came of a request, and whether that is bad. It goes on when the view is closed, since it is done all the same. */
  async #request(post) {
    try {
      const { told } = await ask(route("actions", this.namespace, this.name), { post });
      return [told, false];
    } catch (error) {
      if (error.code === 403) this.again();
      return [error instanceof Refused ? error.message : `It is not known whether this was done: ${error.message}`, true];
    }
  }

  #say(key, text, bad) {
    this.#forget(key);
    const cancel = this.view.after(SHOWN, () => {
      this.#results.delete(key);
      this.changed();
    });
    this.#results.set(key, { text, bad, cancel });
    announced.textContent = visible(text);
    this.changed();
  }

  #forget(key) {
    this.#results.get(key)?.cancel();
    this.#results.delete(key);
  }
}

function keyOf(offer) {
  return [offer.action, offer.gate ?? offer.toStep ?? offer.revision].filter((each) => each !== undefined).join(":");
}

function beingDone(offer) {
  return `${offer.label} is being done: there is no answer yet`;
}
