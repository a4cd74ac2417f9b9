// Small pictures that tell states by their shape; a word stands beside each of them.

import { h, s } from "./dom.js";
import { toneOf } from "./words.js";

const SHAPES = new Map(Object.entries({
  good: () => [s("circle", { cx: 8, cy: 8, r: 7, class: "fill" }), s("path", { d: "M4.6 8.3l2.3 2.3 4.5-4.8", class: "cut" })],
  bad: () => [s("path", { d: "M8 .9l7.4 13.6H.6z", class: "fill" }), s("path", { d: "M8 6v4M8 11.9v.6", class: "cut" })],
  waits: () => [s("rect", { x: 1, y: 1, width: 14, height: 14, rx: 3, class: "fill" }), s("path", { d: "M6 5v6M10 5v6", class: "cut" })],
  holds: () => [s("path", { d: "M3 1.5h10M3 14.5h10M4 2c0 4 8 4 8 12M12 2c0 4-8 4-8 12", class: "line" })],
  runs: () => [s("circle", { cx: 8, cy: 8, r: 6.2, class: "line" }), s("path", { d: "M6.5 5l4.5 3-4.5 3z", class: "fill" })],
  off: () => [s("circle", { cx: 8, cy: 8, r: 6.2, class: "line" }), s("path", { d: "M4 8h8", class: "line" })],
}));

/** The icon of a tone. */
export function icon(tone) {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, (SHAPES.get(tone) ?? SHAPES.get("off"))());
}

/** A state as a word with its icon. */
export function stateOf(word) {
  const tone = toneOf(word);
  return h("span", { class: `state ${tone}` }, icon(tone), word || "Unknown");
}
