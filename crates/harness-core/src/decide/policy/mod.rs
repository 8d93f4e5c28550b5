//! Policies: who may call what, as data that can be recorded, approved and audited.
//!
//! A policy looks at a [`ProposedCall`] (an agent wants to call a tool with these arguments,
//! or to hand over to another agent) and answers allow, deny or require approval.
//! [`gate::policy`](super::gate::policy) and [`gate::handoff_policy`](super::gate::handoff_policy) make gates of it.
//! Everything fails closed: a policy that faults or panics denies `policy_error`, a decision without a
//! reason denies `invalid_policy_result`, and [`NotConfigured`] stands where there is no policy and nothing may happen
//! without one.
//!
//! What is not allowed ends the run (`policy_denied`) by default, or parks it when approval is required;
//! with [`PolicyDecision::answering_model`] the model reads an object with `status`, `code` and `publicReason` instead
//! and goes on.
//!
//! ```
//! use harness_core::decide::gate;
//! use harness_core::decide::policy::{Policies, PolicyDecision};
//! use harness_core::port::ProposedCall;
//!
//! let policies = Policies::new()
//!     .with("search", |_: &ProposedCall| PolicyDecision::allow("reading is free"))
//!     .with("pay", |call: &ProposedCall| {
//!         PolicyDecision::require_approval(format!("{} wants to pay", call.agent))
//!     });
//! let gate = gate::policy(policies);
//! assert_eq!(gate.guard().name.as_str(), "policy");
//! ```

mod by_name;
mod decision;
mod facts;
mod gate;

pub use by_name::{NotConfigured, Policies};
pub use decision::{PolicyDecision, PolicyVerdict, ResultMode};
pub(super) use gate::PolicyGate;

use super::DecideCx;
use crate::outcome::Fault;
use crate::port::ProposedCall;

/// Decides about tool calls or handoffs. A function `Fn(&ProposedCall) -> PolicyDecision` is one.
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
    /// Decides about one call.
    ///
    /// # Errors
    /// A fault denies with the reason `policy_error`, and so does a panic.
    fn decide(
        &self,
        proposed: &ProposedCall,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<PolicyDecision, Fault>> + Send;
}

impl<F: Fn(&ProposedCall) -> PolicyDecision + Send + Sync> Policy for F {
    async fn decide(&self, proposed: &ProposedCall, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(self(proposed))
    }
}
