// Elements without inner HTML: every text is text.

export function el(name, options = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// Characters that are invisible, or that reorder text, are shown as their codes.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;

export const plain = (text) =>
  text.replace(HIDDEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const json = (value) => plain(typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");

// A sentence, with what is between backticks as code.
export const words = (text) =>
  plain(text).split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
