// A view of the page, a list or a release: its elements, and all that ends with it.

import { h } from "./dom.js";

export class View {
  #end = new AbortController();
  #timers = new Set();

  /** `name` is the class of its content; what is beside the content is appended to `element`. */
  constructor(main, name) {
    this.content = h("div", { class: `content ${name}` });
    this.element = h("div", {}, this.content);
    main.replaceChildren(this.element);
  }

  /** Is aborted when the view is closed. */
  get signal() {
    return this.#end.signal;
  }

  get closed() {
    return this.signal.aborted;
  }

  close() {
    this.#end.abort();
    for (const each of this.#timers) clearTimeout(each);
    this.element.remove();
  }

  /** Calls `act()` when the view is closed. */
  closing(act) {
    this.signal.addEventListener("abort", act);
  }

  /** Listens to what stays when the view is closed. */
  listen(target, type, act) {
    target.addEventListener(type, act, { signal: this.signal });
  }

  /** Calls `act()` once, in so many milliseconds; returns what calls that off. */
  after(milliseconds, act) {
    if (this.closed) return () => {};
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, milliseconds);
    return this.#kept(timer);
  }

  /** Calls `act()` each so many milliseconds. */
  every(milliseconds, act) {
    return this.#kept(setInterval(act, milliseconds));
  }

  #kept(timer) {
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer);
      this.#timers.delete(timer);
    };
  }
}
