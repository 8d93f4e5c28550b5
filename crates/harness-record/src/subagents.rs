//! Runs of sub-agents inside the record of their caller.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::event::{Event, Fold};
use harness_core::{CallId, ParentCall, RunId, Time};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::fold::{RecordFold, RecordOptions};
use super::redact::Redacting;
use super::run_record::RunRecord;

/// Maximum number of sub-agents in a record.
const MOST: usize = 64;

/// Maximum number of sub-agents whose callers are in progress.
const MOST_OPEN: usize = 4_096;

/// Maximum size of the recorded prompts of a sub-agent in bytes.
const PROMPT_BYTES: u64 = 512 << 10;

/// Run of a sub-agent that a tool call started. Its context is that of its caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubagentRun {
    /// Id of the call.
    pub call_id: CallId,
    /// Record of the run. Its status is `running` if the sub-agent outlived its caller.
    pub record: RunRecord,
}

/// Sub-agents of all runs in progress, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Subagents(Arc<Mutex<VecDeque<Child>>>);

#[derive(Clone, Debug)]
struct Child {
    parent: Arc<ParentCall>,
    fold: Arc<Mutex<RecordFold>>,
}

impl Child {
    fn is_of(&self, run: &str) -> bool {
        self.parent.run.as_ref().map(RunId::as_str) == Some(run)
    }
}

impl Subagents {
    fn with<T>(&self, change: impl FnOnce(&mut VecDeque<Child>) -> T) -> T {
        change(&mut self.0.lock())
    }

    fn add(&self, child: Child) {
        self.with(|children| {
            children.push_back(child);
            if children.len() > MOST_OPEN {
                children.pop_front();
            }
        });
    }

    /// Runs of the sub-agents of a run until `now`, redacted as that run, and the number of those that are left out.
    pub(super) fn of_run(&self, run: &str, redacting: &Redacting, now: Time) -> (Vec<SubagentRun>, u64) {
        let children: Vec<Child> =
            self.with(|children| children.iter().filter(|child| child.is_of(run)).cloned().collect());
        let records = children.iter().take(MOST).filter_map(|Child { parent, fold }| {
            // A copy: the fold of a sub-agent of this sub-agent is looked for, too.
            let fold = fold.lock().clone();
            Some(SubagentRun { call_id: parent.call.clone(), record: fold.inside(redacting, now)? })
        });
        (records.collect(), children.len().saturating_sub(MOST) as u64)
    }

    /// Forgets the sub-agents of a run, and theirs.
    pub(super) fn forget(&self, run: &str) {
        let gone = self.with(|children| {
            let (gone, rest): (VecDeque<_>, _) =
                std::mem::take(children).into_iter().partition(|child| child.is_of(run));
            *children = rest;
            gone
        });
        for Child { fold, .. } in gone {
            let inner = fold.lock().run_id().map(str::to_owned);
            if let Some(inner) = inner {
                self.forget(&inner);
            }
        }
    }
}

/// Fold that adds the runs of sub-agents to the records of their callers: made by
/// [`Recording::subagents`](super::Recording::subagents). Each sub-agent has a clone, which starts empty.
#[derive(Debug)]
pub struct SubagentRecorder {
    pub(super) prompts: bool,
    pub(super) subagents: Subagents,
    fold: Option<Arc<Mutex<RecordFold>>>,
}

impl SubagentRecorder {
    pub(super) fn new(prompts: bool, subagents: Subagents) -> Self {
        Self { prompts, subagents, fold: None }
    }
}

impl Clone for SubagentRecorder {
    fn clone(&self) -> Self {
        Self::new(self.prompts, self.subagents.clone())
    }
}

impl Fold for SubagentRecorder {
    fn apply(&mut self, event: &Event) {
        let Some(parent) = &event.origin.parent else { return };
        let fold = self.fold.get_or_insert_with(|| {
            let options = RecordOptions {
                prompts: self.prompts,
                prompt_bytes: PROMPT_BYTES,
                ..RecordOptions::default()
            };
            let fold = RecordFold::new(options).with_subagents(self.subagents.clone());
            let fold = Arc::new(Mutex::new(fold));
            self.subagents.add(Child { parent: Arc::clone(parent), fold: Arc::clone(&fold) });
            fold
        });
        fold.lock().apply(event);
    }
}
