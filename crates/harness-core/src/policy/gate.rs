//! Policies as a tool gate.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::decision::{PolicyDecision, PolicyVerdict, ResultMode};
use super::facts::{Envelope, Proposed};
use super::port::{DynHandoffPolicy, DynToolPolicy, HandoffPolicy, ToolPolicy};
use super::proposal::{HandoffProposal, ToolProposal};
use crate::ids::GateName;
use crate::json::Json;
use crate::outcome::Fault;
use crate::panics::panic_text;
use crate::port::{BoxFuture, GateCx, ProposedCall, Ruling, ToolGate, ToolKind, Verdict};

/// Asks policies about calls and handoffs.
///
/// Put it behind gates that rewrite arguments: what it decides about should be what is executed.
#[derive(Clone, Default)]
#[must_use]
pub struct PolicyGate {
    tools: Option<Arc<dyn DynToolPolicy>>,
    handoffs: Option<Arc<dyn DynHandoffPolicy>>,
    default_deny: bool,
}

impl fmt::Debug for PolicyGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyGate")
            .field("tools", &self.tools.is_some())
            .field("handoffs", &self.handoffs.is_some())
            .field("default_deny", &self.default_deny)
            .finish()
    }
}

impl PolicyGate {
    /// The gate's name in events and results.
    pub const NAME: &'static str = "policy";

    /// No policy yet: everything is allowed, or denied with [`default_deny`](Self::default_deny).
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy of tool calls.
    pub fn tools(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.tools = Some(Arc::new(policy));
        self
    }

    /// The policy of handoffs.
    pub fn handoffs(mut self, policy: impl HandoffPolicy + 'static) -> Self {
        self.handoffs = Some(Arc::new(policy));
        self
    }

    /// Denies what there is no policy for, with the reason `policy_not_configured`: tool calls without a
    /// policy of tools, handoffs without a policy of handoffs.
    pub fn default_deny(mut self) -> Self {
        self.default_deny = true;
        self
    }

    /// Whether it could ever say anything but allow.
    pub fn is_empty(&self) -> bool {
        self.tools.is_none() && self.handoffs.is_none() && !self.default_deny
    }

    async fn decide(&self, asked: Option<Asked<'_>>) -> Option<PolicyDecision> {
        match asked {
            Some(asked) => Some(settled(asked).await),
            None if self.default_deny => Some(PolicyDecision::deny("policy_not_configured")),
            None => None,
        }
    }
}

type Asked<'a> = BoxFuture<'a, Result<PolicyDecision, Fault>>;

/// The decision, whatever the policy does.
async fn settled(asked: Asked<'_>) -> PolicyDecision {
    match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(Ok(decision)) => decision.checked(),
        Ok(Err(fault)) => PolicyDecision::failed(&fault.code, &fault.message),
        Err(panic) => PolicyDecision::failed("panic", &panic_text(&*panic)),
    }
}

fn ruling(proposed: Proposed<'_>, decision: &PolicyDecision, cx: &GateCx) -> Ruling {
    let facts = cx.facts_wanted.then(|| Json::of(&proposed.facts(decision, cx)).ok()).flatten();
    let mode = decision.result_mode.unwrap_or_default();
    let verdict = match (decision.decision, mode) {
        (PolicyVerdict::Allow, _) => Verdict::Allow,
        (PolicyVerdict::RequireApproval, ResultMode::Throw) => {
            Verdict::Hold { reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny, ResultMode::Throw) => {
            Verdict::Halt { message: Envelope::of(decision).text(), reason: decision.reason.clone() }
        }
        (PolicyVerdict::Deny | PolicyVerdict::RequireApproval, ResultMode::ToolResult) => {
            Verdict::Deny { message: Envelope::of(decision).text() }
        }
    };
    Ruling::new(verdict, facts)
}

impl ToolGate for PolicyGate {
    fn name(&self) -> GateName {
        GateName::from(Self::NAME)
    }

    async fn check(&self, proposed: &ProposedCall, cx: &GateCx) -> Verdict {
        self.rule(proposed, cx).await.verdict
    }

    async fn rule(&self, proposed: &ProposedCall, cx: &GateCx) -> Ruling {
        match &proposed.def.kind {
            ToolKind::Function if self.tools.is_none() && !self.default_deny => Verdict::Allow.into(),
            ToolKind::Handoff(_) if self.handoffs.is_none() && !self.default_deny => Verdict::Allow.into(),
            ToolKind::Function => {
                let proposal = ToolProposal::of(proposed);
                // In a block of its own, so that a policy which panics before it waits is caught, too.
                let asked = self.tools.as_ref().map(|policy| -> Asked<'_> {
                    let proposal = &proposal;
                    Box::pin(async move { policy.decide_boxed(proposal, cx).await })
                });
                let decision = self.decide(asked).await;
                decision.map_or_else(
                    || Verdict::Allow.into(),
                    |decision| ruling(Proposed::Tool(&proposal), &decision, cx),
                )
            }
            ToolKind::Handoff(to) => {
                let proposal = HandoffProposal::of(proposed, to);
                let asked = self.handoffs.as_ref().map(|policy| -> Asked<'_> {
                    let proposal = &proposal;
                    Box::pin(async move { policy.decide_boxed(proposal, cx).await })
                });
                let decision = self.decide(asked).await;
                decision.map_or_else(
                    || Verdict::Allow.into(),
                    |decision| ruling(Proposed::Handoff(&proposal), &decision, cx),
                )
            }
        }
    }
}
