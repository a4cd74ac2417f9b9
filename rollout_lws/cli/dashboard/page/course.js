// What a release did since when: the controller's timeline, and what the page has seen itself since it was opened.

import { at, clock } from "./time.js";

/** Of what the page has seen, so many of the newest points. */
const MOST = 2000;

export class Course {
  #release = "";
  #seen = [];

  /** Takes the release as it is now, and gives its points: times in milliseconds, each holds until the next one. */
  take(seen) {
    if (seen.release !== this.#release) this.#seen = [];
    this.#release = seen.release;
    const now = point(seen, clock());
    if (seen.releasing && !same(this.#seen.at(-1), now)) this.#seen = [...this.#seen.slice(1 - MOST), now];
    const told = (seen.timeline ?? []).map((each) => ({
      at: at(each.at), step: each.step ?? 0, state: each.state, asked: each.asked ?? null, accepted: each.accepted ?? null,
      fresh: each.new?.ready ?? null, stable: each.stable?.ready ?? null,
    })).filter((each) => !Number.isNaN(each.at));
    const last = told.at(-1)?.at ?? -Infinity;
    return [...told, ...this.#seen.filter((each) => each.at > last && seen.releasing)];
  }
}

function point(seen, now) {
  return {
    at: now,
    step: seen.ending ? 0 : seen.at,
    state: seen.ending || seen.stepState,
    asked: seen.asked,
    accepted: seen.accepted,
    fresh: seen.ready.new,
    stable: seen.ready.stable,
  };
}

function same(a, b) {
  return Boolean(a) && ["step", "state", "asked", "accepted", "fresh", "stable"].every((name) => a[name] === b[name]);
}

/** The point that holds at a time. */
export function holding(points, time) {
  return points.findLast((each) => each.at <= time) ?? points[0];
}
