//! Policies: who may call what, as data that can be recorded, approved and audited.
//!
//! A policy looks at a *proposal* (an agent wants to call a tool with these arguments, or to hand over to
//! another agent) and answers allow, deny or require approval. [`gate::policy`](super::gate::policy) and
//! [`gate::handoff_policy`](super::gate::handoff_policy) make gates of it.
//! Everything fails closed: a policy that faults or panics denies `policy_error`, a decision without a
//! reason denies `invalid_policy_result`, and [`NotConfigured`] stands where there is no policy and nothing may happen
//! without one. Hashes are SHA-256 over [canonical text](crate::canonical).
//!
//! What is not allowed ends the run (`policy_denied`) by default, or parks it when approval is required;
//! with [`PolicyDecision::answering_model`] the model reads an envelope instead and goes on.
//!
//! ```
//! use harness_core::decide::gate;
//! use harness_core::decide::policy::{PolicyDecision, ToolPolicies, ToolProposal};
//!
//! let policies = ToolPolicies::new()
//!     .with("search", |_: &ToolProposal| PolicyDecision::allow("reading is free"))
//!     .with("pay", |proposal: &ToolProposal| {
//!         PolicyDecision::require_approval(format!("{} wants to pay", proposal.agent))
//!     });
//! let gate = gate::policy(policies);
//! assert_eq!(gate.guard().name.as_str(), "policy");
//! ```
//!
//! An approval that was given for a proposal is a [`Grant`]: it names the proposal by its hash, may expire
//! and be revoked, and [`Approved`] lets it count once.

mod ask;
mod by_name;
mod decision;
mod facts;
mod grant;
mod port;
mod proposal;

pub(super) use ask::{OfHandoffs, OfTools};
pub use by_name::{HandoffPolicies, NotConfigured, ToolPolicies};
pub use decision::{PolicyDecision, PolicyVerdict, ResultMode};
pub use facts::{Envelope, PolicyFacts, RequestSeed, Resource, ResourceKind, SuspendedProposal};
pub use grant::{Approved, Grant, GrantBook, GrantFault, active_by_hash, approved_hashes, newest_active};
pub use port::{DynHandoffPolicy, DynToolPolicy, HandoffPolicy, ToolPolicy};
pub use proposal::{HandoffProposal, ToolProposal};

/// The name of policies among the gates.
pub const NAME: &str = "policy";
