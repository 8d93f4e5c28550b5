//! A policy as a gate.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde::Serialize;

use super::decision::{PolicyDecision, PolicyVerdict, ResultMode};
use super::{Policy, facts};
use crate::decide::{DecideCx, Gate, GateDecision, GateVerdict};
use crate::json::Json;
use crate::outcome::Fault;
use crate::panics::panic_text;
use crate::port::ProposedCall;

/// Asks a policy.
pub(in crate::decide) struct PolicyGate<P>(pub(in crate::decide) P);

impl<P: Policy> Gate for PolicyGate<P> {
    async fn decide(&self, proposed: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        let asked = AssertUnwindSafe(async { self.0.decide(proposed, cx).await }).catch_unwind();
        let decision = match asked.await {
            Ok(Ok(decision)) => decision.checked(),
            Ok(Err(fault)) => PolicyDecision::failed(&fault.code, &fault.message),
            Err(panic) => PolicyDecision::failed("panic", &panic_text(&*panic)),
        };
        Ok(GateDecision { verdict: verdict(&decision), facts: facts::of(proposed, &decision, cx) })
    }
}

fn verdict(decision: &PolicyDecision) -> GateVerdict {
    let mode = decision.result_mode.unwrap_or_default();
    match (decision.decision, mode) {
        (PolicyVerdict::Allow, _) => GateVerdict::Allow,
        (PolicyVerdict::RequireApproval, ResultMode::Throw) => {
            GateVerdict::Hold { reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny, ResultMode::Throw) => {
            GateVerdict::Halt { message: envelope(decision), reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny | PolicyVerdict::RequireApproval, ResultMode::ToolResult) => {
            GateVerdict::Deny { message: envelope(decision) }
        }
    }
}

/// What a model reads of a call that a policy did not allow.
fn envelope(decision: &PolicyDecision) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope<'a> {
        status: &'a str,
        code: &'a str,
        public_reason: &'a str,
        data: Option<&'a Json>,
    }
    let (status, usual) = match decision.decision {
        PolicyVerdict::RequireApproval => ("approval_required", "Action requires approval."),
        PolicyVerdict::Allow | PolicyVerdict::Deny => ("denied", "Action not allowed."),
    };
    let given = decision.public_reason.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let public_reason = given.unwrap_or(usual);
    let envelope = Envelope { status, code: &decision.reason, public_reason, data: None };
    Json::of(&envelope).map_or_else(|_| public_reason.to_owned(), |json| json.text().to_owned())
}
