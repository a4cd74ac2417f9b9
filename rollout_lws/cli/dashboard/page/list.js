// The list of all Rollouts that one may see, with filters that are part of the address.

import { h, show } from "./dom.js";
import { since } from "./time.js";

export function listView(main) {
  const rows = new Map();
  const asked = new URLSearchParams(location.search);
  let known = false;
  const words = h("input", { type: "search", id: "words", placeholder: "name, namespace, state", value: asked.get("q") ?? "", "aria-label": "Filter by name, namespace or state", oninput: refresh });
  const body = h("tbody");
  const count = h("p", { class: "dim", role: "status" });
  document.title = "Releases";
  main.replaceChildren(
    h("div", { class: "tools" }, h("h1", {}, "Releases"), words),
    count,
    h("div", { class: "wide" }, h("table", { class: "list" },
      h("thead", {}, h("tr", {}, ...["Rollout", "State", "Step", "Traffic", "New", "Stable", "For", "Waits for"].map((each) => h("th", { scope: "col" }, each)))),
      body)),
  );

  function refresh() {
    const search = new URLSearchParams(location.search);
    if (words.value) search.set("q", words.value);
    else search.delete("q");
    history.replaceState(null, "", search.size ? `?${search}` : location.pathname);
    draw();
  }

  function draw() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...rows.values()].filter((each) => {
      const text = `${each.namespace}/${each.name} ${each.state} ${each.workload}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    found.sort((a, b) => rank(a) - rank(b) || (a.namespace + "/" + a.name < b.namespace + "/" + b.name ? -1 : 1));
    count.textContent = known ? `${found.length} of ${rows.size} Rollouts` : "Asking the cluster …";
    show(body, found.map(line));
  }

  return {
    stream: "/stream/list",
    kinds: ["rows"],
    take(_, told) {
      if (told.all) rows.clear();
      for (const each of told.rows) rows.set(each.uid, each);
      for (const uid of told.gone) rows.delete(uid);
      known = true;
      draw();
    },
  };
}

const ORDER = ["Stalled", "AwaitingApproval", "Paused", "Aborted", "WaitingForQuota", "WaitingForAccelerators", "HoldReleased"];

/** What needs a person comes first, what is at rest last. */
function rank(row) {
  if (row.state === "Healthy") return 99;
  const at = ORDER.indexOf(row.state);
  return at < 0 ? 50 : at;
}

function line(row) {
  const counted = (each) => (each ? `${each.ready ?? 0}/${each.total ?? 0}` : "");
  return h("tr", { "data-key": row.uid },
    h("th", { scope: "row" }, h("a", { href: `/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`, "data-link": true, "data-key": row.uid }, h("span", { class: "dim" }, `${row.namespace}/`), row.name)),
    h("td", {}, state(row.state)),
    h("td", {}, row.step),
    h("td", {}, row.traffic),
    h("td", {}, counted(row.new)),
    h("td", {}, counted(row.stable)),
    h("td", {}, since(row.since, h)),
    h("td", { class: "message" }, row.message),
  );
}

export function state(word) {
  const tone = word === "Healthy" ? "good" : ["Stalled", "Aborted"].includes(word) ? "bad" : ORDER.includes(word) ? "waits" : "runs";
  return h("span", { class: `state ${tone}` }, word || "Unknown");
}
