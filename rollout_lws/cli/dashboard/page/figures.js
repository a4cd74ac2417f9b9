// Small drawings of numbers. Each stands beside its numbers as text, so readers of the text miss nothing.

import { s } from "./dom.js";
import { passed } from "./time.js";

function bar(cls, ...children) {
  return s("svg", { class: `bar ${cls}`, "aria-hidden": "true", focusable: "false" }, ...children);
}

function part(cls, from, width, attributes = {}) {
  return s("rect", { class: cls, x: `${from}%`, y: 0, width: `${Math.max(0, width)}%`, height: "100%", ...attributes });
}

/** A share from 0 to 100, and a mark for the one that is asked for where that differs. */
export function share(percent, asked = percent) {
  return bar("share", part("ground", 0, 100), part("new", 0, percent ?? 0),
    asked !== null && asked !== percent ? part("asked", Math.min(99, asked), 1.5) : null);
}

/** Parts of a whole: [[class, count], …]; all of the same height, one after the other. */
export function parts(found, whole) {
  let from = 0;
  const drawn = found.filter(([, count]) => count > 0).map(([cls, count]) => {
    const width = whole ? (100 * count) / whole : 0;
    from += width;
    return part(cls, from - width, width);
  });
  return bar("parts", part("ground", 0, 100), drawn);
}

/** A cell for each step; `at` is the one that is on, those before it are done, all of them past the last one. */
export function steps(count, at, tone) {
  const width = 100 / count;
  const gap = Math.min(2, width / 5);
  return bar("steps-bar", Array.from({ length: count }, (_, index) => {
    const cls = index + 1 < at ? "done" : index + 1 === at ? `now ${tone}` : "ground";
    return part(cls, index * width, width - gap, { rx: 1 });
  }));
}

/** How much of a span has passed since a time in milliseconds, kept up to date. */
export function progress(from, seconds) {
  return bar("progress", part("ground", 0, 100), part("new", 0, 100 * passed(from, seconds), { "data-from": from, "data-span": seconds }));
}

/** A number on a scale that several bars share. */
export function amount(cls, value, most) {
  return bar("amount", part("ground", 0, 100), part(cls, 0, most ? (100 * value) / most : 0));
}

/**
 * A figure of both versions against its limit: `value` and `stable` as bars, `limit` as a line beyond which it is bad
 * (or below which, if it is `least`), and `from`–`to` as the interval in which the value lies.
 */
export function bullet({ value, stable, limit, least, from, to, bad }) {
  const known = [value, stable, limit, to].filter((each) => Number.isFinite(each));
  const most = Math.max(...known, 0) * 1.25 || 1;
  const x = (each) => (100 * each) / most;
  const drawn = [part("ground", 0, 100)];
  if (Number.isFinite(limit)) drawn.push(least ? part("beyond", 0, x(limit)) : part("beyond", x(limit), 100 - x(limit)));
  if (Number.isFinite(stable)) drawn.push(part("stable", 0, x(stable), { y: "62%", height: "20%" }));
  if (Number.isFinite(value)) drawn.push(part(bad ? "bad" : "new", 0, x(value), { y: "18%", height: "36%" }));
  if (Number.isFinite(from) && Number.isFinite(to)) {
    drawn.push(
      s("line", { class: "interval", x1: `${x(from)}%`, x2: `${x(to)}%`, y1: "36%", y2: "36%" }),
      s("line", { class: "interval", x1: `${x(from)}%`, x2: `${x(from)}%`, y1: "20%", y2: "52%" }),
      s("line", { class: "interval", x1: `${x(to)}%`, x2: `${x(to)}%`, y1: "20%", y2: "52%" }),
    );
  }
  if (Number.isFinite(limit)) drawn.push(s("line", { class: "limit", x1: `${x(limit)}%`, x2: `${x(limit)}%`, y1: "0%", y2: "100%" }));
  return bar("bullet", drawn);
}
