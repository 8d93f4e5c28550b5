//! Policies put together by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::decision::PolicyDecision;
use super::port::{DynHandoffPolicy, DynToolPolicy, HandoffPolicy, ToolPolicy};
use super::proposal::{HandoffProposal, ToolProposal};
use crate::decide::DecideCx;
use crate::outcome::Fault;

/// The name that stands for every other.
const ANY: &str = "*";

/// A policy for each tool, by its exact name; `*` is the policy of all others. A tool without a policy is
/// denied `deny_unconfigured_tool_NAME`.
#[derive(Clone, Default)]
#[must_use]
pub struct ToolPolicies(BTreeMap<String, Arc<dyn DynToolPolicy>>);

impl fmt::Debug for ToolPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolPolicies").field(&self.0.keys()).finish()
    }
}

impl ToolPolicies {
    /// No policy yet: everything is denied.
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy of a tool, in place of one given before.
    pub fn with(mut self, tool: impl Into<String>, policy: impl ToolPolicy + 'static) -> Self {
        self.0.insert(tool.into(), Arc::new(policy));
        self
    }
}

impl ToolPolicy for ToolPolicies {
    async fn decide(&self, proposal: &ToolProposal, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
        match self.0.get(proposal.tool.as_str()).or_else(|| self.0.get(ANY)) {
            Some(policy) => policy.decide_boxed(proposal, cx).await,
            None => Ok(PolicyDecision::deny(format!("deny_unconfigured_tool_{}", proposal.tool))),
        }
    }
}

/// A policy for each agent that is handed over to, by its exact name; `*` is the policy of all others. An
/// agent without a policy is denied `deny_unconfigured_handoff_NAME`.
#[derive(Clone, Default)]
#[must_use]
pub struct HandoffPolicies(BTreeMap<String, Arc<dyn DynHandoffPolicy>>);

impl fmt::Debug for HandoffPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandoffPolicies").field(&self.0.keys()).finish()
    }
}

impl HandoffPolicies {
    /// No policy yet: everything is denied.
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy of handoffs to an agent, in place of one given before.
    pub fn with(mut self, to: impl Into<String>, policy: impl HandoffPolicy + 'static) -> Self {
        self.0.insert(to.into(), Arc::new(policy));
        self
    }
}

impl HandoffPolicy for HandoffPolicies {
    async fn decide(&self, proposal: &HandoffProposal, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
        match self.0.get(proposal.to.as_str()).or_else(|| self.0.get(ANY)) {
            Some(policy) => policy.decide_boxed(proposal, cx).await,
            None => Ok(PolicyDecision::deny(format!("deny_unconfigured_handoff_{}", proposal.to))),
        }
    }
}

/// A policy of tools and of handoffs that denies everything, with the reason `policy_not_configured`: for hosts in
/// which nothing happens without a policy.
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

impl ToolPolicy for NotConfigured {
    async fn decide(&self, _: &ToolProposal, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(PolicyDecision::deny("policy_not_configured"))
    }
}

impl HandoffPolicy for NotConfigured {
    async fn decide(&self, _: &HandoffProposal, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Ok(PolicyDecision::deny("policy_not_configured"))
    }
}
