//! Gates: asked about a tool call or a handoff before it runs.

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

/// What a gate says. The strictest of all gates wins: halt or deny, hold, rewrite, allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GateVerdict {
    /// Go on.
    Allow,
    /// Go on with these arguments.
    Rewrite(Json),
    /// Ask the approver; the remaining gates are still asked first.
    Hold {
        /// Why.
        reason: String,
    },
    /// Do not run it; the model reads the message.
    Deny {
        /// What the model reads.
        message: String,
    },
    /// Do not run it, and end the turn `policy_denied`.
    Halt {
        /// What the call is answered with.
        message: String,
        /// Why.
        reason: String,
    },
}

impl GateVerdict {
    /// A denial of which the model reads `Denied: ` and the reason.
    pub fn deny(reason: impl fmt::Display) -> Self {
        Self::Deny { message: format!("Denied: {reason}") }
    }

    /// Its name in events: `allow`, `rewrite`, `hold`, `deny` or `halt`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Rewrite(_) => "rewrite",
            Self::Hold { .. } => "hold",
            Self::Deny { .. } => "deny",
            Self::Halt { .. } => "halt",
        }
    }

    /// Why, as far as it says so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Hold { reason } | Self::Halt { reason, .. } => Some(reason),
            Self::Deny { message } => Some(message),
            Self::Allow | Self::Rewrite(_) => None,
        }
    }
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateDecision {
    /// What follows.
    pub verdict: GateVerdict,
    /// What it rests on, for records: of a policy its whole decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
}

impl From<GateVerdict> for GateDecision {
    fn from(verdict: GateVerdict) -> Self {
        Self { verdict, facts: None }
    }
}

/// Decides whether a tool call or a handoff happens.
///
/// A gate that fails decides nothing: what follows is a rule of its [`Guarded`]. A dropped future is a question that
/// nobody waits for any more.
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
    message = "`{Self}` is no gate",
    note = "make one of a closure with `gate::func(\"name\", |call, cx| GateVerdict::Allow)`"
)]
pub trait Gate: Send + Sync {
    /// Decides about a call.
    ///
    /// # Errors
    ///
    /// When it cannot decide.
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

/// A gate of this name, asked about tool calls and handoffs, after their arguments are checked.
pub fn new(name: impl Into<GateName>, gate: impl Gate + 'static) -> Guarded<dyn DynGate> {
    Guarded::new(Guard::new(name, Points::CALL.and(Points::HANDOFF)), Arc::new(gate))
}

/// A closure as a gate.
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

/// Holds the calls for which the closure gives a reason, until the approver decides.
///
/// ```
/// use harness_core::decide::gate;
///
/// let gate = gate::needs_approval("large-payments", |call| {
///     (call.call.name.as_str() == "pay").then(|| "money leaves the account".to_owned())
/// });
/// # assert!(gate.guard().timeout.is_some());
/// ```
pub fn needs_approval(
    name: impl Into<GateName>,
    why: impl Fn(&ProposedCall) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynGate> {
    func(name, move |call, _| why(call).map_or(GateVerdict::Allow, |reason| GateVerdict::Hold { reason }))
}

/// The name of policies among the gates.
const POLICY: &str = "policy";

/// A policy of tool calls, named `policy`. Put it behind gates that rewrite arguments: what it decides about should be
/// what is executed. Its whole decision is the facts of its event, with `proposalHash` as the name of what was proposed.
pub fn policy(policy: impl Policy + 'static) -> Guarded<dyn DynGate> {
    new(POLICY, PolicyGate(policy)).at(Points::CALL)
}

/// A policy of handoffs, named `policy`.
pub fn handoff_policy(policy: impl Policy + 'static) -> Guarded<dyn DynGate> {
    new(POLICY, PolicyGate(policy)).at(Points::HANDOFF)
}
