//! Policies put together by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Policy, PolicyDecision};
use crate::base::BoxFuture;
use crate::decide::DecideCx;
use crate::outcome::Fault;
use crate::port::ProposedCall;

/// The name that stands for every other.
const ANY: &str = "*";

/// The object-safe twin of [`Policy`].
trait DynPolicy: Send + Sync {
    fn decide_boxed<'a>(
        &'a self,
        proposed: &'a ProposedCall,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>>;
}

impl<P: Policy> DynPolicy for P {
    fn decide_boxed<'a>(
        &'a self,
        proposed: &'a ProposedCall,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<PolicyDecision, Fault>> {
        Box::pin(self.decide(proposed, cx))
    }
}

/// A policy for each tool, or for each agent that is handed over to, by its exact name; `*` is the policy of all others.
/// What has no policy is denied `deny_unconfigured_tool_NAME` or `deny_unconfigured_handoff_NAME`.
///
/// ```
/// use harness_core::decide::gate;
/// use harness_core::decide::policy::{Policies, PolicyDecision};
/// use harness_core::port::ProposedCall;
///
/// let handoffs = Policies::new().with("billing", |_: &ProposedCall| PolicyDecision::allow("always"));
/// let gate = gate::handoff_policy(handoffs);
/// # let _ = gate;
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Policies(BTreeMap<String, Arc<dyn DynPolicy>>);

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Policies").field(&self.0.keys()).finish()
    }
}

impl Policies {
    /// No policy yet: everything is denied.
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy of a tool, or of handoffs to an agent, in place of one given before.
    pub fn with(mut self, name: impl Into<String>, policy: impl Policy + 'static) -> Self {
        self.0.insert(name.into(), Arc::new(policy));
        self
    }
}

impl Policy for Policies {
    async fn decide(&self, proposed: &ProposedCall, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
        let (kind, name) = proposed.resource();
        match self.0.get(name).or_else(|| self.0.get(ANY)) {
            Some(policy) => policy.decide_boxed(proposed, cx).await,
            None => Ok(PolicyDecision::deny(format!("deny_unconfigured_{kind}_{name}"))),
        }
    }
}

/// A policy that denies everything, with the reason `policy_not_configured`: for hosts in which nothing happens without a
/// policy.
///
/// ```
/// use harness_core::decide::gate;
/// use harness_core::decide::policy::NotConfigured;
///
/// let gates = [gate::policy(NotConfigured), gate::handoff_policy(NotConfigured)];
/// # let _ = gates;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NotConfigured;

impl Policy for NotConfigured {
    async fn decide(&self, _: &ProposedCall, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(PolicyDecision::deny("policy_not_configured"))
    }
}
