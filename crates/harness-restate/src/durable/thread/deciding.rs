//! Decisions about calls that wait.

use harness::core::machine::CallDecision;
use harness::core::port::Decision;
use harness::core::{Json, RunId, Time};

use super::super::blob::BlobHash;
use super::super::request::{Held, ThreadSend, ThreadStatus};
use super::ThreadState;

/// Decisions that are remembered, so that a client may repeat one.
const DECIDED: usize = 64;

impl ThreadState {
    pub(super) fn decide(
        &mut self,
        decision: CallDecision,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        let call = decision.call.clone();
        let is_own = |held: &&Held| {
            let seen = decision.digest.as_ref();
            *held.call() == call && seen.is_none_or(|seen| *seen == held.proposed.digest())
        };
        if !self.held.iter().any(|held| is_own(&held))
            && let Some((held, send)) = self.family.decide(&decision)
        {
            self.remember(&held, &decision.decision);
            sends.push(send);
            return Ok(());
        }
        if let Some(earlier) = self.decisions.iter().find(|earlier| earlier.call == call) {
            let is_equal = earlier.decision == decision.decision;
            return is_equal
                .then_some(())
                .ok_or_else(|| format!("decided: another decision about call `{call}` was given before"));
        }
        let held = self.held.iter().find(|held| *held.call() == call);
        let held = held.ok_or_else(|| format!("not_pending: call `{call}` does not wait for a decision"))?;
        let pending = held.proposed.digest();
        if self.is_fixed(&call) && !matches!(decision.decision, Decision::Granted | Decision::Denied { .. }) {
            return Err(format!("not_editable: `{call}` can only be granted or denied"));
        }
        if decision.digest.as_ref().is_some_and(|seen| *seen != pending) {
            return Err(format!("other_call: the decision about `{call}` is not about {pending}"));
        }
        if decision.decision == Decision::Later && matches!(self.status, ThreadStatus::Parked(_)) {
            // It is put off already.
            return Ok(());
        }
        let held = held.clone();
        self.remember(&held, &decision.decision);
        self.decisions.push(CallDecision::new(call, decision.decision));
        match &self.status {
            ThreadStatus::Running(run) => sends.push(ThreadSend::Ring(run.clone())),
            ThreadStatus::Parked(_) => self.resume(now, sends),
            ThreadStatus::Idle => {}
        }
        Ok(())
    }

    /// Remembers a decision, so that a client may repeat it.
    fn remember(&mut self, held: &Held, decision: &Decision) {
        if *decision != Decision::Later {
            self.decided.push_back((held.proposed.digest(), named(decision)));
            self.decided.drain(..self.decided.len().saturating_sub(DECIDED));
        }
    }

    pub(super) fn expire(
        &mut self,
        run: &RunId,
        since: Option<Time>,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) {
        let is_earlier = since.is_some() && since != self.since;
        if is_earlier || self.status != ThreadStatus::Parked(run.clone()) {
            return;
        }
        for held in &self.held {
            let reason = "nobody decided in time".to_owned();
            self.decisions.push(CallDecision::new(held.call().clone(), Decision::Denied { reason }));
        }
        self.resume(now, sends);
    }
}

/// Names a decision by its content, which may be long.
pub(super) fn named(decision: &Decision) -> BlobHash {
    BlobHash::of(Json::of(decision).unwrap_or_default().text())
}
