"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = id => document.getElementById(id);
  const word = () => one("q") ? one("q").value.trim().toLowerCase() : "";
  const boxes = within => all("details", within).filter(box => box.id !== "keys");
  const setAll = open => boxes(document).forEach(box => { box.open = open; });
  const isShown = element => !element.closest("[hidden]");

  // Shows what the script adds. A page that is kept current calls it after each change.
  function refresh() {
    if (one("tools")) one("tools").hidden = false;
    reach(document);
    const target = aim();
    if (target) target.classList.add("target");
    if (word()) search();
  }

  const aim = () => location.hash.length > 1 ? one(decodeURIComponent(location.hash.slice(1))) : null;

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
    const wanted = word();
    const has = element => element.textContent.toLowerCase().includes(wanted);
    const blocks = all("[data-block]").filter(block => !block.querySelector("[data-block]"));
    for (const block of blocks) {
      block.hidden = wanted !== "" && !has(block);
      if (wanted && !block.hidden) boxes(block).filter(has).forEach(box => { box.open = true; });
    }
    // A step with a sub-agent is as the steps in it.
    for (const outer of all("li[data-block]").filter(block => block.querySelector("[data-block]"))) {
      outer.hidden = wanted !== "" && !has(outer);
      if (wanted && !outer.hidden) boxes(outer).filter(has).forEach(box => { box.open = true; });
    }
    for (const group of all("details.run, [data-pair]")) {
      const inner = all("[data-block]", group);
      group.hidden = wanted !== "" && inner.length > 0 && inner.every(block => block.hidden);
      if (wanted && !group.hidden && group.tagName === "DETAILS") group.open = true;
    }
    for (const row of all("[data-row]")) {
      const link = row.matches("a") ? row : row.querySelector("a[href^='#']");
      const target = link && one(link.hash.slice(1));
      row.hidden = wanted !== "" && !has(row) && !(target && isShown(target) && has(target));
    }
    const found = blocks.filter(block => !block.hidden).length;
    one("hits").textContent = wanted ? `${found} of ${blocks.length} steps` : "";
    mark(wanted);
  }

  // Shows the target of the address. A link opens it; a visit with a key leaves it as it is.
  function show(opens = true) {
    const target = aim();
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
    const here = aim();
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
    one("keys").open = false;
    one("q").value = "";
    search();
    one("q").blur();
  }

  const actions = {
    "j": () => move(1),
    "k": () => move(-1),
    "e": () => setAll(true),
    "c": () => setAll(false),
    "g": () => scrollTo({ top: 0 }),
    "t": theme,
    "?": () => { one("keys").open = !one("keys").open; },
    "Enter": toggle,
    "/": () => { one("q").focus(); one("q").select(); },
  };
  const clicks = { expand: () => setAll(true), collapse: () => setAll(false), theme };

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !one("tools")) return;
    if (event.key === "Escape") { clear(); return; }
    if (event.target.id === "q") {
      if (event.key === "Enter") { event.target.blur(); move(1); }
      return;
    }
    // Enter on a link, a button or a summary does what it does there.
    const own = event.key === "Enter" && event.target.closest && event.target.closest("a, button, summary");
    if (!actions[event.key] || own) return;
    event.preventDefault();
    actions[event.key]();
  });
  document.addEventListener("input", event => { if (event.target.id === "q") search(); });
  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button && clicks[button.id]) clicks[button.id]();
  });
  document.addEventListener("toggle", event => reach(event.target), true);
  addEventListener("resize", () => reach(document));
  addEventListener("hashchange", () => show());
  document.addEventListener("trace", refresh);
  refresh();
  show();
})();
