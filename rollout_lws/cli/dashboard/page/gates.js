// Each gate: its figure of both versions against its limit, by how many requests, and how far its window is.

import { h, show } from "./dom.js";
import * as figures from "./figures.js";
import { said, long } from "./text.js";
import { at, between, short, since, until } from "./time.js";

const TONES = new Map([["Passed", "good"], ["Skipped", "off"], ["Failed", "bad"], ["Inconclusive", "waits"], ["Error", "bad"]]);

export class Gates {
  element = h("section", { class: "card gates-part", "aria-labelledby": "gates-title" });

  constructor(actions) {
    this.actions = actions;
  }

  of(seen) {
    return [seen.gates, seen.offers, this.actions.state];
  }

  draw(seen) {
    this.element.hidden = !seen.gates.length;
    const skips = this.actions.offers((each) => each.action === "skip");
    show(this.element,
      h("h2", { id: "gates-title" }, "Gates"),
      h("ul", { class: "gates" }, seen.gates.map((each) => gate(each, skips, this.actions))),
      this.actions.results(skips));
  }
}

function gate(each, skips, actions) {
  const skip = skips.find((offer) => offer.gate === each.name);
  const tone = TONES.get(each.result) ?? (each.since ? "runs" : "off");
  return h("li", { class: `gate ${tone}`, "data-key": `${each.of}/${each.name}` },
    h("div", { class: "gate-head" },
      h("b", {}, each.name), h("span", { class: `state ${tone}` }, each.result ?? (each.since ? "measuring" : "to come")),
      each.of === "release" ? h("span", { class: "badge" }, "whole release") : null,
      skip ? actions.button(skip, "Skip", "small") : null),
    each.asks ? h("p", { class: "dim" }, said(each.asks)) : null,
    numbers(each),
    share(each),
    time(each),
    each.job ? h("p", { class: "dim" }, "Job ", said(each.job)) : null,
    each.by ? h("p", { class: "dim" }, "by ", said(each.by)) : null,
    long(each.message, `gate/${each.of}/${each.name}`));
}

/** A figure with its unit as a number: "412ms" is 0.412, "41.7%" is 41.7. */
function number(text) {
  const found = /^(-?[\d.]+(?:e[+-]?\d+)?)(ms|s|%)?$/.exec(String(text ?? "").trim());
  return found ? Number(found[1]) * (found[2] === "ms" ? 0.001 : 1) : NaN;
}

function numbers(each) {
  if (each.value === null || each.value === undefined) return null;
  const [value, stable, limit] = [each.value, each.stableValue, each.limit].map(number);
  const least = each.least;
  // Where the figure itself is a share of requests, the interval is its own.
  const [from, to] = each.isShare ? [each.shareFrom, each.shareTo].map(number) : [];
  return h("div", { class: "measured" },
    figures.bullet({ value, stable, limit, least, from, to, bad: each.result === "Failed" }),
    h("dl", { class: "numbers" },
      figure("new", each.value, each.samples, "new"),
      figure("stable", each.stableValue, each.stableSamples, "old"),
      each.limit ? h("div", { "data-key": "limit", class: "limit" }, h("dt", {}, least ? "at least" : "at most"), h("dd", {}, each.limit)) : null,
      Number.isFinite(from) && Number.isFinite(to)
        ? h("div", { "data-key": "interval" }, h("dt", {}, "between"), h("dd", {}, `${each.shareFrom} and ${each.shareTo}`))
        : null));
}

function figure(name, value, samples, cls) {
  const many = Number.isFinite(samples) ? `of ${samples.toLocaleString()} requests` : "";
  if (!value && !many) return null;
  return h("div", { "data-key": name, class: cls },
    h("dt", {}, name), h("dd", {}, value ?? "", many ? h("small", { class: "dim" }, ` ${many}`) : null));
}

/** The share of requests that are beyond the limit, or without a hit, with the interval in which it lies. */
function share(each) {
  const [value, from, to, limit] = [each.share, each.shareFrom, each.shareTo, each.shareLimit].map(number);
  if (each.isShare || !each.share || !Number.isFinite(from) || !Number.isFinite(to)) return null;
  return h("div", { class: "measured share-of" },
    figures.bullet({ value, limit, from, to, bad: each.result === "Failed" }),
    h("p", {}, `${each.share} of requests ${each.least ? "without" : "beyond it"}, between ${each.shareFrom} and ${each.shareTo}`,
      Number.isFinite(limit) ? `; ${each.shareLimit} may` : ""));
}

function time(each) {
  const from = at(each.since);
  if (Number.isNaN(from)) return each.window ? h("p", { class: "dim" }, `window of ${short(each.window)}`) : null;
  const took = between(each.since, each.finishedAt);
  if (took) return h("p", { class: "dim" }, "took ", took);
  if (each.result) return null;
  if (!each.window) return h("p", { class: "dim" }, "for ", since(each.since));
  return h("p", { class: "countdown dim" }, figures.progress(from, each.window),
    "measured for ", since(each.since), `, at least ${short(each.window)}; `, until(from + 1000 * each.window), " left");
}
