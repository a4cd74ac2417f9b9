// Commands to copy.

import { delegate, h, slug } from "./dom.js";
import { visible } from "./text.js";

/** A command with a button that copies it, and what it does. */
export function command(line) {
  const at = line.lastIndexOf("   # ");
  const [typed, told] = at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 5)];
  const id = `command-${slug(typed)}`;
  return h("li", { class: "command", "data-key": line },
    h("code", { id }, visible(typed)),
    h("button", { type: "button", class: "small", "data-copy": typed, "aria-describedby": id }, "Copy"),
    told ? h("span", { class: "dim" }, visible(told)) : null);
}

delegate(document, "click", "[data-copy]", async (button) => {
  const done = await copied(button.dataset.copy);
  button.textContent = done ? "Copied" : "Select it";
  document.getElementById("told").textContent = done ? "Copied" : "This browser does not let the page copy";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
