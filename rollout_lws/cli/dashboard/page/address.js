// The address says what is shown: which release, which filters, which group is open. So every view can be sent.

/** Parameters that stay as one goes from view to view. */
const STAYS = ["wall"];
/** The window's event after the page has changed its own address. */
export const MOVED = "page:moved";

/** What the address asks for by this name, "" if nothing. */
export function asked(name) {
  return new URLSearchParams(location.search).get(name) ?? "";
}

/** The address of this view with some parameters changed; "" and null take one away. */
export function addressWith(changes) {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) search.set(name, value);
    else search.delete(name);
  }
  return location.pathname + query(search);
}

/** Changes parameters without a step in the browser's history. */
export function set(changes) {
  history.replaceState(null, "", addressWith(changes));
  dispatchEvent(new Event(MOVED));
}

/** Goes to an address of this page, by a step in the browser's history. */
export function go(address) {
  const before = location.pathname;
  history.pushState(null, "", address);
  dispatchEvent(new Event(MOVED));
  if (location.pathname === before) return;
  scrollTo(0, 0);
  document.getElementById("main").focus({ preventScroll: true });
}

/** The address of the list. */
export function listAddress() {
  return `/${query(kept())}`;
}

/** The address of a release. */
export function releaseAddress(namespace, name) {
  return `/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${query(kept())}`;
}

function kept() {
  const search = new URLSearchParams(location.search);
  for (const name of [...search.keys()]) if (!STAYS.includes(name)) search.delete(name);
  return search;
}

function query(search) {
  // Slashes and commas are allowed there, and read better.
  const text = search.toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
  return text ? `?${text}` : "";
}
