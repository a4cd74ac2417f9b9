// The weight over time, asked for and accepted, and below it the groups that were ready.

import { Course, holding } from "./course.js";
import { h, s, show } from "./dom.js";
import { clock, short, timeOfDay, whole } from "./time.js";

const LEFT = 44;
const RIGHT = 12;
const TOP = 20;
const WEIGHT = 130;
const GAP = 18;
const GROUPS = 62;
const FOOT = 20;
const HEIGHT = TOP + WEIGHT + GAP + GROUPS + FOOT;
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

  constructor() {
    new ResizeObserver(([entry]) => {
      this.#width = Math.round(entry.contentRect.width);
      this.#plot();
    }).observe(this.#box);
    this.#box.addEventListener("pointermove", (event) => this.#point(event.clientX - this.#box.getBoundingClientRect().left));
    this.#box.addEventListener("pointerleave", () => this.#point(null));
    this.timer = setInterval(() => this.#releasing && this.#plot(), 2000);
  }

  close() {
    clearInterval(this.timer);
  }

  of(seen) {
    return [seen.release, seen.releasing, seen.timeline, seen.asked, seen.accepted, seen.versions, seen.at, seen.stepState, seen.ending];
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

  /** Says what was so at the place of the pointer; what is so now without one. */
  #point(x) {
    if (!this.#points.length) return;
    const [from, to] = this.#span();
    const inside = x === null ? 1 : Math.min(1, Math.max(0, (x - LEFT) / Math.max(1, this.#width - LEFT - RIGHT)));
    const time = from + inside * (to - from);
    const each = holding(this.#points, time);
    this.#readout.textContent = [
      x === null && this.#releasing ? "Now" : timeOfDay(time),
      each.step ? `step ${each.step}` : "", each.state,
      each.asked === null ? "" : `asked for ${each.asked}%, accepted ${each.accepted ?? 0}%`,
      each.fresh === null && each.stable === null ? "" : `ready: ${each.fresh ?? 0} new, ${each.stable ?? 0} stable`,
    ].filter(Boolean).join(" · ");
    const line = this.#box.querySelector(".pointer");
    if (!line) return;
    line.setAttribute("visibility", x === null ? "hidden" : "visible");
    const place = LEFT + inside * (this.#width - LEFT - RIGHT);
    for (const end of ["x1", "x2"]) line.setAttribute(end, place);
  }
}

function legend() {
  return h("ul", { class: "legend lines", "aria-hidden": "true" },
    [["accepted", "accepted"], ["asked", "asked for"], ["fresh", "new ready"], ["stable", "stable ready"]].map(([cls, word]) =>
      h("li", {}, s("svg", { class: "sample", viewBox: "0 0 20 8" }, s("path", { class: cls, d: "M0 4h20" })), word)));
}

function drawing(points, from, to, width, releasing) {
  const x = (time) => LEFT + ((time - from) / (to - from)) * (width - LEFT - RIGHT);
  const weights = points.some((each) => each.asked !== null || each.accepted !== null);
  const base = TOP + WEIGHT;
  const y = (percent) => base - (percent / 100) * WEIGHT;
  const most = Math.max(1, ...points.map((each) => Math.max(each.fresh ?? 0, each.stable ?? 0)));
  const foot = weights ? base + GAP + GROUPS : TOP + GROUPS;
  const g = (count) => foot - (count / most) * GROUPS;
  const height = foot + FOOT;
  const end = x(to);
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary(points, releasing) },
    stepsAbove(points, x, end, foot),
    weights ? [0, 50, 100].map((percent) => [
      s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(percent), y2: y(percent) }),
      s("text", { class: "axis", x: LEFT - 6, y: y(percent) + 4, "text-anchor": "end" }, `${percent}%`),
    ]) : null,
    [0, most].map((count) => [
      s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: g(count), y2: g(count) }),
      s("text", { class: "axis", x: LEFT - 6, y: g(count) + 4, "text-anchor": "end" }, String(count)),
    ]),
    ticks(from, to, width).map((time) => [
      s("line", { class: "tick", x1: x(time), x2: x(time), y1: foot, y2: foot + 4 }),
      s("text", { class: "axis", x: x(time), y: foot + 16, "text-anchor": "middle" }, timeOfDay(time, to - from < 600_000)),
    ]),
    weights ? [
      s("path", { class: "accepted-area", d: `${line(points, "accepted", x, y, end)}V${base}H${x(points[0].at)}Z` }),
      s("path", { class: "accepted", d: line(points, "accepted", x, y, end) }),
      s("path", { class: "asked", d: line(points, "asked", x, y, end) }),
    ] : null,
    s("path", { class: "stable", d: line(points, "stable", x, g, end) }),
    s("path", { class: "fresh", d: line(points, "fresh", x, g, end) }),
    s("line", { class: "pointer", x1: 0, x2: 0, y1: TOP, y2: foot, visibility: "hidden" }));
}

/** A line of steps; what is not told counts as 0. */
function line(points, name, x, y, end) {
  const parts = points.map((each, index) => {
    const [at, level] = [x(each.at).toFixed(1), y(each[name] ?? 0).toFixed(1)];
    return index ? `H${at}V${level}` : `M${at} ${level}`;
  });
  return `${parts.join("")}H${end.toFixed(1)}`;
}

/** The steps as bands with their numbers. */
function stepsAbove(points, x, end, foot) {
  const found = [];
  points.forEach((each) => {
    if (found.at(-1)?.step !== each.step) found.push({ step: each.step, from: x(each.at) });
  });
  return found.map((each, index) => {
    const to = found[index + 1]?.from ?? end;
    const room = to - each.from;
    return s("g", { class: index % 2 ? "band odd" : "band" },
      s("rect", { x: each.from, y: TOP, width: Math.max(0, room), height: foot - TOP }),
      room > 12 ? s("text", { class: "axis", x: each.from + 4, y: TOP - 6 }, each.step ? (room > 50 ? `step ${each.step}` : String(each.step)) : room > 30 ? "end" : "") : null);
  });
}

function ticks(from, to, width) {
  const most = Math.max(2, Math.floor((width - LEFT - RIGHT) / 80));
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
