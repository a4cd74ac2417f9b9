// Times as people say them, by the API server's clock.

let ahead = 0;

/** Sets the clock to what the server has said. */
export function setClock(now) {
  ahead = Date.parse(now) - Date.now();
}

/** Milliseconds since the epoch, now. */
export function clock() {
  return Date.now() + ahead;
}

/** The two largest units, as kubectl shows ages: 41d, 3h12m, 11m42s, 8s. */
export function short(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count || parts.length) parts.push(count ? `${count}${unit}` : "");
  }
  return parts.slice(0, 2).join("") || "0s";
}

/** An element that says how long ago a time was, and goes on to. */
export function since(time, h) {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return "";
  return h("time", { datetime: time, "data-since": at, title: new Date(at).toLocaleString() }, short((clock() - at) / 1000));
}

setInterval(() => {
  for (const each of document.querySelectorAll("[data-since]")) {
    const said = short((clock() - Number(each.dataset.since)) / 1000);
    if (each.textContent !== said) each.textContent = said;
  }
}, 1000);
