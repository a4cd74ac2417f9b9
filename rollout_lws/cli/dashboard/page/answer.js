// An answer that a view keeps: it is asked for again when what it is about has changed, and after a failure.

import { ask } from "./ask.js";
import { h } from "./dom.js";
import { said } from "./text.js";
import { clock, timeOfDay } from "./time.js";

/** Milliseconds between two requests, and after failures, longer with each. */
const REST = 1000;
const AGAIN = [2000, 5000, 10_000, 30_000];

export class Answer {
  /** What was told last, null before; when that was; and why there is nothing newer. */
  value = null;
  at = NaN;
  trouble = "";
  #path = "";
  #about = "";
  #asked = 0;
  #heard = 0;
  #last = -Infinity;
  #failures = 0;
  #cancel = () => {};

  /** `changed()` is called when there is another value, or another trouble. */
  constructor(view, changed) {
    Object.assign(this, { view, changed });
  }

  /** Is the answer to this path from now on; `about` is what it depends on. */
  keep(path, about = "") {
    if (path !== this.#path) Object.assign(this, { value: null, at: NaN, trouble: "" });
    else if (about === this.#about) return;
    [this.#path, this.#about] = [path, about];
    this.again();
  }

  /** Asks again, since what was told last may be old. */
  again() {
    this.#failures = 0;
    this.#cancel();
    if (this.#path) this.#plan(REST);
  }

  #plan(rest) {
    this.#cancel();
    this.#cancel = this.view.after(Math.max(0, this.#last + rest - Date.now()), () => this.#ask());
  }

  async #ask() {
    const path = this.#path;
    const number = (this.#asked += 1);
    this.#last = Date.now();
    const [value, trouble] = await ask(path, { signal: this.view.signal }).then((told) => [told, ""], (error) => [null, error.message]);
    if (this.view.closed || path !== this.#path || number < this.#heard) return;
    this.#heard = number;
    this.trouble = trouble;
    if (trouble) {
      this.#plan(AGAIN[Math.min(this.#failures, AGAIN.length - 1)]);
      this.#failures += 1;
    } else {
      [this.value, this.at, this.#failures] = [value, clock(), 0];
    }
    this.changed();
  }

  /** Says of when it is, and why it is not newer, with a button to ask again. */
  get standing() {
    return h("div", { class: "as-of", "data-key": "as-of" },
      this.trouble ? h("p", { class: "result bad" }, said(this.trouble)) : null,
      h("p", { class: "dim" }, this.value ? `As of ${timeOfDay(this.at)} · ` : "",
        h("button", { type: "button", class: "link", "data-again": true }, "Ask again")));
  }
}
