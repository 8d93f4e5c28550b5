//! What a policy answers.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::time::{Time, iso};

/// Whether it may happen.
///
/// ```
/// use harness_core::decide::policy::{PolicyDecision, PolicyVerdict};
///
/// assert_eq!(PolicyDecision::deny("closed").decision, PolicyVerdict::Deny);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// It may.
    Allow,
    /// It may not.
    Deny,
    /// It may once somebody has approved exactly this.
    RequireApproval,
}

/// What becomes of a call that is not allowed.
///
/// ```
/// use harness_core::decide::policy::{PolicyDecision, ResultMode};
///
/// let read_by_model = PolicyDecision::deny("closed").answering_model();
/// assert_eq!(read_by_model.result_mode, Some(ResultMode::ToolResult));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultMode {
    /// A denial ends the run; a required approval holds the call. The default.
    #[default]
    Throw,
    /// The model reads why, as far as the public reason says, and goes on.
    ToolResult,
}

/// A decision of a policy.
///
/// ```
/// use harness_core::decide::policy::PolicyDecision;
///
/// let mut decision = PolicyDecision::require_approval("above 50 euros")
///     .with_public_reason("Somebody has to look at this payment.")
///     .with_policy_version("payments-7");
/// decision.expires_at = Some(harness_core::Time(1_767_225_600_000));
/// # assert!(decision.result_mode.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyDecision {
    /// Whether it may happen.
    pub decision: PolicyVerdict,
    /// Why, for records and for those who approve; never empty.
    pub reason: String,
    /// What a model or a user may be told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// What becomes of it when it is not allowed. Default `throw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<ResultMode>,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Until when the decision, or a request for approval, is worth something.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// The policy's own data.
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

    /// It may happen.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::Allow, reason)
    }

    /// It may not happen, and the run ends.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::Deny, reason)
    }

    /// It may happen once somebody approved it; until then the call is held.
    pub fn require_approval(reason: impl Into<String>) -> Self {
        Self::of(PolicyVerdict::RequireApproval, reason)
    }

    /// The same decision; when it is not allowed, the model reads so and goes on.
    #[must_use]
    pub fn answering_model(mut self) -> Self {
        self.result_mode = Some(ResultMode::ToolResult);
        self
    }

    /// The same decision with what a model or a user may be told of it.
    #[must_use]
    pub fn with_public_reason(mut self, reason: impl Into<String>) -> Self {
        self.public_reason = Some(reason.into());
        self
    }

    /// The same decision of a version of the policy.
    #[must_use]
    pub fn with_policy_version(mut self, version: impl Into<String>) -> Self {
        self.policy_version = Some(version.into());
        self
    }

    /// The same decision, or a denial when it gives no reason.
    pub(super) fn checked(self) -> Self {
        if self.reason.trim().is_empty() { Self::invalid() } else { self }
    }

    fn invalid() -> Self {
        Self::deny("invalid_policy_result")
    }

    /// The denial of a policy that failed.
    pub(super) fn failed(name: &str, message: &str) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Failure<'a> {
            error_name: &'a str,
            error_message: &'a str,
        }
        let metadata = Json::of(&Failure { error_name: name, error_message: message }).ok();
        Self { metadata, ..Self::deny("policy_error") }
    }
}
