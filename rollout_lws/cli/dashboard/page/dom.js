// Elements from values. Names and messages become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** A text as a part of an id. */
export function slug(text) {
  return String(text).replace(/[^A-Za-z0-9_-]/g, "_");
}

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
  element.append(...there(children));
  return element;
}

function there(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false && each !== "");
}

/**
 * Puts children in place of those of the element. What is alike stays where it is, with its focus and its selection:
 * elements with a data-key are told by it, others by their place. Elements that are shown again and again have no
 * listeners of their own, since the first ones stay: see `delegate`.
 */
export function show(element, ...children) {
  const focused = document.activeElement;
  merge(element, there(children).map((each) => (each instanceof Node ? each : document.createTextNode(String(each)))));
  keepFocus(focused);
}

/** The elements as the children of the parent, in this order; none is moved that is in its place. */
export function arrange(parent, elements) {
  const focused = document.activeElement;
  const wanted = new Set(elements);
  for (const each of [...parent.childNodes]) if (!wanted.has(each)) each.remove();
  let at = parent.firstChild;
  for (const each of elements) {
    if (each === at) at = at.nextSibling;
    else parent.insertBefore(each, at);
  }
  keepFocus(focused);
}

/** Brings an element to what another one of its kind shows. */
export function update(old, node) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  merge(old, [...node.childNodes]);
}

// What a person has opened, and where the arrow keys are.
const KEPT = new Set(["open", "tabindex"]);

function merge(parent, wanted) {
  const keyed = new Map();
  for (const each of parent.children) if (each.dataset.key) keyed.set(each.dataset.key, each);
  const keys = new Set(wanted.map(keyOf));
  for (const [key, each] of keyed) if (!keys.has(key)) each.remove();
  let at = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const found = key ? keyed.get(key) : next(at, node);
    if (!found || found.nodeName !== node.nodeName) {
      parent.insertBefore(node, at);
      if (found) {
        if (found === at) at = at.nextSibling;
        found.remove();
      }
      continue;
    }
    if (!key) while (at !== found) at = dropped(at);
    if (found === at) at = at.nextSibling;
    else parent.insertBefore(found, at);
    update(found, node);
  }
  while (at) at = dropped(at);
}

/** The first one of the siblings from here on that may become the node. */
function next(at, node) {
  for (let each = at; each && !keyOf(each); each = each.nextSibling) if (each.nodeName === node.nodeName) return each;
  return null;
}

function dropped(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

function keyOf(node) {
  return node.dataset?.key ?? "";
}

/** An element that was moved has lost its focus. */
function keepFocus(focused) {
  if (focused && focused !== document.activeElement && focused.isConnected && focused !== document.body) {
    focused.focus({ preventScroll: true });
  }
}

/** Listens on a root for events of elements that match the selector now or later. */
export function delegate(root, type, selector, act) {
  root.addEventListener(type, (event) => {
    const found = event.target.closest?.(selector);
    if (found && root.contains(found)) act(found, event);
  });
}
