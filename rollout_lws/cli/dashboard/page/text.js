// Texts of others: messages of controllers, last words of containers. They may be long, have markup in them, run from
// right to left, or move the cursor.

import { delegate, h, slug } from "./dom.js";

/** From so many characters or lines on, only the beginning is shown at first. */
const LONG = 320;
const LINES = 5;
const open = new Set();

// Characters that do something instead of being seen: control characters, and those that turn the direction of what
// follows, by which a text could look like another one.
const ACTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with such characters as their codes. */
export function visible(text) {
  return String(text ?? "").replaceAll("\r\n", "\n").replace(ACTIVE, (each) => {
    const code = each.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** A text of others within a line, which runs in its own direction and leaves that of the line alone. */
export function said(text) {
  return h("bdi", { class: "said" }, visible(text));
}

/** A text of others as a block, cut if it is long, with a way to see all; `key` tells it from others on the page. */
export function long(text, key, tag = "p") {
  const shown = visible(text).trim();
  if (!shown) return null;
  const cut = shown.length > LONG || shown.split("\n").length > LINES;
  const whole = !cut || open.has(key);
  const id = `text-${slug(key)}`;
  return h("div", { class: "long", "data-key": `long/${key}` },
    h(tag, { class: `said block${whole ? "" : " cut"}`, id }, shown),
    cut ? h("button", { type: "button", class: "link", "data-more": key, "aria-expanded": String(whole), "aria-controls": id },
      whole ? "Show less" : `Show all ${shown.length.toLocaleString()} characters`) : null);
}

delegate(document, "click", "[data-more]", (button) => {
  const key = button.dataset.more;
  const block = document.getElementById(button.getAttribute("aria-controls"));
  if (open.has(key)) open.delete(key);
  else open.add(key);
  const whole = open.has(key);
  block?.classList.toggle("cut", !whole);
  button.setAttribute("aria-expanded", String(whole));
  button.textContent = whole ? "Show less" : `Show all ${block.textContent.length.toLocaleString()} characters`;
});
