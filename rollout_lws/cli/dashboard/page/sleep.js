// Hidden tabs. A browser has six connections for all tabs of a server, and each stream takes one: so two hidden tabs go
// on, to tell the state by their titles, and others rest until they are looked at.

const REST_AFTER = 30_000;
const AWAKE = 2;

/** Calls `rest()` for a tab that is hidden for a while and has no place among those that go on; `wake()` afterwards. */
export function whenHidden(rest, wake) {
  let timer = 0;
  let resting = false;
  let release = null;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(async () => {
        const found = await place();
        if (!document.hidden) return found?.();
        release = found;
        if (found) return;
        resting = true;
        rest();
      }, REST_AFTER);
      return;
    }
    release?.();
    release = null;
    if (resting) wake();
    resting = false;
  });
}

/** What leaves the place that this tab has got; null without one. */
async function place() {
  for (let each = 0; each < AWAKE; each += 1) {
    const found = await lock(`hidden-${each}`);
    if (found) return found;
  }
  return null;
}

function lock(name) {
  return new Promise((resolve) => {
    if (!navigator.locks) return resolve(null);
    navigator.locks.request(name, { ifAvailable: true }, (got) => {
      if (!got) return resolve(null);
      return new Promise((release) => resolve(release));
    });
  });
}
