// The tab's title and icon, which tell the state of a tab in the background.

const icon = document.getElementById("icon");
const ICONS = new Map([["good", "good"], ["runs", "runs"], ["holds", "runs"], ["waits", "waits"], ["bad", "bad"]]);
let text = "";
let tone = "";
let old = false;

/** `tone` as in words.js, "" for none. */
export function setTitle(newText, newTone) {
  text = newText;
  tone = newTone;
  put();
}

/** Whether what the title tells is old. */
export function titleOld(isOld) {
  old = isOld;
  put();
}

function put() {
  const title = old ? `(old) ${text}` : text;
  if (document.title !== title) document.title = title;
  const kind = old ? "old" : ICONS.get(tone);
  const href = kind ? `/-/files/icon-${kind}.svg` : "/-/files/icon.svg";
  if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}
