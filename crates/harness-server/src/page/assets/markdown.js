// A small part of Markdown, as elements: paragraphs, headings, lists, code, emphasis and links.

import { el } from "./dom.js";

const INLINE = /(`[^`]+`)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g;

function inline(text) {
  const nodes = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(text.slice(last, match.index));
    const [whole, code, strong, emphasis, label, url] = match;
    if (code) nodes.push(el("code", {}, code.slice(1, -1)));
    else if (strong) nodes.push(el("strong", {}, strong));
    else if (emphasis) nodes.push(el("em", {}, emphasis));
    else nodes.push(el("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, label));
    last = match.index + whole.length;
  }
  nodes.push(text.slice(last));
  return nodes;
}

const lines = (text) =>
  text.split("\n").flatMap((line, index) => (index ? [el("br"), ...inline(line)] : inline(line)));

function block(text) {
  const heading = /^#{1,6} (.*)$/.exec(text);
  if (heading) return el("h3", {}, ...inline(heading[1]));
  const items = text.split("\n");
  if (items.every((item) => /^\s*[-*] /.test(item))) {
    return el("ul", {}, ...items.map((item) => el("li", {}, ...inline(item.replace(/^\s*[-*] /, "")))));
  }
  if (items.every((item) => /^\s*\d+[.)] /.test(item))) {
    return el("ol", {}, ...items.map((item) => el("li", {}, ...inline(item.replace(/^\s*\d+[.)] /, "")))));
  }
  return el("p", {}, ...lines(text));
}

export function markdown(text) {
  const nodes = [];
  for (const [index, part] of text.split(/^```/m).entries()) {
    if (index % 2) {
      nodes.push(el("pre", {}, el("code", {}, part.replace(/^[^\n]*\n/, "").replace(/\n$/, ""))));
    } else {
      nodes.push(...part.split(/\n{2,}/).map((piece) => piece.trim()).filter(Boolean).map(block));
    }
  }
  return nodes;
}
