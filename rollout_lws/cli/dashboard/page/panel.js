// The panel of one group: its pods, their nodes, what is to blame, last words, and commands that show more.

import { asked, addressWith, go } from "./address.js";
import { Answer } from "./answer.js";
import { route } from "./ask.js";
import { command } from "./copy.js";
import { delegate, h, show } from "./dom.js";
import { long, said, visible } from "./text.js";
import { since } from "./time.js";

/** Where there is no room beside the panel it lies above everything else; as in the stylesheet. */
const ABOVE = matchMedia("(width < 80rem)");

export class Panel {
  #body = h("div", { class: "panel-body" });
  #shown = "";
  #seen = null;
  #answer;

  constructor(view, namespace, name) {
    Object.assign(this, { view, namespace, name });
    this.element = h("aside", { id: "panel", class: "panel", tabindex: "-1", "aria-labelledby": "panel-title", hidden: true }, this.#body);
    view.element.append(this.element);
    this.#answer = new Answer(view, () => this.#draw());
    delegate(this.#body, "click", "[data-again]", () => this.again());
    view.listen(ABOVE, "change", () => this.#cover());
    view.listen(document, "pointerdown", (event) => {
      const beside = this.#covers && !event.composedPath().includes(this.element) && !document.querySelector("dialog[open]");
      if (beside) go(addressWith({ group: "" }));
    });
    view.closing(() => this.open(""));
  }

  /** Shows a group, "" for none; true if that is another one than before. */
  open(group) {
    const other = group !== this.#shown;
    this.#shown = group;
    this.element.hidden = !group;
    document.body.classList.toggle("has-panel", Boolean(group));
    this.#cover();
    this.#look();
    return other;
  }

  /** Asks again, since what was told last may be old. */
  again() {
    this.#answer.again();
  }

  take(seen) {
    this.#seen = seen;
    this.open(asked("group"));
  }

  get group() {
    return this.#shown;
  }

  get #covers() {
    return Boolean(this.#shown) && ABOVE.matches;
  }

  /** What the panel lies above is out of reach of the keyboard, too. */
  #cover() {
    for (const each of [this.view.content, ...document.querySelectorAll(".top, .skip-link")]) each.inert = this.#covers;
  }

  #found() {
    const slash = this.#shown.lastIndexOf("/");
    const [workload, index] = [this.#shown.slice(0, slash), this.#shown.slice(slash + 1)];
    // While a group is replaced there may be two of one index.
    const every = (this.#seen?.versions ?? []).filter((each) => each.workload === workload)
      .flatMap((version) => version.groups.map((group) => ({ version, group })));
    return { workload, index, known: every.filter(({ group }) => String(group.index) === index) };
  }

  /** Draws what is known, and asks for the pods when the group has changed. */
  #look() {
    if (!this.#shown) return this.#answer.keep("");
    const { workload, index, known } = this.#found();
    if (this.#seen) {
      this.#answer.keep(route("groups", this.namespace, this.name, workload, index), JSON.stringify([known, this.#seen.causes]));
    }
    this.#draw();
  }

  #draw() {
    const { workload, index, known } = this.#found();
    const { value, trouble } = this.#answer;
    show(this.#body,
      h("header", {},
        h("h2", { id: "panel-title", tabindex: "-1" }, h("span", { class: "dim" }, `${workload} `), `group ${index}`),
        h("a", { class: "close", href: addressWith({ group: "" }), "data-link": true, "aria-label": "Close the group", title: "Close (Esc)" }, "✕")),
      known.map(({ version, group }) => standing(version, group)),
      this.#seen && !known.length ? h("p", { class: "plain" }, "There is no such group now.") : null,
      this.#blame(workload, index),
      value ? pods(value.pods) : trouble || !known.length ? null : h("p", { class: "dim" }, "Asking for the pods …"),
      value || trouble ? this.#answer.standing : null,
      value?.commands.length ? [h("h3", {}, "To see more"), h("ul", { class: "commands" }, value.commands.map(command))] : null);
  }

  #blame(workload, index) {
    const cause = this.#seen?.causes?.find((each) => each.workload === workload && each.group === index);
    if (!cause?.message) return null;
    // A long text need not be read twice.
    const texts = (this.#answer.value?.pods ?? []).flatMap((each) => [each.detail, ...each.containers.map((one) => one.message)]);
    if (texts.some((each) => each.includes(cause.message))) return null;
    return h("div", { class: cause.container ? "blame" : "blame mild", "data-key": "blame" },
      h("p", {}, h("b", {}, said(cause.reason)), cause.container ? ` container ${cause.container}` : "", cause.pod ? ` of ${cause.pod}` : ""),
      long(cause.message, `blame/${workload}/${index}`));
  }
}

function standing(version, group) {
  return h("p", { class: "group-standing", "data-key": `standing/${group.created}` },
    h("span", { class: `group-state ${group.state}` }, group.state), group.why ? h("b", {}, said(group.why)) : null,
    group.since ? h("span", { class: "dim" }, "for ", since(group.since)) : null,
    h("span", { class: "dim" }, `${version.role} ${version.revision}`));
}

function pods(found) {
  return [
    h("h3", { "data-key": "pods-title" }, found.length === 1 ? "Pod" : `${found.length} pods`),
    h("ul", { class: "pods", "data-key": "pods" }, found.map(pod)),
  ];
}

/** A pod that is well takes one line. */
function pod(each) {
  const well = each.ready && !each.reason;
  const bad = each.reason && (each.container || !["NotReady", "Terminating"].includes(each.reason));
  return h("li", { class: well ? "well" : "ill", "data-key": each.name },
    h("p", { class: "pod-head" },
      h("span", { class: `sign ${well ? "good" : bad ? "bad" : "runs"}`, "aria-hidden": "true" }, well ? "✓" : bad ? "!" : "…"),
      h("b", {}, each.name), each.leader ? h("span", { class: "badge" }, "leader") : null,
      h("span", { class: "dim" }, standingOf(each, bad))),
    h("p", { class: "dim pod-where" }, each.node ? `on ${each.node}` : "on no node yet", each.created ? [", ", since(each.created), " old"] : null),
    bad ? h("div", { class: "blame" },
      h("p", {}, h("b", {}, said(each.reason)), each.container ? ` container ${each.container}` : ""), detail(each)) : null,
    well && each.containers.every((one) => !one.restarts) ? null : h("ul", { class: "containers" }, each.containers.map((one) => container(each, one))));
}

/** How a pod is, in a few words; what is at fault is told below it. */
function standingOf(each, bad) {
  if (each.ready) return `${each.phase}, ready`;
  if (bad || !each.detail || each.phase === "Terminating") return `${each.phase}, not ready`;
  return [each.phase, visible(each.detail)].filter(Boolean).join(", ");
}

/** What is known of a pod's trouble besides the words of its containers. */
function detail(each) {
  const told = each.containers.some((one) => one.message && one.message.includes(each.detail));
  return told ? null : long(each.detail, `detail/${each.name}`);
}

function container(pod, one) {
  return h("li", { "data-key": one.name },
    h("p", {}, h("span", {}, one.name), " ", h("b", {}, said(one.state)), h("span", { class: "dim" }, one.ready ? " ready" : " not ready",
      one.restarts ? `, restarted ${one.restarts === 1 ? "once" : `${one.restarts} times`}` : "")),
    long(one.message, `words/${pod.name}/${one.name}`, "pre"));
}
