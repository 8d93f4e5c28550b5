//! Approver that repeats recorded decisions.

use std::collections::{HashMap, VecDeque};

use harness_core::CallId;
use harness_core::port::{ApprovalAsk, Approver, Decision};
use parking_lot::Mutex;

use super::run_record::RunRecord;

/// Approver that repeats recorded decisions, by call id. A call without a recorded decision stays pending, as does one
/// with edited arguments, which are not recorded.
#[derive(Debug)]
pub struct RecordedApprover {
    decisions: Mutex<HashMap<CallId, VecDeque<Decided>>>,
}

/// Wire name and reason of a decision.
type Decided = (String, Option<String>);

impl RecordedApprover {
    /// Creates an approver from a record.
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
        let mut decisions = self.decisions.lock();
        match decisions.get_mut(&ask.proposed.call.id).and_then(VecDeque::pop_front) {
            Some((decision, _)) if decision == "granted" => Decision::Granted,
            Some((decision, reason)) if decision == "denied" => {
                Decision::Denied { reason: reason.unwrap_or_else(|| "denied".to_owned()) }
            }
            Some(_) | None => Decision::Later,
        }
    }
}
