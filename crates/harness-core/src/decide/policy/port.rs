//! The ports of policies.

use super::decision::PolicyDecision;
use super::proposal::{HandoffProposal, ToolProposal};
use crate::decide::DecideCx;
use crate::outcome::Fault;
use crate::port::BoxFuture;

/// Decides about tool calls. A function `Fn(&ToolProposal) -> PolicyDecision` is one.
///
/// ```
/// use harness_core::Fault;
/// use harness_core::decide::policy::{PolicyDecision, ToolPolicy, ToolProposal};
/// use harness_core::decide::DecideCx;
///
/// struct OfficeHours;
///
/// impl ToolPolicy for OfficeHours {
///     async fn decide(&self, proposal: &ToolProposal, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
///         let hour = cx.now.0 / 3_600_000 % 24;
///         if (8..18).contains(&hour) {
///             return Ok(PolicyDecision::allow("within office hours"));
///         }
///         Ok(PolicyDecision::require_approval(format!("{} at night", proposal.tool)))
///     }
/// }
/// # let _ = OfficeHours;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy of tools",
    note = "a closure needs its argument's type: `|proposal: &ToolProposal| PolicyDecision::allow(\"…\")`"
)]
pub trait ToolPolicy: Send + Sync {
    /// Decides about one call.
    ///
    /// # Errors
    /// A fault denies with the reason `policy_error`, and so does a panic.
    fn decide(
        &self,
        proposal: &ToolProposal,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<PolicyDecision, Fault>> + Send;
}

impl<F: Fn(&ToolProposal) -> PolicyDecision + Send + Sync> ToolPolicy for F {
    async fn decide(&self, proposal: &ToolProposal, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(self(proposal))
    }
}

/// The object-safe twin of [`ToolPolicy`].
pub trait DynToolPolicy: Send + Sync {
    /// [`ToolPolicy::decide`], boxed.
    fn decide_boxed<'a>(
        &'a self,
        proposal: &'a ToolProposal,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>>;
}

impl<P: ToolPolicy> DynToolPolicy for P {
    fn decide_boxed<'a>(
        &'a self,
        proposal: &'a ToolProposal,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>> {
        Box::pin(self.decide(proposal, cx))
    }
}

/// Decides about handoffs. A function `Fn(&HandoffProposal) -> PolicyDecision` is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy of handoffs",
    note = "a closure needs its argument's type: `|proposal: &HandoffProposal| PolicyDecision::allow(\"…\")`"
)]
pub trait HandoffPolicy: Send + Sync {
    /// Decides about one handoff.
    ///
    /// # Errors
    /// A fault denies with the reason `policy_error`, and so does a panic.
    fn decide(
        &self,
        proposal: &HandoffProposal,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<PolicyDecision, Fault>> + Send;
}

impl<F: Fn(&HandoffProposal) -> PolicyDecision + Send + Sync> HandoffPolicy for F {
    async fn decide(&self, proposal: &HandoffProposal, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(self(proposal))
    }
}

/// The object-safe twin of [`HandoffPolicy`].
pub trait DynHandoffPolicy: Send + Sync {
    /// [`HandoffPolicy::decide`], boxed.
    fn decide_boxed<'a>(
        &'a self,
        proposal: &'a HandoffProposal,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>>;
}

impl<P: HandoffPolicy> DynHandoffPolicy for P {
    fn decide_boxed<'a>(
        &'a self,
        proposal: &'a HandoffProposal,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>> {
        Box::pin(self.decide(proposal, cx))
    }
}
