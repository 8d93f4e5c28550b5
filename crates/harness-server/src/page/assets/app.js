// The page: the list of threads, the open thread, and the composer.

import { ApiError, call, hasToken, setToken } from "./api.js";
import { Approvals } from "./approvals.js";
import { el } from "./dom.js";
import { OpenThread } from "./thread.js";
import { Transcript } from "./transcript.js";

const $ = (id) => document.getElementById(id);
const STATES = {
  idle: "", generating: "Working…", awaiting_approval: "Waiting for approval", aborting: "Aborting…",
  compacting: "Compacting…", queued: "Messages are queued",
};
const transcript = new Transcript($("log"), $("scroll"));
const approvals = new Approvals($("approvals"), report);
let thread = null;

const OFFLINE = "The server cannot be reached. Retrying…";

function report(error) {
  if (error?.name === "AbortError") return;
  if (error instanceof ApiError && error.status === 401) return signIn();
  // A server that is being stopped is soon away, or back.
  const isOffline = !(error instanceof ApiError) || error.kind === "server.stopping";
  $("problem").textContent = isOffline ? OFFLINE : error.message;
  $("problem").hidden = false;
}

function isOnline() {
  if ($("problem").textContent === OFFLINE) $("problem").hidden = true;
}

function signIn() {
  if ($("login").open) return;
  $("login-problem").textContent = hasToken() ? "The token is invalid." : "";
  setToken(null);
  $("login").showModal();
}

function showState(state) {
  const busy = state !== "idle";
  $("state").textContent = STATES[state] ?? state;
  $("state").className = state;
  $("abort").hidden = $("follow").hidden = !busy;
  $("send").textContent = busy ? "Steer" : "Send";
  $("keys").textContent = busy ? "Enter steers · Alt+Enter follows up · Esc aborts" : "Enter sends · Shift+Enter new line";
  loadThreads();
}

async function loadThreads() {
  try {
    const { threads } = await call("GET", "/v1/threads?limit=1000");
    isOnline();
    threads.sort((a, b) => (b.updatedAt ?? "~").localeCompare(a.updatedAt ?? "~") || b.id.localeCompare(a.id));
    $("threads").replaceChildren(...threads.map(line));
    const open = threads.find((line) => line.id === thread?.id);
    if (open) $("title").textContent = open.title ?? open.id;
    $("sign-out").hidden = !hasToken();
  } catch (error) { report(error); }
}

function line({ id, title, status, problem }) {
  const state = STATES[status.state] || "idle";
  return el("li", {}, el("a", { href: `#${encodeURIComponent(id)}`, "aria-current": id === thread?.id ? "true" : null, title: problem ?? id },
    el("span", { class: `dot ${status.state}`, role: "img", "aria-label": state }), el("span", { class: "name" }, title ?? id)));
}

function route() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (id === thread?.id) return;
  thread?.close();
  thread = null;
  approvals.clear();
  transcript.empty();
  $("queue").hidden = true;
  $("problem").hidden = true;
  $("title").textContent = id || "New thread";
  document.body.classList.remove("open");
  $("menu").setAttribute("aria-expanded", "false");
  showState("idle");
  $("trace").hidden = true;
  if (id) open(id);
  $("text").focus();
}

function open(id) {
  thread = new OpenThread(id, { transcript, approvals, queue: $("queue"), report, onState: showState });
  thread.open();
  $("trace").href = `trace?thread=${encodeURIComponent(id)}`;
  $("trace").hidden = false;
}

async function send(how) {
  const text = $("text").value.trim();
  if (!text) return;
  $("problem").hidden = true;
  $("text").value = "";
  grow();
  try {
    if (!thread) {
      const { id } = await call("POST", "/v1/threads", {});
      open(id);
      history.replaceState(null, "", `#${encodeURIComponent(id)}`);
    }
    await thread.send(how ?? (thread.state === "idle" ? "messages" : "steer"), text);
  } catch (error) {
    $("text").value = text;
    grow();
    report(error);
  }
}

function grow() {
  const area = $("text");
  area.rows = Math.min(12, area.value.split("\n").length);
}

const abort = () => thread?.abort().catch(report);
const startNew = () => { location.hash = ""; };

$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
$("follow").addEventListener("click", () => send("follow-up"));
$("abort").addEventListener("click", abort);
$("new").addEventListener("click", startNew);
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send(event.altKey && thread && thread.state !== "idle" ? "follow-up" : undefined);
  } else if (event.key === "Escape" && thread && thread.state !== "idle") abort();
});
document.addEventListener("keydown", (event) => {
  if (event.altKey && event.code === "KeyN") { event.preventDefault(); startNew(); }
});
$("menu").addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("open");
  $("menu").setAttribute("aria-expanded", String(isOpen));
});
$("scroll").addEventListener("click", () => document.body.classList.remove("open"));
$("login-form").addEventListener("submit", () => {
  setToken($("token").value.trim());
  $("token").value = "";
  location.reload();
});
$("sign-out").addEventListener("click", () => { setToken(null); location.reload(); });
window.addEventListener("hashchange", route);
setInterval(() => { if (!document.hidden && !$("login").open) loadThreads(); }, 5000);
transcript.empty();
showState("idle");
route();
