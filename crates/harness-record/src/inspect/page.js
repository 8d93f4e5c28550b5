"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  const tools = one("tools"), query = one("q"), hits = one("hits");
  const blocks = all("[data-block]"), rows = all("[data-row]");
  tools.hidden = false;

  const setAll = open => all("main details:not(.keys)").forEach(box => { box.open = open; });

  function mark(word) {
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    if (!word) return;
    const ranges = [];
    const walker = document.createTreeWalker(document.querySelector(".story"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
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
      if (word && !block.hidden) all("details", block).filter(has).forEach(box => { box.open = true; });
    }
    for (const row of rows) {
      const target = document.querySelector(row.hash);
      const block = target && target.closest("[data-block]");
      row.hidden = word !== "" && !has(row) && !(target && block && !block.hidden && has(target));
    }
    const found = blocks.filter(block => !block.hidden).length;
    hits.textContent = word ? `${found} of ${blocks.length} steps` : "";
    mark(word);
  }

  function show() {
    const target = location.hash.length > 1 && one(decodeURIComponent(location.hash.slice(1)));
    all(".target").forEach(element => element.classList.remove("target"));
    if (!target) return;
    target.classList.add("target");
    target.scrollIntoView({ block: "start" });
  }

  function move(by) {
    const seen = blocks.filter(block => !block.hidden && block.id);
    const here = seen.findIndex(block => "#" + block.id === location.hash);
    const next = seen[here < 0 ? (by > 0 ? 0 : seen.length - 1) : here + by];
    if (next) { location.hash = next.id; next.focus({ preventScroll: true }); }
  }

  function theme() {
    const root = document.documentElement, now = getComputedStyle(root).colorScheme;
    const dark = now === "dark" || (now !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.style.colorScheme = dark ? "light" : "dark";
  }

  const actions = { j: () => move(1), k: () => move(-1), e: () => setAll(true), c: () => setAll(false), t: theme };

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { query.value = ""; search(); query.blur(); return; }
    if (event.target === query) return;
    if (event.key === "/") { event.preventDefault(); query.focus(); query.select(); return; }
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  });
  query.addEventListener("input", search);
  one("expand").addEventListener("click", () => setAll(true));
  one("collapse").addEventListener("click", () => setAll(false));
  one("theme").addEventListener("click", theme);
  addEventListener("hashchange", show);
  show();
})();
