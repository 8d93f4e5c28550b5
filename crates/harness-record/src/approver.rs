//! An approver that decides as it was decided.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use harness_core::CallId;
use harness_core::port::{ApprovalAsk, Approver, Decision};

use super::run_record::RunRecord;

/// Decides about held calls as the record says that somebody did, by the id of the call.
///
/// A call that nobody decided about waits, and so does one whose arguments were edited: the record does not
/// hold the new ones.
#[derive(Debug)]
pub struct RecordedApprover {
    decisions: Mutex<HashMap<CallId, VecDeque<Decided>>>,
}

/// A decision's word, and why.
type Decided = (String, Option<String>);

impl RecordedApprover {
    /// The decisions of a recorded run.
    pub fn new(record: &RunRecord) -> Self {
        let mut decisions: HashMap<CallId, VecDeque<Decided>> = HashMap::new();
        for approval in &record.approvals {
            let decided = (approval.decision.clone(), approval.reason.clone());
            decisions.entry(approval.call_id.clone()).or_default().push_back(decided);
        }
        Self { decisions: Mutex::new(decisions) }
    }
}

impl Approver for RecordedApprover {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        match decisions.get_mut(&ask.proposed.call.id).and_then(VecDeque::pop_front) {
            Some((decision, _)) if decision == "granted" => Decision::Granted,
            Some((decision, reason)) if decision == "denied" => {
                Decision::Denied { reason: reason.unwrap_or_else(|| "denied".to_owned()) }
            }
            Some(_) | None => Decision::Later,
        }
    }
}
