// Requests to the dashboard, all of which are made here.

/** Where the dashboard answers the page: below "/-/", which no namespace can be. */
export function route(...parts) {
  return `/-/${parts.map(encodeURIComponent).join("/")}`;
}

/** The dashboard has answered, and refuses: its words, and the code of its answer. */
export class Refused extends Error {
  constructor(why, code) {
    super(why);
    this.code = code;
  }
}

/** The answer to a request as a value; `post` is a value to send. Throws Refused, or an Error where none answers. */
export async function ask(path, { signal, post, method = post ? "POST" : "GET" } = {}) {
  const sent = post && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(post) };
  const answer = await fetch(path, { method, signal, ...sent }).catch((error) => {
    throw new Error(`rollout-lws dashboard does not answer: ${error.message}`);
  });
  const told = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(told?.refused ?? `rollout-lws dashboard answers with ${answer.status}`, answer.status);
  if (told === null && method !== "HEAD") throw new Error("rollout-lws dashboard has not answered in full");
  return told;
}
