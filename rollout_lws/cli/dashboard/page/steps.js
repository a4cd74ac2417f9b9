// The steps as a line: where the release is, what each waits for, and how long each took.

import { h, show } from "./dom.js";
import * as figures from "./figures.js";
import { said } from "./text.js";
import { at, between, short, since, until } from "./time.js";
import { PHASES, plural, toneOf } from "./words.js";

export class Steps {
  element = h("section", { class: "card steps-part", "aria-labelledby": "steps-title" });

  constructor(actions) {
    this.actions = actions;
  }

  of(seen) {
    return [
      seen.steps, seen.at, seen.state, seen.stepState, seen.current, seen.ending, seen.releasing, seen.offers, this.actions.state,
    ];
  }

  draw(seen) {
    this.element.hidden = !seen.steps.length;
    const jumps = this.actions.offers((each) => each.action === "jump");
    show(this.element,
      h("h2", { id: "steps-title" }, "Steps"),
      h("ol", { class: "steps" }, seen.steps.map((step) => item(seen, step, jumps, this.actions)), ending(seen)),
      this.actions.results(jumps));
  }
}

function item(seen, step, jumps, actions) {
  const is = step.state;
  const jump = jumps.find((each) => each.toStep === step.index);
  const tone = is === "current" ? toneOf(seen.state) : "";
  return h("li", { class: `${is} ${tone}`, "data-key": `step/${step.index}`, "aria-current": tone ? "step" : null },
    h("span", { class: "node", "aria-hidden": "true" }, MARKS.get(is) ?? String(step.index)),
    h("div", { class: "what" },
      h("span", { class: "unseen" }, `Step ${step.index}, ${WORDS.get(is)}: `),
      h("b", {}, step.promotes ? "promote" : step.size),
      step.traffic && !step.promotes ? h("span", {}, ` ${step.traffic} traffic`) : null,
      h("span", { class: "asks dim" }, asks(step))),
    is === "current" ? current(seen, step) : took(step),
    jump ? actions.button(jump, "go here", "small") : null);
}

const WORDS = new Map([["done", "done"], ["current", "on"], ["stopped", "stopped here"], ["ahead", "to come"]]);
const MARKS = new Map([["done", "✓"], ["stopped", "✕"]]);

/** What a step asks before the next one begins. */
function asks(step) {
  const found = [
    step.gates?.length ? plural(step.gates.length, "gate") : "",
    step.approval ? "approval" : "",
    step.pause ? `pause ${short(step.pause)}` : "",
  ];
  return found.filter(Boolean).join(", ");
}

function took(step) {
  const time = between(step.since, step.until);
  return time ? h("span", { class: "took dim" }, "took ", time) : null;
}

/** The phases of the step that is on, what it waits for, and since when. */
function current(seen, step) {
  const { state, waitsFor, since: from, pausedAt } = seen.current;
  const phase = PHASES.findIndex((each) => each.states.includes(state));
  const asked = { groups: !step.promotes, traffic: Boolean(step.traffic), gates: step.gates?.length, pause: step.approval || step.pause };
  const shown = PHASES.map((each, index) => ({ ...each, index })).filter((each) => asked[each.name] || each.index === phase);
  return h("div", { class: "now" },
    phase >= 0 ? h("ul", { class: "phases", "aria-label": "Within the step" }, shown.map((each) => {
      const is = each.index < phase ? "done" : each.index === phase ? "on" : "ahead";
      return h("li", { class: is, "aria-current": is === "on" ? "true" : null }, each.name, is === "done" ? h("span", { class: "unseen" }, " done") : null);
    })) : null,
    h("p", { class: "waits-for" }, waitsFor ? said(waitsFor) : null),
    h("p", { class: "dim" }, step.since ? ["step for ", since(step.since), ", "] : null, "in this state for ", since(from)),
    countdown(step, state, pausedAt));
}

/** The rest of a timed pause. */
function countdown(step, state, from) {
  const seconds = Number(step.pause);
  if (state !== "StepPaused" || !seconds || Number.isNaN(at(from))) return null;
  return h("p", { class: "countdown" }, figures.progress(at(from), seconds), until(at(from) + 1000 * seconds), ` left of ${short(seconds)}`);
}

/** What comes after the steps, while it is on. */
function ending(seen) {
  if (!seen.ending || seen.steps.some((each) => each.state === "current")) return null;
  const { waitsFor, since: from } = seen.current;
  return h("li", { class: `current ending ${toneOf(seen.state)}`, "data-key": "ending", "aria-current": "step" },
    h("span", { class: "node", "aria-hidden": "true" }, seen.ending === "way back" ? "↶" : "★"),
    h("div", { class: "what" }, h("b", {}, seen.ending)),
    h("div", { class: "now" }, h("p", { class: "waits-for" }, said(waitsFor)), h("p", { class: "dim" }, "for ", since(from))));
}
