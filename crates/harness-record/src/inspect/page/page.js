"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  const query = one("q"), hits = one("hits"), keys = one("keys");
  const blocks = all("[data-block]").filter(block => !block.querySelector("[data-block]"));
  const groups = all("details.run, [data-pair]"), rows = all("[data-row]");
  one("tools").hidden = false;

  const boxes = within => all("details", within).filter(box => box !== keys);
  const setAll = open => boxes(document).forEach(box => { box.open = open; });
  const isShown = element => !element.closest("[hidden]");

  function mark(word) {
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    if (!word) return;
    const ranges = [];
    const walker = document.createTreeWalker(one("top"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(at + word.length, node.data.length));
        ranges.push(range);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  function search() {
    const word = query.value.trim().toLowerCase();
    const has = element => element.textContent.toLowerCase().includes(word);
    for (const block of blocks) {
      block.hidden = word !== "" && !has(block);
      if (word && !block.hidden) boxes(block).filter(has).forEach(box => { box.open = true; });
    }
    for (const group of groups) {
      const inner = all("[data-block]", group);
      group.hidden = word !== "" && inner.length > 0 && inner.every(block => block.hidden);
      if (word && !group.hidden && group.tagName === "DETAILS") group.open = true;
    }
    for (const row of rows) {
      const link = row.matches("a") ? row : row.querySelector("a[href^='#']");
      const target = link && one(link.hash.slice(1));
      row.hidden = word !== "" && !has(row) && !(target && isShown(target) && has(target));
    }
    const found = blocks.filter(block => !block.hidden).length;
    hits.textContent = word ? `${found} of ${blocks.length} steps` : "";
    mark(word);
  }

  // Shows the target of the address. A link opens it; a visit with a key leaves it as it is.
  function show(opens = true) {
    const target = location.hash.length > 1 && one(decodeURIComponent(location.hash.slice(1)));
    all(".target").forEach(element => element.classList.remove("target"));
    if (!target) return;
    for (let box = opens ? target : target.parentElement; box; box = box.parentElement) {
      if (box.tagName === "DETAILS") box.open = true;
      if (box.hidden && box.matches("[data-block], [data-pair], details.run")) box.hidden = false;
    }
    target.classList.add("target");
    target.scrollIntoView({ block: "start" });
  }

  // The steps that j and k visit: open ones, and runs that are closed.
  function stops() {
    const isStop = block => block.id && isShown(block) && block.getClientRects().length > 0;
    return all("[data-block]").filter(isStop);
  }

  function current() {
    const here = location.hash.length > 1 && one(decodeURIComponent(location.hash.slice(1)));
    return here ? here.closest("[data-block]") : null;
  }

  function move(by) {
    const seen = stops(), at = seen.indexOf(current());
    const next = seen[at < 0 ? (by > 0 ? 0 : seen.length - 1) : at + by];
    if (next) go(next);
  }

  function go(block) {
    history.replaceState(null, "", "#" + block.id);
    show(false);
    block.focus({ preventScroll: true });
  }

  function toggle() {
    const block = current();
    if (!block) return;
    if (block.tagName === "DETAILS") { block.open = !block.open; return; }
    const inside = boxes(block).filter(box => !box.parentElement.closest("details.request"));
    const open = inside.some(box => !box.open);
    inside.forEach(box => { box.open = open; });
  }

  // What scrolls can be reached with the keyboard.
  function reach(within) {
    for (const box of all("pre, .scroll", within)) {
      if (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  }

  function theme() {
    const root = document.documentElement, now = getComputedStyle(root).colorScheme;
    const dark = now === "dark" || (now !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.style.colorScheme = dark ? "light" : "dark";
  }

  function clear() {
    keys.open = false;
    query.value = "";
    search();
    query.blur();
  }

  const actions = {
    "j": () => move(1),
    "k": () => move(-1),
    "e": () => setAll(true),
    "c": () => setAll(false),
    "g": () => scrollTo({ top: 0 }),
    "t": theme,
    "?": () => { keys.open = !keys.open; },
    "Enter": toggle,
    "/": () => { query.focus(); query.select(); },
  };

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { clear(); return; }
    if (event.target === query) {
      if (event.key === "Enter") { query.blur(); move(1); }
      return;
    }
    // Enter on a link, a button or a summary does what it does there.
    const own = event.key === "Enter" && event.target.closest && event.target.closest("a, button, summary");
    if (!actions[event.key] || own) return;
    event.preventDefault();
    actions[event.key]();
  });
  query.addEventListener("input", search);
  one("expand").addEventListener("click", () => setAll(true));
  one("collapse").addEventListener("click", () => setAll(false));
  one("theme").addEventListener("click", theme);
  document.addEventListener("toggle", event => reach(event.target), true);
  addEventListener("resize", () => reach(document));
  addEventListener("hashchange", () => show());
  reach(document);
  show();
})();
