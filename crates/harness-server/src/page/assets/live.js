// The trace of a thread, kept current by its events.

import { ApiError, fetchText, follow } from "./api.js";

const $ = (id) => document.getElementById(id);
const id = new URLSearchParams(location.search).get("thread") ?? "";
const path = (rest) => `/v1/threads/${encodeURIComponent(id)}/${rest}`;
// What the reader of the page changes.
const OWN = new Set(["open", "hidden", "tabindex"]);
const PAUSE = 1000;
const CHANGES = new Set(["event", "run_started", "run_ended", "run_failed", "approvals", "lagged", "reset"]);
let changed = true;
let wake = () => {};
let isFirst = true;
let hasRun = false;

// Makes an element equal to a new one. Equal parts stay, with what is open in them.
function update(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  for (const { name, value } of fresh.attributes) if (!OWN.has(name)) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((node, at) => { if (before[at]) update(before[at], node); else old.append(node); });
  before.slice(after.length).forEach((node) => node.remove());
}

async function show() {
  const text = await fetchText(path("trace"));
  // The style and the script of the page are files here.
  const main = text.slice(text.indexOf("<main"), text.lastIndexOf("</main>"));
  update($("top"), new DOMParser().parseFromString(main, "text/html").querySelector("main"));
  const last = [...document.querySelectorAll("main > details.run")].pop();
  if (!hasRun && last && !location.hash) last.open = true;
  hasRun ||= Boolean(last);
  document.dispatchEvent(new Event("trace"));
  if (isFirst && location.hash) dispatchEvent(new HashChangeEvent("hashchange"));
  isFirst = false;
}

function report(error) {
  const signIn = error instanceof ApiError && error.status === 401;
  $("state").textContent = signIn ? "Open the chat to sign in, then return." : error.message;
}

const isRunning = () => [...document.querySelectorAll("details.run > summary .badge")].some((end) => end.textContent === "running");

// Shows the trace after changes, with a pause in between; during a run also without a change, for its duration.
async function keepCurrent() {
  for (;;) {
    if (isRunning()) setTimeout(change, 2 * PAUSE);
    if (!changed) await new Promise((resume) => { wake = resume; });
    changed = false;
    try {
      await show();
      $("state").textContent = "Live";
    } catch (error) { report(error); }
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
}

function change() {
  changed = true;
  wake();
}

async function watch() {
  for (;;) {
    try {
      await follow(path("events"), undefined, (name) => { if (CHANGES.has(name)) change(); });
    } catch (error) {
      report(error);
      if (error instanceof ApiError) return;
    }
    await new Promise((resume) => setTimeout(resume, 2 * PAUSE));
    change();
  }
}

document.title = `Trace of ${id}`;
$("thread").href = `.#${encodeURIComponent(id)}`;
$("thread").textContent = `← Chat ${id}`;
watch();
keepCurrent();
