// The weight over time, asked for and accepted, and below it the groups that were ready.

import { Course, holding } from "./course.js";
import { h, s, show } from "./dom.js";
import { clock, short, timeOfDay, whole } from "./time.js";

/** Lengths in rem, so that the drawing grows with the text. */
const REM = { left: 2.9, right: 0.8, top: 1.3, weight: 8.6, gap: 1.9, groups: 4.1, foot: 1.4 };
/** Seconds between two lines of the time axis. */
const TICKS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

export class Weights {
  #course = new Course();
  #points = [];
  #releasing = false;
  #box = h("div", { class: "chart" });
  #readout = h("p", { class: "readout dim" });
  #table = h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "The course as a table" });
  #width = 0;
  element = h("section", { class: "card weights-part", "aria-labelledby": "weights-title" },
    h("div", { class: "part-head" }, h("h2", { id: "weights-title" }, "Course"), legend()),
    this.#box, this.#readout, h("details", {}, h("summary", {}, "As a table"), this.#table));

  constructor(view) {
    const observer = new ResizeObserver(([entry]) => {
      this.#width = Math.round(entry.contentRect.width);
      this.#plot();
    });
    observer.observe(this.#box);
    view.closing(() => observer.disconnect());
    this.#box.addEventListener("pointermove", (event) => this.#point(event.clientX - this.#box.getBoundingClientRect().left));
    this.#box.addEventListener("pointerleave", () => this.#point(null));
    view.every(2000, () => this.#releasing && this.#plot());
  }

  of(seen) {
    return [seen.release, seen.releasing, seen.timeline, seen.asked, seen.accepted, seen.ready, seen.at, seen.stepState, seen.ending];
  }

  draw(seen) {
    this.#points = this.#course.take(seen);
    this.#releasing = seen.releasing;
    this.element.hidden = this.#points.length < 1;
    show(this.#table, table(this.#points));
    this.#plot();
    this.#point(null);
  }

  #span() {
    const first = this.#points[0].at;
    const last = this.#releasing ? clock() : this.#points.at(-1).at;
    return [first, Math.max(last, first + 10_000)];
  }

  #plot() {
    if (!this.#width || !this.#points.length) return;
    const [from, to] = this.#span();
    show(this.#box, drawing(this.#points, from, to, this.#width, this.#releasing));
  }

  /** Where a time is from left to right, from 0 to 1 inside the axes. */
  #inside(x) {
    const { left, right } = lengths();
    return Math.min(1, Math.max(0, (x - left) / Math.max(1, this.#width - left - right)));
  }

  /** Says what was so at the place of the pointer; what is so now without one. */
  #point(x) {
    if (!this.#points.length) return;
    const [from, to] = this.#span();
    const inside = x === null ? 1 : this.#inside(x);
    const time = from + inside * (to - from);
    const each = holding(this.#points, time);
    this.#readout.textContent = [
      x === null && this.#releasing ? "Now" : timeOfDay(time),
      each.step ? `step ${each.step}` : "", each.state,
      each.asked === null ? "" : `asked for ${each.asked}%, accepted ${each.accepted ?? 0}%`,
      ready(each),
    ].filter(Boolean).join(" · ");
    const line = this.#box.querySelector(".pointer");
    if (!line) return;
    line.setAttribute("visibility", x === null ? "hidden" : "visible");
    const { left, right } = lengths();
    const place = left + inside * (this.#width - left - right);
    for (const end of ["x1", "x2"]) line.setAttribute(end, place);
  }
}

function ready({ fresh, stable }) {
  const told = [[fresh, "new"], [stable, "stable"]].filter(([count]) => count !== null).map(([count, of]) => `${count} ${of}`);
  return told.length ? `ready: ${told.join(", ")}` : "";
}

function legend() {
  return h("ul", { class: "legend lines", "aria-hidden": "true" },
    [["accepted", "accepted"], ["asked", "asked for"], ["fresh", "new ready"], ["stable", "stable ready"]].map(([cls, word]) =>
      h("li", {}, s("svg", { class: "sample", viewBox: "0 0 20 8" }, s("path", { class: cls, d: "M0 4h20" })), word)));
}

function lengths() {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return Object.fromEntries(Object.entries(REM).map(([name, length]) => [name, length * rem]));
}

function drawing(points, from, to, width, releasing) {
  const { left, right, top, weight, gap, groups, foot } = lengths();
  const end = width - right;
  const x = (time) => left + ((time - from) / (to - from)) * (end - left);
  const shares = points.some((each) => each.asked !== null || each.accepted !== null);
  const base = top + weight;
  const y = (percent) => base - (percent / 100) * weight;
  const floor = shares ? base + gap + groups : top + groups;
  const most = Math.max(1, ...points.map((each) => Math.max(each.fresh ?? 0, each.stable ?? 0)));
  const g = (count) => floor - (count / most) * groups;
  return s("svg", { width, height: floor + foot, viewBox: `0 0 ${width} ${floor + foot}`, role: "img", "aria-label": summary(points, releasing) },
    stepsAbove(points, x, end, top, floor),
    shares ? [0, 50, 100].map((percent) => level(left, end, y(percent), `${percent}%`)) : null,
    [0, most].map((count) => level(left, end, g(count), String(count))),
    ticks(from, to, end - left).map((time) => [
      s("line", { class: "tick", x1: x(time), x2: x(time), y1: floor, y2: floor + 4 }),
      s("text", { class: "axis", x: x(time), y: floor + foot * 0.8, "text-anchor": end - x(time) < left / 2 ? "end" : "middle" },
        timeOfDay(time, to - from < 600_000)),
    ]),
    shares ? [
      s("path", { class: "accepted-area", d: area(points, "accepted", x, y, end, base) }),
      s("path", { class: "accepted", d: line(points, "accepted", x, y, end) }),
      s("path", { class: "asked", d: line(points, "asked", x, y, end) }),
    ] : null,
    s("path", { class: "stable", d: line(points, "stable", x, g, end) }),
    s("path", { class: "fresh", d: line(points, "fresh", x, g, end) }),
    s("line", { class: "pointer", x1: 0, x2: 0, y1: top, y2: floor, visibility: "hidden" }));
}

/** A line of the same level with its number. */
function level(left, end, y, words) {
  return [s("line", { class: "grid", x1: left, x2: end, y1: y, y2: y }), s("text", { class: "axis", x: left - 6, y: y + 4, "text-anchor": "end" }, words)];
}

/** A line of steps, with a gap where nothing is told. */
function line(points, name, x, y, end) {
  return spans(points, name, x, y, end).map((span) => `M${span[0].from} ${span[0].level}${stairs(span)}`).join("");
}

/** The area below such a line. */
function area(points, name, x, y, end, base) {
  return spans(points, name, x, y, end).map((span) => `M${span[0].from} ${base}${stairs(span)}V${base}Z`).join("");
}

function stairs(span) {
  return span.map(({ level, to }) => `V${level}H${to}`).join("");
}

/** Levels with where they begin and end, in a list for each part without a gap. */
function spans(points, name, x, y, end) {
  const found = [];
  points.forEach((each, index) => {
    if (each[name] === null) return;
    if (!index || points[index - 1][name] === null) found.push([]);
    const to = index + 1 < points.length ? x(points[index + 1].at) : end;
    found.at(-1).push({ from: x(each.at).toFixed(1), to: to.toFixed(1), level: y(each[name]).toFixed(1) });
  });
  return found;
}

/** The steps as bands with their numbers. */
function stepsAbove(points, x, end, top, floor) {
  const found = [];
  points.forEach((each) => {
    if (found.at(-1)?.step !== each.step) found.push({ step: each.step, from: x(each.at) });
  });
  return found.map((each, index) => {
    const to = found[index + 1]?.from ?? end;
    const room = to - each.from;
    return s("g", { class: index % 2 ? "band odd" : "band" },
      s("rect", { x: each.from, y: top, width: Math.max(0, room), height: floor - top }),
      s("text", { class: "axis", x: each.from + 4, y: top - 6 }, heading(each.step, room)));
  });
}

/** What stands above a step, as far as there is room; 0 is what comes after the steps. */
function heading(step, room) {
  if (!step) return room > 30 ? "end" : "";
  return room > 50 ? `step ${step}` : room > 12 ? String(step) : "";
}

function ticks(from, to, width) {
  const most = Math.max(2, Math.floor(width / 90));
  const size = 1000 * (TICKS.find((each) => (to - from) / 1000 / each <= most) ?? TICKS.at(-1));
  // Full hours and days are those of the reader's own place.
  const shift = new Date(from).getTimezoneOffset() * 60_000;
  const found = [];
  for (let time = Math.ceil((from - shift) / size) * size + shift; time <= to; time += size) found.push(time);
  return found;
}

function summary(points, releasing) {
  const [first, last] = [points[0], points.at(-1)];
  const took = short(((releasing ? clock() : last.at) - first.at) / 1000);
  const weight = last.asked === null ? "" : ` of the weight, asked for ${last.asked}%, accepted ${last.accepted ?? 0}%`;
  return `The course${weight}, over ${took}: the table below has all of it`;
}

function table(points) {
  const names = ["At", "Step", "State", "Asked for", "Accepted", "New ready", "Stable ready"];
  const percent = (each) => (each === null ? "" : `${each}%`);
  return h("table", {}, h("thead", {}, h("tr", {}, names.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, points.map((each) => h("tr", {},
      h("th", { scope: "row", title: whole(each.at) }, timeOfDay(each.at)),
      [each.step || "", each.state, percent(each.asked), percent(each.accepted), each.fresh ?? "", each.stable ?? ""].map((one) => h("td", {}, String(one)))))));
}
