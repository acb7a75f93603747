// Descriptions of elements, and a function that makes the document as they say. Whatever comes
// from the API becomes text nodes and attributes, never markup. Elements that stay keep their
// focus, their selection and whether they are open.

const svgSpace = "http://www.w3.org/2000/svg";

// h describes an element. Attributes that are null, undefined or false are left out; one of
// them, key, names the element among its siblings. first holds attributes that are set once,
// when the element is made, and then belong to the user.
export function h(tag, attrs, ...children) {
  const { key, first, ...rest } = attrs || {};
  return { tag, key, first, attrs: rest, children: flat(children) };
}

// svg is h for elements of SVG.
export function svg(tag, attrs, ...children) {
  return { ...h(tag, attrs, ...children), space: svgSpace };
}

function flat(children) {
  return children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== "")
    .map((c) => (typeof c === "object" ? c : String(c)));
}

const known = new WeakMap(); // of each element: its key and the attributes that were set

// render makes the children of an element what is described.
export function render(parent, ...children) {
  const wanted = flat(children);
  const keyed = new Map();
  for (const node of parent.childNodes) {
    const key = known.get(node)?.key;
    if (key !== undefined) keyed.set(key, node);
  }
  let at = parent.firstChild;
  for (const w of wanted) {
    const node = reuse(w, at, keyed) || create(w);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    if (typeof w === "string") {
      if (node.data !== w) node.data = w;
    } else {
      attributes(node, w);
      render(node, w.children);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function reuse(w, at, keyed) {
  if (typeof w === "string") return at?.nodeType === Node.TEXT_NODE ? at : null;
  const node = w.key !== undefined ? keyed.get(w.key) : at;
  if (node?.nodeType !== Node.ELEMENT_NODE || node.localName !== w.tag) return null;
  return known.get(node)?.key === w.key ? node : null;
}

function create(w) {
  if (typeof w === "string") return document.createTextNode(w);
  const node = w.space ? document.createElementNS(w.space, w.tag) : document.createElement(w.tag);
  known.set(node, { key: w.key, attrs: {} });
  set(node, {}, w.first || {});
  return node;
}

function attributes(node, w) {
  const entry = known.get(node) || { key: w.key, attrs: {} };
  set(node, entry.attrs, w.attrs);
  known.set(node, { key: w.key, attrs: w.attrs });
}

function set(node, before, after) {
  for (const name of Object.keys(before)) {
    if (!(name in after)) change(node, name, null);
  }
  for (const [name, value] of Object.entries(after)) {
    if (before[name] !== value) change(node, name, value);
  }
}

function change(node, name, value) {
  if (name.startsWith("on")) node[name] = value || null;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}
