//! Gates of tool calls and handoffs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DecideCx;
use super::guarded::{Guard, Guarded, Points};
use super::policy::{Policy, PolicyGate};
use crate::ids::GateName;
use crate::json::Json;
use crate::outcome::Fault;
use crate::port::ProposedCall;
use crate::twin;

/// Verdict of a gate. The strictest of all gates wins: halt or deny, hold, rewrite, allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GateVerdict {
    /// The call may run.
    Allow,
    /// The call may run with these arguments.
    Rewrite(Json),
    /// The approver decides, after the remaining gates.
    Hold {
        /// Reason.
        reason: String,
    },
    /// The call does not run, and the model receives the message.
    Deny {
        /// Message for the model.
        message: String,
    },
    /// The call does not run, and the turn ends `policy_denied`.
    Halt {
        /// Result of the call.
        message: String,
        /// Reason.
        reason: String,
    },
}

impl GateVerdict {
    /// Denies the call and sends `Denied: REASON` to the model.
    pub fn deny(reason: impl fmt::Display) -> Self {
        Self::Deny { message: format!("Denied: {reason}") }
    }

    /// Returns the name in events: `allow`, `rewrite`, `hold`, `deny` or `halt`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Rewrite(_) => "rewrite",
            Self::Hold { .. } => "hold",
            Self::Deny { .. } => "deny",
            Self::Halt { .. } => "halt",
        }
    }

    /// Returns the reason, if any.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Hold { reason } | Self::Halt { reason, .. } => Some(reason),
            Self::Deny { message } => Some(message),
            Self::Allow | Self::Rewrite(_) => None,
        }
    }
}

/// Decision of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateDecision {
    /// Verdict.
    pub verdict: GateVerdict,
    /// Facts for records; of a policy its whole decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
}

impl From<GateVerdict> for GateDecision {
    fn from(verdict: GateVerdict) -> Self {
        Self { verdict, facts: None }
    }
}

/// Decides whether a tool call or a handoff runs. The effect of an error is set by [`Guarded::on_error`].
///
/// ```
/// use harness_core::Fault;
/// use harness_core::decide::{DecideCx, Gate, GateDecision, GateVerdict, gate};
/// use harness_core::port::ProposedCall;
///
/// struct Budget { cents: u64 }
///
/// impl Gate for Budget {
///     async fn decide(&self, call: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
///         let over = call.call.name.as_str() == "pay" && self.cents == 0;
///         let hold = || GateVerdict::Hold { reason: "the budget is used up".into() };
///         Ok(if over { hold() } else { GateVerdict::Allow }.into())
///     }
/// }
///
/// let gate = gate::new("budget", Budget { cents: 0 });
/// assert_eq!(gate.guard().name.as_str(), "budget");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a gate",
    note = "make one from a closure with `gate::func(\"name\", |call, cx| GateVerdict::Allow)`"
)]
pub trait Gate: Send + Sync {
    /// Decides on a call.
    ///
    /// # Errors
    /// If it cannot decide.
    ///
    /// # Cancel safety
    /// The future is dropped when the decision is cancelled.
    fn decide(
        &self,
        call: &ProposedCall,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<GateDecision, Fault>> + Send;
}

twin! {
    DynGate of Gate {
        async fn decide_boxed = decide(call: &'a ProposedCall, cx: &'a DecideCx) -> Result<GateDecision, Fault>;
    }
}

/// Creates a gate of tool calls and handoffs, called with valid arguments.
pub fn new(name: impl Into<GateName>, gate: impl Gate + 'static) -> Guarded<dyn DynGate> {
    Guarded::new(Guard::new(name, Points::CALL.and(Points::HANDOFF)), Arc::new(gate))
}

/// Creates a gate from a closure.
pub fn func(
    name: impl Into<GateName>,
    decide: impl Fn(&ProposedCall, &DecideCx) -> GateVerdict + Send + Sync + 'static,
) -> Guarded<dyn DynGate> {
    new(name, Func(decide))
}

struct Func<F>(F);

impl<F: Fn(&ProposedCall, &DecideCx) -> GateVerdict + Send + Sync> Gate for Func<F> {
    async fn decide(&self, call: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        Ok((self.0)(call, cx).into())
    }
}

/// Creates a gate that holds calls for which the closure returns a reason.
pub fn needs_approval(
    name: impl Into<GateName>,
    why: impl Fn(&ProposedCall) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynGate> {
    func(name, move |call, _| why(call).map_or(GateVerdict::Allow, |reason| GateVerdict::Hold { reason }))
}

/// Name of policies among the gates.
const POLICY: &str = "policy";

/// Creates a gate named `policy` from a policy of tool calls. Place it after gates that rewrite arguments, so that it sees
/// those that are executed. The facts of its events are its whole decision, with a `proposalHash` of the call.
pub fn policy(policy: impl Policy + 'static) -> Guarded<dyn DynGate> {
    new(POLICY, PolicyGate(policy)).at(Points::CALL)
}

/// Creates a gate named `policy` from a policy of handoffs.
pub fn handoff_policy(policy: impl Policy + 'static) -> Guarded<dyn DynGate> {
    new(POLICY, PolicyGate(policy)).at(Points::HANDOFF)
}
