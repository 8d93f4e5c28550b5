//! Decisions about a call: policies, gates, approvals and handoffs.

use harness_core::{Json, Millis};
use maud::{Markup, html};

use super::{badge, details};
use crate::inspect::timeline::{CallDetail, Tone};
use crate::inspect::write::{SafeText, pretty};

/// Badges of the decisions about a call.
pub(super) fn decisions(detail: &CallDetail<'_>) -> Markup {
    let policies = detail.policies.iter().map(|policy| {
        let tone = match policy.decision.as_str() {
            "allow" => Tone::Good,
            "require_approval" => Tone::Warn,
            _ => Tone::Bad,
        };
        (tone, format!("policy: {} · {}", policy.decision, policy.reason))
    });
    let gates = detail.gates.iter().map(|gate| {
        let tone = if gate.verdict == "deny" { Tone::Bad } else { Tone::Warn };
        let why = gate.reason.as_deref().map(|reason| format!(" · {reason}")).unwrap_or_default();
        (tone, format!("{}: {}{why}", gate.gate, gate.verdict))
    });
    let approvals = detail.approvals.iter().map(|approval| {
        let tone = match approval.decision.as_str() {
            "granted" | "edited" => Tone::Good,
            "later" => Tone::Warn,
            _ => Tone::Bad,
        };
        (tone, format!("approval: {}", approval.decision))
    });
    html! {
        @for (tone, text) in policies.chain(gates).chain(approvals) { (badge(tone, &text)) }
        @if let Some(handoff) = detail.handoff {
            span.badge.blue { "handoff: " (SafeText(handoff.from.as_str())) " → " (SafeText(handoff.to.as_str())) }
        }
    }
}

/// Facts of the decisions about a call.
pub(super) fn facts(detail: &CallDetail<'_>) -> Markup {
    let shown = |facts: &Option<Json>| facts.as_ref().map(pretty);
    let policies = detail.policies.iter().filter_map(|policy| {
        let version = policy.policy_version.as_deref().map(|version| format!(" · version {version}"));
        let title = format!("Facts of the policy{}", version.unwrap_or_default());
        Some((title, shown(&policy.metadata)?))
    });
    let gates = detail.all_gates.iter().filter_map(|gate| {
        let spent =
            if gate.duration_ms > 0 { format!(" · {}", Millis(gate.duration_ms)) } else { String::new() };
        Some((format!("Facts of {}: {}{spent}", gate.gate, gate.verdict), shown(&gate.facts)?))
    });
    html! { @for (title, facts) in policies.chain(gates) { (details(false, &title, &facts)) } }
}
