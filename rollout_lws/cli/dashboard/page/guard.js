// Failures of the page itself, of which a person has to know: what is shown then is not all that is true.

let told = () => {};

/** `tell(text)` is called for each failure from now on. */
export function whenBroken(tell) {
  told = tell;
}

/** Calls `act()`, which shows what is named so; its failure is told, and ends nothing else. */
export function guard(what, act) {
  try {
    return act();
  } catch (error) {
    console.error(error);
    told(`This page cannot show ${what} (${error.message})`);
    return undefined;
  }
}

// Anything else that fails: listeners, timers, and what comes after an answer.
addEventListener("error", ({ error }) => error && told(`This page cannot show all (${error.message})`));
addEventListener("unhandledrejection", ({ reason }) => told(`This page cannot show all (${reason?.message ?? reason})`));
