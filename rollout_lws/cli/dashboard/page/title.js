// The tab's title and icon, which tell the state of a tab in the background.

const icon = document.getElementById("icon");
const ICONS = { good: "icon-good.svg", runs: "icon-runs.svg", waits: "icon-waits.svg", holds: "icon-runs.svg", bad: "icon-bad.svg" };
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
  const href = `/files/${old ? "icon-old.svg" : ICONS[tone] ?? "icon.svg"}`;
  if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}
