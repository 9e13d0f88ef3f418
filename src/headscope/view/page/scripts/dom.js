// Elements and numbers of the page. Names come from models and corpora; they enter the page as text, never as HTML.

const SVG = document.querySelector("svg").namespaceURI;

export const find = (id) => document.getElementById(id);

function dress(node, text, attributes) {
  if (text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export const element = (tag, text = null, attributes = {}) => dress(document.createElement(tag), text, attributes);

export const shape = (tag, attributes = {}, text = null) => dress(document.createElementNS(SVG, tag), text, attributes);

// Replace the nodes in a box; if a node had the focus, the node in its place gets it.
export function renew(box, ...nodes) {
  const at = [...box.children].indexOf(document.activeElement);
  box.replaceChildren(...nodes);
  if (at >= 0) (box.children[at] ?? box.lastElementChild)?.focus();
}

export const words = (name) => name.replaceAll("_", " ");

export const signed = (offset) => (offset < 0 ? "\u2212" : "+") + Math.abs(offset);

export const number = (value, digits = 2) =>
  (value ?? null) === null ? "\u2013" : value.toFixed(digits).replace(/^-(0\.0*)$/, "$1");

// Replace the hyphen of a number by a minus sign, which is as wide as a plus.
export const minus = (text) => text.replace("-", "\u2212");

export const percent = (share) => `${(100 * share).toFixed(0)}\u202f%`;

export const shorten = (text, length = 24) =>
  [...text].length > length ? [...text].slice(0, length - 1).join("") + "\u2026" : text;
