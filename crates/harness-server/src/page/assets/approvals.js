// Pending approvals, with the whole call that a decision is about.

import { call } from "./api.js";
import { el, json, words } from "./dom.js";

export class Approvals {
  constructor(section, report) {
    this.section = section;
    this.report = report;
  }

  clear() { this.section.replaceChildren(); }

  async load(thread, isCurrent) {
    const { approvals } = await call("GET", `/v1/threads/${encodeURIComponent(thread)}/approvals`);
    if (!isCurrent()) return;
    const shown = new Map([...this.section.children].map((card) => [card.dataset.id, card]));
    // A card that is still pending keeps its typed reason and the focus.
    this.section.replaceChildren(...approvals.map((approval) => shown.get(approval.id) ?? this.card(approval)));
    if (approvals.some((approval) => !shown.has(approval.id))) {
      this.section.lastElementChild.scrollIntoView({ block: "nearest" });
    }
    return approvals.filter((approval) => approval.state === "held").length;
  }

  card(approval) {
    const reason = el("input", { "aria-label": "Reason for the model", placeholder: "Reason (optional)" });
    const decide = async (decision) => {
      const body = { decision, digest: approval.digest };
      if (decision === "denied" && reason.value.trim()) body.reason = reason.value.trim();
      for (const button of card.querySelectorAll("button")) button.disabled = true;
      const path = `/v1/threads/${encodeURIComponent(approval.thread)}/approvals/${encodeURIComponent(approval.id)}`;
      try {
        await call("POST", path, body);
        card.remove();
      } catch (error) {
        for (const button of card.querySelectorAll("button")) button.disabled = false;
        this.report(error);
      }
    };
    const who = words([`Agent ${approval.agent}`, approval.reason].filter(Boolean).join(" · "));
    const card = el("article", { class: "approval", "data-id": approval.id },
      el("h2", {}, "Approve ", el("code", {}, approval.tool), "?"),
      el("p", { class: "who" }, ...who),
      el("pre", { "aria-label": "Arguments", tabindex: "0" }, json(approval.arguments)),
      el("div", { class: "row" },
        el("button", { type: "button", class: "primary", onclick: () => decide("granted") }, "Approve"),
        reason,
        el("button", { type: "button", class: "danger", onclick: () => decide("denied") }, "Deny")));
    return card;
  }
}
