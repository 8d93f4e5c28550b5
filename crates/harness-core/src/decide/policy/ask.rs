//! Policies as gates.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::decision::{PolicyDecision, PolicyVerdict, ResultMode};
use super::facts::{Envelope, Proposed};
use super::port::{HandoffPolicy, ToolPolicy};
use super::proposal::{HandoffProposal, ToolProposal};
use crate::decide::{DecideCx, Gate, GateDecision, GateVerdict};
use crate::json::Json;
use crate::outcome::Fault;
use crate::panics::panic_text;
use crate::port::ProposedCall;
use crate::tool::ToolKind;

/// A policy as a gate of tool calls; handoffs pass.
pub(in crate::decide) struct OfTools<P>(pub(in crate::decide) P);

impl<P: ToolPolicy> Gate for OfTools<P> {
    async fn decide(&self, call: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        let ToolKind::Function = &call.def.kind else { return Ok(GateVerdict::Allow.into()) };
        let proposal = ToolProposal::of(call);
        let decision = settled(async { self.0.decide(&proposal, cx).await }).await;
        Ok(said(Proposed::Tool(&proposal), &decision, cx))
    }
}

/// A policy as a gate of handoffs; tool calls pass.
pub(in crate::decide) struct OfHandoffs<P>(pub(in crate::decide) P);

impl<P: HandoffPolicy> Gate for OfHandoffs<P> {
    async fn decide(&self, call: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        let ToolKind::Handoff(to) = &call.def.kind else { return Ok(GateVerdict::Allow.into()) };
        let proposal = HandoffProposal::of(call, to);
        let decision = settled(async { self.0.decide(&proposal, cx).await }).await;
        Ok(said(Proposed::Handoff(&proposal), &decision, cx))
    }
}

/// The decision, whatever the policy does: one that fails or panics denies, and the facts say so.
async fn settled(asked: impl Future<Output = Result<PolicyDecision, Fault>>) -> PolicyDecision {
    match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(Ok(decision)) => decision.checked(),
        Ok(Err(fault)) => PolicyDecision::failed(&fault.code, &fault.message),
        Err(panic) => PolicyDecision::failed("panic", &panic_text(&*panic)),
    }
}

fn said(proposed: Proposed<'_>, decision: &PolicyDecision, cx: &DecideCx) -> GateDecision {
    let facts = Json::of(&proposed.facts(decision, cx)).ok();
    let mode = decision.result_mode.unwrap_or_default();
    let verdict = match (decision.decision, mode) {
        (PolicyVerdict::Allow, _) => GateVerdict::Allow,
        (PolicyVerdict::RequireApproval, ResultMode::Throw) => {
            GateVerdict::Hold { reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny, ResultMode::Throw) => {
            GateVerdict::Halt { message: Envelope::of(decision).text(), reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny | PolicyVerdict::RequireApproval, ResultMode::ToolResult) => {
            GateVerdict::Deny { message: Envelope::of(decision).text() }
        }
    };
    GateDecision { verdict, facts }
}
