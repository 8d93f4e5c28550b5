// The transcript: messages, calls with their results, and the answer in progress.

import { el, json, plain } from "./dom.js";
import { markdown } from "./markdown.js";

const textOf = (content) =>
  (content ?? []).map((block) => block.text ?? (block.type === "text" ? "" : `[${block.name ?? block.type}]`)).join("");

export class Transcript {
  constructor(log, scroll) {
    this.log = log;
    this.scroll = scroll;
    // Whether the reader is at the end, and stays there when the transcript grows or its place shrinks.
    this.isAtEnd = true;
    scroll.addEventListener("scroll", () => {
      this.isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
    });
    new ResizeObserver(() => { if (this.isAtEnd) this.toEnd(); }).observe(scroll);
    this.clear();
  }

  clear() {
    this.log.replaceChildren();
    this.seen = new Set();
    this.calls = new Map();
    this.live = null;
  }

  empty() {
    this.clear();
    this.log.append(el("div", { class: "empty" }, el("h2", {}, "What can the agents do for you?"),
      el("p", {}, "Write a message to start a thread.")));
  }

  change(work) {
    if (this.log.firstChild?.className === "empty") this.log.replaceChildren();
    work();
    if (this.isAtEnd) this.toEnd();
  }

  toEnd() { this.scroll.scrollTop = this.scroll.scrollHeight; }

  message(index, message) {
    if (this.seen.has(index)) return;
    this.seen.add(index);
    this.change(() => {
      if (message.role === "user") {
        this.log.append(el("div", { class: "message user" }, textOf(message.content)));
      } else if (message.role === "assistant") {
        this.endLive();
        this.assistant(message);
      } else if (message.role === "toolResult") {
        this.result(message);
      }
    });
  }

  assistant(message) {
    for (const block of message.content ?? []) {
      if (block.type === "thinking" && block.thinking) this.log.append(this.thought(block.thinking));
      if (block.type === "toolCall") this.log.append(this.call(block.id, block.name, block.arguments));
      const text = block.type === "refusal" ? block.text : block.type === "text" ? block.text : "";
      if (text?.trim()) {
        const agent = message.agent ? el("div", { class: "agent" }, message.agent) : null;
        this.log.append(el("div", { class: "message assistant" }, agent, ...markdown(text)));
      }
    }
    if (message.stopReason === "aborted") this.note("Aborted");
    else if (message.errorMessage) this.note(message.errorMessage, true);
  }

  thought(text) {
    return el("details", { class: "thought" }, el("summary", {}, "Reasoning"), el("div", {}, text));
  }

  call(id, name, args) {
    const state = el("span", { class: "result" }, "…");
    const body = el("div", { class: "body" }, el("p", { class: "label" }, "Arguments"), el("pre", {}, json(args)));
    const brief = plain(JSON.stringify(args) ?? "");
    const node = el("details", { class: "call" }, el("summary", {}, el("span", { class: "tool" }, name),
      el("span", { class: "brief" }, brief === "{}" ? "" : brief), state), body);
    this.calls.set(id, { state, body });
    return node;
  }

  result(message) {
    const call = this.calls.get(message.toolCallId);
    if (!call) return;
    const isDenied = message.outcome?.errorCode === "tool_blocked";
    call.state.textContent = isDenied ? "denied" : message.isError ? "failed" : "done";
    call.state.className = `result ${message.isError ? "bad" : "ok"}`;
    call.body.append(el("p", { class: "label" }, message.isError ? "Error" : "Result"), el("pre", {}, plain(textOf(message.content))));
  }

  // How something ended; a more exact note replaces the one before it.
  note(text, isBad) {
    this.change(() => {
      if (this.log.lastChild?.classList.contains("note")) this.log.lastChild.remove();
      this.log.append(el("p", { class: isBad ? "note bad" : "note" }, text));
    });
  }

  // The answer in progress.
  delta(kind, text) {
    this.change(() => {
      if (!this.live) {
        this.live = { text: "", thinking: "", node: el("div", { class: "message assistant cursor" }) };
        this.log.append(this.live.node);
      }
      this.live[kind] += text;
      const thought = this.live.thinking ? [this.thought(this.live.thinking)] : [];
      this.live.node.replaceChildren(...thought, ...markdown(this.live.text));
    });
  }

  endLive() {
    this.live?.node.remove();
    this.live = null;
  }
}
