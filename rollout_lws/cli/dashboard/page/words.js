// Words of the API, and what they mean for a person who looks.

/** The tone of each state that needs a person, the most urgent first. */
const PERSON = new Map([["Stalled", "bad"], ["Aborted", "bad"], ["AwaitingApproval", "waits"], ["HoldReleased", "waits"], ["Paused", "waits"]]);
/** Of the others, those that do not go on by themselves. */
const OTHERS = new Map([
  ["WaitingForQuota", "holds"], ["WaitingForAccelerators", "holds"], ["Healthy", "good"], ["Disabled", "off"], ["Terminating", "off"],
]);

/**
 * The tone of a Rollout's state: `bad` and `waits` need a person, `holds` waits for room, `runs` goes on by itself,
 * `good` and `off` are at rest.
 */
export function toneOf(state) {
  return PERSON.get(state) ?? OTHERS.get(state) ?? (state ? "runs" : "off");
}

/** What kinds of Rollouts there are, those first that need a person. */
export const KINDS = [
  { name: "person", title: "Needs a person", tones: ["bad", "waits"] },
  { name: "on", title: "Under way", tones: ["holds", "runs"] },
  { name: "rest", title: "At rest", tones: ["good", "off"] },
];

export function kindOf(state) {
  const tone = toneOf(state);
  return KINDS.find((each) => each.tones.includes(tone)).name;
}

/** Where a state stands among those that need a person; the most urgent is 0. */
export function urgency(state) {
  const at = [...PERSON.keys()].indexOf(state);
  return at < 0 ? 99 : at;
}

/** What a step does, one after the other. */
export const PHASES = [
  { name: "groups", states: ["BeforeStepUpgrade", "StepUpgrade"] },
  { name: "traffic", states: ["StepTrafficRouting"] },
  { name: "gates", states: ["StepMetricsAnalysis"] },
  { name: "pause", states: ["StepPaused"] },
];

/** States of a group, in the order of their counts; `mark` tells them without colour. */
export const GROUP_STATES = [
  { state: "ready", mark: "" },
  { state: "loading", mark: "…" },
  { state: "failed", mark: "!" },
  { state: "draining", mark: "↓" },
  { state: "terminating", mark: "×" },
];

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
