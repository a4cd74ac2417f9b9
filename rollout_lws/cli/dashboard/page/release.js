// One release: its steps, groups, gates, accelerators, and what one may do.

import { h, show } from "./dom.js";
import { since, short } from "./time.js";
import { state } from "./list.js";

export function releaseView(main, namespace, name) {
  let seen = null;
  let rights = { act: "" };
  document.title = `${name} · Releases`;
  main.replaceChildren(h("h1", {}, h("span", { class: "dim" }, `${namespace}/`), name), h("p", { class: "dim" }, "Asking the cluster …"));
  fetch(`/rights/${encodeURIComponent(namespace)}`).then((answer) => answer.json()).then((found) => {
    rights = found;
    draw();
  });

  function draw() {
    if (!seen) return;
    document.title = `${seen.state} · ${name}`;
    show(main,
      h("h1", {}, h("span", { class: "dim" }, `${namespace}/`), name, " ", state(seen.state), " ", seen.since ? h("small", { class: "dim" }, "for ", since(seen.since, h)) : null),
      h("p", { class: "message" }, seen.message),
      seen.change ? h("p", {}, seen.change) : null,
      seen.users ? h("p", {}, seen.users) : null,
      steps(seen),
      offers(),
      seen.versions.map(version),
      seen.gates.map(gate),
      h("p", {}, `${seen.accelerators.now || 0} accelerators now`, seen.accelerators.peak ? `, ${seen.accelerators.peak} at peak` : ""),
    );
  }

  function offers() {
    return h("div", { class: "offers", role: "group", "aria-label": "Actions" }, seen.offers.map((each) => {
      const why = rights.act || each.refused;
      return h("button", {
        type: "button", disabled: Boolean(why), title: why || each.effect,
        "data-does": JSON.stringify([each.action, each.gate, seen.release, seen.at, why]), "data-key": `${each.action}/${each.gate ?? ""}`,
        onclick: () => act(each),
      }, each.label);
    }));
  }

  async function act(offer) {
    const { release, at } = seen;
    const reason = await question(offer, name);
    if (reason === null) return;
    const answer = await fetch(`/actions/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ action: offer.action, gate: offer.gate, release, step: at, reason }),
    });
    const said = await answer.json();
    document.getElementById("told").textContent = said.told ?? said.refused;
  }

  return {
    stream: `/stream/release/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`,
    kinds: ["release", "gone"],
    take(kind, told) {
      if (kind === "gone") return show(main, h("h1", {}, name), h("p", {}, told.message));
      seen = told;
      draw();
    },
  };
}

/** Asks whether an action is meant; the reason that was typed, null for no. */
function question(offer, name) {
  const dialog = document.getElementById("question");
  return new Promise((resolve) => {
    const reason = h("input", { id: "reason", maxlength: 500, autocomplete: "off" });
    dialog.replaceChildren(h("form", { method: "dialog" },
      h("h2", { id: "question-title" }, `${offer.label}: ${name}?`),
      offer.effect ? h("p", {}, offer.effect) : null,
      h("label", { for: "reason" }, "Why (may be left out)"), reason,
      h("div", { class: "offers" }, h("button", { value: "no" }, "No"), h("button", { value: "yes", class: "main" }, offer.label)),
    ));
    dialog.onclose = () => resolve(dialog.returnValue === "yes" ? reason.value : null);
    dialog.returnValue = "";
    dialog.showModal();
  });
}

function steps(seen) {
  return h("ol", { class: "steps", "aria-label": "Steps" }, seen.steps.map((each) => {
    const is = !seen.releasing ? "" : each.index < seen.at ? "done" : each.index === seen.at ? "current" : "ahead";
    return h("li", { class: is, "aria-current": is === "current" ? "step" : null },
      h("b", {}, each.promotes ? "promote" : each.size), each.traffic ? ` ${each.traffic}` : "",
      is === "current" ? h("small", {}, ` ${seen.stepState}`) : each.approval ? h("small", {}, " approval") : "");
  }));
}

function version(each) {
  return h("section", { "aria-label": `${each.workload} ${each.role}` },
    h("h2", {}, each.workload, " ", h("small", { class: "dim" }, each.role, " ", each.revision, " ", each.weight)),
    h("ul", { class: "cells" }, each.groups.map((group) =>
      h("li", { class: `cell ${group.state} ${each.new ? "new" : "old"}`, title: `group ${group.index}: ${group.state}${group.why ? `, ${group.why}` : ""}`, "data-key": `${each.workload}/${group.index}` }, group.index))));
}

function gate(each) {
  return h("p", {}, h("b", {}, each.name), " ", each.result ?? "is measured", " ", each.value ?? "", each.limit ? ` against ${each.limit}` : "", each.message ? `: ${each.message}` : "");
}
