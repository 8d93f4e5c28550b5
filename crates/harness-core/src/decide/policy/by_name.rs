//! Policies by tool or agent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{DynPolicy, Policy, PolicyDecision};
use crate::decide::DecideCx;
use crate::outcome::Fault;
use crate::port::ProposedCall;

/// Name of the policy for all others.
const ANY: &str = "*";

/// Policies by the exact name of the tool, or of the agent of a handoff; `*` is the policy for all others. Names without a
/// policy are denied with `deny_unconfigured_tool_NAME` or `deny_unconfigured_handoff_NAME`.
#[derive(Clone, Default)]
#[must_use]
pub struct Policies(BTreeMap<String, Arc<dyn DynPolicy>>);

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Policies").field(&self.0.keys()).finish()
    }
}

impl Policies {
    /// Creates an empty set, which denies everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy of a name.
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

/// Policy that denies everything with the reason `policy_not_configured`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotConfigured;

impl Policy for NotConfigured {
    async fn decide(&self, _: &ProposedCall, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(PolicyDecision::deny("policy_not_configured"))
    }
}
