// The forecast of the release as a picture, fetched when a person opens it.

import { h } from "./dom.js";

export class Picture {
  #image = h("img", { alt: "Groups of each version, weight and accelerators over the time that the release takes", hidden: true });
  #none = h("p", { class: "dim", hidden: true }, "There is no picture of this release.");
  #details = h("details", {}, h("summary", {}, "Forecast as a picture"), this.#image, this.#none);
  element = h("section", { class: "card picture-part tool", "aria-label": "Forecast" }, this.#details);

  constructor(namespace, name) {
    const address = `/drawings/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}.svg`;
    this.#image.addEventListener("load", () => this.#known(true));
    this.#image.addEventListener("error", () => this.#known(false));
    this.#details.addEventListener("toggle", () => {
      if (this.#details.open) this.#image.src = `${address}?at=${Date.now()}`;
    });
  }

  #known(there) {
    this.#image.hidden = !there;
    this.#none.hidden = there;
  }

  of(seen) {
    return [Boolean(seen.steps.length)];
  }

  draw(seen) {
    this.element.hidden = !seen.steps.length;
  }
}
