//! Decisions of policies, and the gate that applies them.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};

use super::{Policy, facts};
use crate::base::panic_text;
use crate::decide::{DecideCx, Gate, GateDecision, GateVerdict};
use crate::json::Json;
use crate::object::JsonObject;
use crate::outcome::Fault;
use crate::port::ProposedCall;
use crate::time::{Time, iso};

/// Verdict of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// Allowed.
    Allow,
    /// Denied.
    Deny,
    /// Allowed after approval of exactly this call.
    RequireApproval,
}

/// Effect on a call that is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultMode {
    /// A denial ends the run; a required approval holds the call.
    #[default]
    Throw,
    /// The model receives the public reason, and the turn continues.
    ToolResult,
}

/// Decision of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyDecision {
    /// Verdict.
    pub decision: PolicyVerdict,
    /// Reason, for records and approvers; never empty.
    pub reason: String,
    /// Reason that models and users may receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// Effect on a call that is not allowed. Default `throw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<ResultMode>,
    /// Version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Expiry of the decision or of the request for approval.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// Data of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl PolicyDecision {
    fn of(decision: PolicyVerdict, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            public_reason: None,
            result_mode: None,
            policy_version: None,
            expires_at: None,
            metadata: None,
        }
    }

    /// Allows the call.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::Allow, reason)
    }

    /// Denies the call and ends the run.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::Deny, reason)
    }

    /// Holds the call until it is approved.
    pub fn require_approval(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::RequireApproval, reason)
    }

    /// Sends the public reason to the model instead of ending the run or holding the call.
    #[must_use]
    pub fn answering_model(mut self) -> Self {
        self.result_mode = Some(ResultMode::ToolResult);
        self
    }

    /// Sets the reason that models and users may receive.
    #[must_use]
    pub fn with_public_reason(mut self, reason: impl Into<String>) -> Self {
        self.public_reason = Some(reason.into());
        self
    }

    /// Sets the version of the policy.
    #[must_use]
    pub fn with_policy_version(mut self, version: impl Into<String>) -> Self {
        self.policy_version = Some(version.into());
        self
    }

    /// Denies if there is no reason.
    fn checked(self) -> Self {
        if self.reason.trim().is_empty() { Self::deny("invalid_policy_result") } else { self }
    }

    /// Creates the denial of a failed policy.
    fn failed(name: &str, message: &str) -> Self {
        let error = JsonObject::default().with("errorName", Some(name)).with("errorMessage", Some(message));
        Self { metadata: Some(error.json()), ..Self::deny("policy_error") }
    }

    fn verdict(&self) -> GateVerdict {
        match (self.decision, self.result_mode.unwrap_or_default()) {
            (PolicyVerdict::Allow, _) => GateVerdict::Allow,
            (PolicyVerdict::RequireApproval, ResultMode::Throw) => {
                GateVerdict::Hold { reason: self.reason.clone() }
            }
            (PolicyVerdict::Deny, ResultMode::Throw) => {
                GateVerdict::Halt { message: self.envelope(), reason: self.reason.clone() }
            }
            (PolicyVerdict::Deny | PolicyVerdict::RequireApproval, ResultMode::ToolResult) => {
                GateVerdict::Deny { message: self.envelope() }
            }
        }
    }

    /// Returns the message for the model about a call that is not allowed.
    fn envelope(&self) -> String {
        let (status, usual) = match self.decision {
            PolicyVerdict::RequireApproval => ("approval_required", "Action requires approval."),
            PolicyVerdict::Allow | PolicyVerdict::Deny => ("denied", "Action not allowed."),
        };
        let given = self.public_reason.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let envelope = JsonObject::default()
            .with("status", Some(status))
            .with("code", Some(&self.reason))
            .with("publicReason", Some(given.unwrap_or(usual)))
            .with("data", Some(Json::null()));
        envelope.json().to_string()
    }
}

/// Gate of a policy.
pub(in crate::decide) struct PolicyGate<P>(pub(in crate::decide) P);

impl<P: Policy> Gate for PolicyGate<P> {
    async fn decide(&self, proposed: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        let decided = AssertUnwindSafe(async { self.0.decide(proposed, cx).await }).catch_unwind();
        let decision = match decided.await {
            Ok(Ok(decision)) => decision.checked(),
            Ok(Err(fault)) => PolicyDecision::failed(&fault.code, &fault.message),
            Err(panic) => PolicyDecision::failed("panic", &panic_text(&*panic)),
        };
        Ok(GateDecision { verdict: decision.verdict(), facts: Some(facts::of(proposed, &decision, cx)) })
    }
}
