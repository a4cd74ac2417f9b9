// Elements from values. Names and messages become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: attributes, listeners as on…, and children (elements, texts, null for nothing). */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== ""));
  return element;
}

/** Puts children in place of those of the element, and leaves equal ones, with their focus, where they are. */
export function show(element, ...children) {
  const wanted = children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== "");
  merge(element, wanted.map((each) => (typeof each === "string" ? document.createTextNode(each) : each)));
}

function merge(parent, wanted) {
  const old = [...parent.childNodes];
  wanted.forEach((node, at) => {
    const before = old[at];
    if (before === undefined) parent.append(node);
    else if (!alike(before, node)) before.replaceWith(node);
    else update(before, node);
  });
  old.slice(wanted.length).forEach((node) => node.remove());
}

function alike(a, b) {
  return (
    a.nodeType === b.nodeType &&
    a.nodeName === b.nodeName &&
    a.nodeType !== Node.COMMENT_NODE &&
    (a.dataset?.key ?? "") === (b.dataset?.key ?? "") &&
    // What has listeners of its own is made anew when what it does changes.
    (a.dataset?.does ?? "") === (b.dataset?.does ?? "")
  );
}

function update(old, node) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  merge(old, [...node.childNodes]);
}
