//! Policies: permissions as data that can be recorded, approved and audited.
//!
//! A policy decides on a [`ProposedCall`] (a tool call, or a handoff to another agent): allow, deny, or require approval.
//! [`gate::policy`](super::gate::policy) and [`gate::handoff_policy`](super::gate::handoff_policy) turn it into a gate.
//! Everything fails closed: a policy that fails or panics denies `policy_error`, a decision without a reason denies
//! `invalid_policy_result`, and [`NotConfigured`] denies everything.
//!
//! By default a denial ends the run (`policy_denied`), and a required approval holds the call. With
//! [`PolicyDecision::answering_model`] the model receives an object with `status`, `code` and `publicReason` instead, and
//! the turn continues.
//!
//! ```
//! use harness_core::decide::gate;
//! use harness_core::decide::policy::{NotConfigured, Policies, PolicyDecision, PolicyVerdict, ResultMode};
//! use harness_core::port::ProposedCall;
//!
//! let policies = Policies::new()
//!     .with("search", |_: &ProposedCall| PolicyDecision::allow("reading is free"))
//!     .with("pay", |call: &ProposedCall| {
//!         PolicyDecision::require_approval(format!("{} wants to pay", call.agent))
//!             .with_public_reason("This payment needs approval.")
//!             .with_policy_version("payments-7")
//!     });
//! let gates = [gate::policy(policies), gate::handoff_policy(NotConfigured)];
//! assert_eq!(gates[0].guard().name.as_str(), "policy");
//!
//! let denial = PolicyDecision::deny("closed").answering_model();
//! assert_eq!((denial.decision, denial.result_mode), (PolicyVerdict::Deny, Some(ResultMode::ToolResult)));
//! ```

mod by_name;
mod decision;
mod facts;

pub use by_name::{NotConfigured, Policies};
pub(super) use decision::PolicyGate;
pub use decision::{PolicyDecision, PolicyVerdict, ResultMode};

use super::DecideCx;
use crate::outcome::Fault;
use crate::port::ProposedCall;
use crate::twin;

/// Decides on tool calls or handoffs. Implemented for functions `Fn(&ProposedCall) -> PolicyDecision`.
///
/// ```
/// use harness_core::Fault;
/// use harness_core::decide::DecideCx;
/// use harness_core::decide::policy::{Policy, PolicyDecision};
/// use harness_core::port::ProposedCall;
///
/// struct OfficeHours;
///
/// impl Policy for OfficeHours {
///     async fn decide(&self, proposed: &ProposedCall, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
///         let hour = cx.now.0 / 3_600_000 % 24;
///         if (8..18).contains(&hour) {
///             return Ok(PolicyDecision::allow("within office hours"));
///         }
///         Ok(PolicyDecision::require_approval(format!("{} at night", proposed.call.name)))
///     }
/// }
/// # let _ = OfficeHours;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy",
    note = "a closure needs its argument's type: `|call: &ProposedCall| PolicyDecision::allow(\"…\")`"
)]
pub trait Policy: Send + Sync {
    /// Decides on a call.
    ///
    /// # Errors
    /// An error or a panic denies with the reason `policy_error`.
    fn decide(
        &self,
        proposed: &ProposedCall,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<PolicyDecision, Fault>> + Send;
}

twin! {
    DynPolicy of Policy {
        async fn decide_boxed = decide(proposed: &'a ProposedCall, cx: &'a DecideCx) -> Result<PolicyDecision, Fault>;
    }
}

impl<F: Fn(&ProposedCall) -> PolicyDecision + Send + Sync> Policy for F {
    async fn decide(&self, proposed: &ProposedCall, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(self(proposed))
    }
}
