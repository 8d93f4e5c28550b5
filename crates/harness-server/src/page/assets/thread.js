// One open thread: its transcript, status, queue and approvals, kept current by its events.

import { call, follow } from "./api.js";
import { el } from "./dom.js";

const path = (id, rest = "") => `/v1/threads/${encodeURIComponent(id)}${rest}`;

export class OpenThread {
  constructor(id, parts) {
    Object.assign(this, parts);
    this.id = id;
    this.stop = new AbortController();
    this.state = "idle";
  }

  isCurrent = () => !this.stop.signal.aborted;

  close() { this.stop.abort(); }

  async open() {
    while (this.isCurrent()) {
      try {
        const next = await this.load();
        const receive = (name, data) => this.receive(name, data);
        await follow(path(this.id, `/events?from=${next}`), this.stop.signal, receive, () => this.loadApprovals());
      } catch (error) {
        if (!this.isCurrent()) return;
        this.report(error);
        if (error.status) return;
      }
      if (this.isCurrent()) await new Promise((resume) => setTimeout(resume, 2000));
    }
  }

  async load() {
    const view = await call("GET", path(this.id));
    const page = await call("GET", path(this.id, "/messages?limit=1000"));
    if (!this.isCurrent()) return view.nextSeq;
    this.transcript.clear();
    if (page.from > 0) this.transcript.note(`${page.from} earlier messages are not shown.`);
    page.messages.forEach((message, index) => this.transcript.message(page.from + index, message));
    for (const block of view.answer ?? []) {
      if (block.type === "text") this.transcript.delta("text", block.text);
      if (block.type === "thinking") this.transcript.delta("thinking", block.thinking);
    }
    if (view.error) this.transcript.note(view.error, true);
    this.setState(view.status.state === "queued" ? "idle" : view.status.state);
    await this.loadQueue();
    this.transcript.toEnd();
    return view.nextSeq;
  }

  setState(state) {
    this.state = state;
    this.onState(state);
  }

  receive(name, data) {
    if (name === "delta") this.delta(data.part);
    else if (name === "answer_restarted") this.transcript.endLive();
    else if (name === "event") this.event(data.event);
    else if (name === "status") {
      this.setState(data.status.state);
      // An idle thread may have calls that an earlier run left open.
      if (this.state === "idle") this.loadApprovals();
      this.loadQueue();
    } else if (name === "approvals") this.loadApprovals();
    else if (name === "queue" || name === "run_started") this.loadQueue();
    else if (name === "run_ended") {
      this.transcript.endLive();
      const { outcome, problem, aborted } = data.report;
      if (aborted) this.transcript.note("Aborted");
      else if (problem && outcome !== "awaiting_approval") this.transcript.note(problem, outcome === "failed");
    } else if (name === "run_failed") this.transcript.note(data.error.message, true);
    else if (name === "lagged" || name === "reset") this.load().catch((error) => this.report(error));
  }

  delta(part) {
    if (part.text !== undefined) this.transcript.delta("text", part.text);
    if (part.thinking !== undefined) this.transcript.delta("thinking", part.thinking);
  }

  event(event) {
    if (event.origin?.parent) return;
    if (event.type === "message_appended") {
      this.transcript.message(event.index, event.message);
      if (event.message.role === "user") this.loadQueue();
    } else if (event.type === "model_step_started") this.transcript.endLive();
  }

  async loadApprovals() {
    const load = this.lastApprovals = {};
    // An earlier response may arrive later.
    const isCurrent = () => this.isCurrent() && load === this.lastApprovals;
    let held;
    try { held = await this.approvals.load(this.id, isCurrent); } catch (error) { return this.report(error); }
    // Events report the calls of sub-agents with the approvals only.
    if (this.state === "generating" && held > 0) this.setState("awaiting_approval");
    else if (this.state === "awaiting_approval" && held === 0) this.setState("generating");
  }

  async loadQueue() {
    const load = this.lastLoad = {};
    let entries;
    try { ({ entries } = await call("GET", path(this.id, "/queue"))); } catch (error) { return this.report(error); }
    // An earlier response may arrive later.
    if (!this.isCurrent() || load !== this.lastLoad) return;
    entries = entries.filter((entry) => entry.state === "waiting");
    const line = (entry) => {
      const said = (entry.message.content ?? []).map((block) => block.text ?? `[${block.type}]`).join("");
      const remove = () => call("DELETE", path(this.id, `/queue/${encodeURIComponent(entry.id)}`)).catch(this.report);
      return el("li", {}, el("span", { class: "said" }, said),
        el("span", { class: "when" }, entry.delivery === "between_rounds" ? "next step" : "after the run"),
        el("button", { type: "button", "aria-label": `Remove “${said}”`, onclick: remove }, "Remove"));
    };
    this.queue.hidden = entries.length === 0;
    this.queue.replaceChildren(el("h2", {}, "Queued"), el("ul", {}, ...entries.map(line)));
  }

  send(how, text) { return call("POST", path(this.id, `/${how}`), { text }); }

  abort() { return call("POST", path(this.id, "/abort"), {}); }
}
