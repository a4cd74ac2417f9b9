// A page and a dashboard of different versions: the page may not understand what it is told.

import { isBroken } from "./standing.js";

const OWN = document.querySelector("meta[name=version]").content;
/** The version of the dashboard for which this tab has loaded its page again. */
const KEY = "loaded-for-version";

/** Whether the dashboard is of another version than this page, which is loaded again then, once. */
export function isOtherVersion(version) {
  if (version === OWN) return false;
  if (sessionStorage.getItem(KEY) === version) {
    isBroken(`This page is of version ${OWN}, and cannot show all that the dashboard, of version ${version}, tells`);
    return false;
  }
  sessionStorage.setItem(KEY, version);
  location.reload();
  return true;
}
