// The numbers of a release: requests, groups, loads, accelerators.

import { h, show } from "./dom.js";
import * as figures from "./figures.js";

export class Vitals {
  element = h("section", { class: "vitals", "aria-label": "Numbers" });

  of(seen) {
    return [seen.asked, seen.accepted, seen.groupsTold, seen.loads, seen.accelerators, seen.releasing, seen.at];
  }

  draw(seen) {
    show(this.element, traffic(seen), groups(seen), loads(seen), accelerators(seen));
  }
}

function tile(title, number, unit, ...rest) {
  return h("div", { class: "card tile", "data-key": title },
    h("h3", {}, title), h("p", { class: "figure" }, number, unit ? h("small", {}, ` ${unit}`) : null), ...rest);
}

function traffic({ asked, accepted, releasing }) {
  if (!releasing || (asked === null && accepted === null)) return null;
  const shown = accepted ?? 0;
  return tile("Traffic of the new version", `${shown}%`, "",
    figures.share(shown, asked ?? shown),
    h("p", { class: "dim" }, asked === shown || asked === null ? "asked for and accepted" : `${asked}% asked for, ${shown}% accepted`));
}

function groups({ versions }) {
  const every = versions.flatMap((each) => each.groups);
  const ready = every.filter((each) => each.state === "ready").length;
  const failed = every.filter((each) => each.state === "failed").length;
  const newer = versions.filter((each) => each.new).flatMap((each) => each.groups);
  const newReady = newer.filter((each) => each.state === "ready").length;
  const oldReady = ready - newReady;
  const words = newer.length ? `${newReady} new, ${oldReady} old` : "";
  return tile("Groups ready", String(ready), `of ${every.length}`,
    figures.parts([["new", newReady], ["old", oldReady], ["bad", failed]], every.length),
    h("p", { class: "dim" }, [words, failed ? `${failed} failed` : ""].filter(Boolean).join(", ")));
}

function loads({ loads: known, releasing }) {
  if (!known || !releasing || !(known.done + known.toCome)) return null;
  return tile("Model loads", String(known.done), `of ${known.done + known.toCome}`,
    figures.parts([["new", known.done]], known.done + known.toCome),
    h("p", { class: "dim" }, known.toCome ? `${known.toCome} to come` : "none to come"));
}

function accelerators({ accelerators: known, releasing }) {
  const { now } = known;
  if (now === null || (!now && !known.peak)) return null;
  const most = Math.max(now, known.peak ?? 0, known.after ?? 0);
  const line = (name, count, cls, more = "") => count === null || count === undefined ? null : h("div", { class: "amount-line", "data-key": name },
    h("dt", {}, name, more ? ` (${more})` : ""), h("dd", {}, figures.amount(cls, count, most), h("span", {}, String(count))));
  if (!releasing || (!known.peak && !known.after)) return tile("Accelerators", String(now), "held now");
  return tile("Accelerators", String(now), known.extra ? `held now, ${known.extra} extra` : "held now",
    h("dl", { class: "amounts" },
      line("now", now, "new"),
      line("peak", known.peak, "old", known.peakStep ? `step ${known.peakStep}` : "at the end"),
      line("after", known.after, "old")));
}
