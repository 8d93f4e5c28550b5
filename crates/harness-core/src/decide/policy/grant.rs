//! Approvals that were given.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::decision::{PolicyDecision, PolicyVerdict};
use super::port::{HandoffPolicy, ToolPolicy};
use super::proposal::{HandoffProposal, ToolProposal};
use crate::decide::DecideCx;
use crate::json::Json;
use crate::outcome::Fault;
use crate::time::{Time, iso};

/// An approval of one proposal, by its hash. Its times are ISO 8601 texts as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Grant {
    /// What it approves.
    pub proposal_hash: String,
    /// When it was given.
    #[serde(with = "iso")]
    pub approved_at: Time,
    /// The last moment at which it counts; `None` is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub revoked_at: Option<Time>,
    /// The approver's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// A stored grant that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grant cannot be read, and counts as not given: {problem}")]
#[non_exhaustive]
pub struct GrantFault {
    /// What is wrong with it.
    pub problem: String,
}

impl Grant {
    /// An approval without an end.
    pub fn new(proposal_hash: impl Into<String>, approved_at: Time) -> Self {
        Self {
            proposal_hash: proposal_hash.into(),
            approved_at,
            expires_at: None,
            revoked_at: None,
            metadata: None,
        }
    }

    /// A grant from its JSON form.
    ///
    /// # Errors
    /// When a field is missing or a time is none.
    pub fn read(value: &Json) -> Result<Self, GrantFault> {
        value.to().map_err(|error: serde_json::Error| GrantFault { problem: error.to_string() })
    }

    /// The same grant, which counts up to and including that time.
    #[must_use]
    pub fn expiring(mut self, at: Time) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// The same grant, taken back.
    #[must_use]
    pub fn revoked(mut self, at: Time) -> Self {
        self.revoked_at = Some(at);
        self
    }

    /// Whether it counts now: not taken back, and not over.
    pub fn is_active(&self, now: Time) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end >= now)
    }
}

/// The grant of a proposal that was given last among those that count now; of two given at once the first.
pub fn newest_active<'a>(
    grants: impl IntoIterator<Item = &'a Grant>,
    proposal_hash: &str,
    now: Time,
) -> Option<&'a Grant> {
    let active =
        grants.into_iter().filter(|grant| grant.proposal_hash == proposal_hash && grant.is_active(now));
    active.reduce(|newest, grant| if grant.approved_at > newest.approved_at { grant } else { newest })
}

/// For each proposal the grant that was given last among those that count now.
pub fn active_by_hash<'a>(
    grants: impl IntoIterator<Item = &'a Grant>,
    now: Time,
) -> BTreeMap<&'a str, &'a Grant> {
    let mut newest = BTreeMap::<&str, &Grant>::new();
    for grant in grants.into_iter().filter(|grant| grant.is_active(now)) {
        let known = newest.entry(&grant.proposal_hash).or_insert(grant);
        if grant.approved_at > known.approved_at {
            *known = grant;
        }
    }
    newest
}

/// The proposals that are approved now, in the order of their hashes.
pub fn approved_hashes<'a>(grants: impl IntoIterator<Item = &'a Grant>, now: Time) -> Vec<&'a str> {
    active_by_hash(grants, now).into_keys().collect()
}

/// Grants that have not been used. Each counts once; clones share the book.
#[derive(Clone, Debug, Default)]
pub struct GrantBook(Arc<Mutex<Vec<Grant>>>);

impl GrantBook {
    /// A book of grants.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Self {
        Self(Arc::new(Mutex::new(grants.into_iter().collect())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more grant.
    pub fn add(&self, grant: Grant) {
        self.lock().push(grant);
    }

    /// Takes all grants of a proposal back. How many there were.
    pub fn revoke(&self, proposal_hash: &str) -> usize {
        let mut grants = self.lock();
        let before = grants.len();
        grants.retain(|grant| grant.proposal_hash != proposal_hash);
        before - grants.len()
    }

    /// Uses the newest grant of a proposal that counts now, and with it those that were given before:
    /// one approval permits one execution.
    pub fn take(&self, proposal_hash: &str, now: Time) -> Option<Grant> {
        let mut grants = self.lock();
        let taken = newest_active(grants.iter(), proposal_hash, now).cloned()?;
        grants.retain(|grant| grant.proposal_hash != proposal_hash || grant.approved_at > taken.approved_at);
        Some(taken)
    }

    /// The grants that were not used.
    pub fn unused(&self) -> Vec<Grant> {
        self.lock().clone()
    }
}

/// A policy whose required approvals are looked up in a book: a proposal with a grant that counts is
/// allowed, once. Other arguments are another proposal, and so need another grant.
#[derive(Clone)]
pub struct Approved<P> {
    policy: P,
    book: GrantBook,
}

impl<P> fmt::Debug for Approved<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approved").field("book", &self.book).finish_non_exhaustive()
    }
}

impl<P> Approved<P> {
    /// A policy and the book of its approvals.
    pub fn new(policy: P, book: GrantBook) -> Self {
        Self { policy, book }
    }

    fn with_grant(&self, decision: PolicyDecision, hash: &str, now: Time) -> PolicyDecision {
        let decision = decision.checked();
        if decision.decision != PolicyVerdict::RequireApproval {
            return decision;
        }
        match self.book.take(hash, now) {
            Some(grant) => PolicyDecision {
                decision: PolicyVerdict::Allow,
                expires_at: grant.expires_at,
                result_mode: None,
                ..decision
            },
            None => decision,
        }
    }
}

impl<P: ToolPolicy> ToolPolicy for Approved<P> {
    async fn decide(&self, proposal: &ToolProposal, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
        let decision = self.policy.decide(proposal, cx).await?;
        Ok(self.with_grant(decision, &proposal.hash, cx.now))
    }
}

impl<P: HandoffPolicy> HandoffPolicy for Approved<P> {
    async fn decide(&self, proposal: &HandoffProposal, cx: &DecideCx) -> Result<PolicyDecision, Fault> {
        let decision = self.policy.decide(proposal, cx).await?;
        Ok(self.with_grant(decision, &proposal.hash, cx.now))
    }
}
