// The one stream of server-sent events of a view, which comes back by itself.

import { ask } from "./ask.js";
import { guard } from "./guard.js";
import { setClock } from "./time.js";

/** The server gives a sign of life each 15 seconds; milliseconds after which it is not believed to be there. */
const SILENCE = 20_000;
/** Milliseconds before a stream is tried again, longer with each failure. */
const AGAIN = [500, 1000, 2000, 3000, 5000];
const AWAY = "rollout-lws dashboard does not answer";
const LOCKED = "this browser is not let in any more: open the address that rollout-lws dashboard printed";
/** Codes of answers to a browser that is not let in. */
const SHUT = [401, 421];
/** What events of a kind show. */
const SHOWS = new Map([["rows", "the list"], ["release", "the release"], ["events", "the Events"]]);

/**
 * Listens to a path. `on` has a function for each kind of event; `lost(why, silent)` is called within a second of the end
 * of the stream, which has been silent for so many milliseconds then, and `back(hello)` when there is one again.
 */
export class Stream {
  #source = null;
  #failures = 0;
  #timer = 0;
  #alive = Date.now();
  #watch;

  constructor(path, on, lost, back) {
    Object.assign(this, { path, on, lost, back });
    this.#watch = setInterval(() => this.#listenForLife(), 1000);
    this.#open();
  }

  close() {
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#source?.close();
    this.#source = null;
  }

  #open() {
    const source = new EventSource(this.path);
    this.#source = source;
    this.#alive = Date.now();
    const hear = (kind, act) => source.addEventListener(kind, (event) => {
      this.#alive = Date.now();
      guard(SHOWS.get(kind) ?? "what it is told", () => act(JSON.parse(event.data)));
    });
    hear("hello", (told) => {
      this.#failures = 0;
      setClock(told.now);
      this.back(told);
    });
    hear("clock", (told) => setClock(told.now));
    for (const [kind, act] of Object.entries(this.on)) hear(kind, act);
    source.onerror = () => this.#fail(AWAY);
  }

  #listenForLife() {
    const silent = Date.now() - this.#alive;
    if (this.#source && silent > SILENCE) this.#fail("rollout-lws dashboard is silent", silent);
  }

  #fail(why, silent = 0) {
    this.#source?.close();
    this.#source = null;
    this.lost(why, silent);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#again(), AGAIN[Math.min(this.#failures, AGAIN.length - 1)]);
    this.#failures += 1;
  }

  /** A browser does not say why a stream has failed, so another request finds out. */
  async #again() {
    let why = "";
    const timer = this.#timer;
    try {
      await ask(this.path, { method: "HEAD", signal: AbortSignal.timeout(SILENCE) });
    } catch (error) {
      why = SHUT.includes(error.code) ? LOCKED : error.code ? error.message : AWAY;
    }
    // It may have been closed meanwhile.
    if (timer !== this.#timer || this.#source) return;
    if (why) this.#fail(why);
    else this.#open();
  }
}
