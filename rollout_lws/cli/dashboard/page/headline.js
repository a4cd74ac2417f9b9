// What is going on, in the controller's words: state, message, effect on users, what is changed, what is to blame.

import { addressWith } from "./address.js";
import { h, show } from "./dom.js";
import { stateOf } from "./icons.js";
import { long, said } from "./text.js";
import { since } from "./time.js";
import { toneOf } from "./words.js";

export class Headline {
  element = h("section", { class: "card headline", "aria-labelledby": "title" });

  of(seen) {
    return [
      seen.state, seen.since, seen.message, seen.release, seen.paused, seen.ending, seen.at, seen.steps.length,
      seen.workload, seen.users, seen.change, seen.changedBy, seen.changedAt,
      seen.causes, seen.causes?.length ? seen.groupsTold : "", location.search,
    ];
  }

  draw(seen) {
    this.element.className = `card headline ${toneOf(seen.state)}`;
    show(this.element,
      h("h1", { id: "title" }, h("span", { class: "dim" }, `${seen.namespace}/`), h("wbr"), seen.name),
      h("p", { class: "standing" }, stateOf(seen.state),
        seen.releasing && seen.at && !seen.ending ? h("span", {}, `step ${seen.at} of ${seen.steps.length}`) : null,
        seen.ending ? h("span", {}, seen.ending) : null,
        seen.paused && seen.state !== "Paused" ? h("span", { class: "badge" }, "paused") : null,
        seen.since ? h("span", { class: "dim" }, "for ", since(seen.since)) : null),
      long(seen.message, "message"),
      causes(seen),
      facts(seen));
  }
}

function author({ changedBy, changedAt }) {
  if (!changedBy) return null;
  return h("span", { class: "dim" }, " by ", said(changedBy), changedAt ? [", ", since(changedAt), " ago"] : null);
}

/** Groups that are not ready, with the pod and the container to blame; of these some may just start up. */
function causes(seen) {
  if (!seen.causes?.length) return null;
  const failing = seen.versions.flatMap(({ workload, groups }) =>
    groups.filter((each) => each.state === "failed").map((each) => `${workload}/${each.index}`));
  const failed = seen.causes.some(({ workload, group, container }) => !group || container || failing.includes(`${workload}/${group}`));
  return h("ul", { class: failed ? "causes failed" : "causes", "aria-label": "Groups that are not ready", "data-key": "causes" }, seen.causes.map((each) => {
    const where = each.group ? `${each.workload}/${each.group}` : each.workload;
    return h("li", { "data-key": where },
      each.group ? h("a", { href: addressWith({ group: where }), "data-link": true }, `${each.workload} group ${each.group}`) : h("span", {}, each.workload),
      " ", h("b", {}, said(each.reason)), each.container ? h("span", { class: "dim" }, ` container ${each.container}`) : null,
      each.pod ? h("span", { class: "dim" }, ` of ${each.pod}`) : null,
      long(each.message, `cause/${where}`));
  }));
}

function facts(seen) {
  const found = [
    ["Users", seen.users ? said(seen.users) : null],
    ["Changes", seen.change ? [said(seen.change), author(seen)] : null],
    [seen.workload.includes(" ") ? "Workloads" : "Workload", seen.workload],
    ["Release", seen.release ? h("code", {}, seen.release) : null],
  ];
  return h("dl", { class: "facts", "data-key": "facts" }, found.filter(([, told]) => told).map(([name, told]) =>
    h("div", { "data-key": name, class: /^AFFECTED/.test(seen.users) && name === "Users" ? "affected" : "" }, h("dt", {}, name), h("dd", {}, told))));
}
