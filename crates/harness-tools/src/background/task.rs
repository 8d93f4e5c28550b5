//! One piece of work in the background.

use std::sync::Arc;

use harness_core::CallId;
use harness_core::limits::Amount;
use harness_core::message::{Cost, Usage};
use harness_core::tool::SettledGrant;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::subagent::{Exchange, Subagent, SubagentCode, SubagentFault, SubagentReport, shown};

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// Its agent is at work.
    Running,
    /// There is an answer.
    Completed,
    /// There is none, and the error says why.
    Failed,
    /// It ran in a program that has ended, and nobody knows what came of it.
    Lost,
}

/// A task as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Its number: 1, 2, 3 and so on.
    pub task_id: u64,
    /// The agent that it was given to.
    pub agent: String,
    /// What it was asked last; the beginning, when that is long.
    pub description: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The answer, where results are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why there is none, where results are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SubagentFault>,
}

/// What came of a task.
type Answer = Result<String, SubagentFault>;

/// The same, when it comes.
pub(super) type Coming = watch::Receiver<Option<Arc<SubagentReport>>>;

/// A task and what is known of it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) agent: Arc<Subagent>,
    /// What it was asked last.
    pub(super) asked: String,
    /// What it was asked and answered before that.
    pub(super) earlier: Vec<Exchange>,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Runs(Running),
    Done(Answer),
    Lost,
}

/// An agent at work. It is given up when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) coming: Coming,
    /// The call whose grant it draws on.
    pub(super) call: CallId,
    pub(super) granted: Amount,
    pub(super) handle: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// What tasks that are over give back of their grants, and what they used.
#[derive(Debug, Default)]
pub(super) struct Settling {
    pub(super) grants: Vec<SettledGrant>,
    pub(super) usage: Option<Usage>,
}

impl Settling {
    fn add(&mut self, running: &Running, report: Option<&SubagentReport>) {
        // Of one that broke down nobody knows what it spent: all of it counts.
        let spent = report.map_or(running.granted, |report| report.spent);
        self.grants.push(SettledGrant::new(running.call.clone(), spent));
        let Some(used) = report.and_then(|report| report.usage.as_deref()) else { return };
        let total = self.usage.take().unwrap_or_default();
        let mut sum = Usage::default();
        sum.input = plus(total.input, used.input);
        sum.output = plus(total.output, used.output);
        let cost = [total.total_cost(), used.total_cost()].into_iter().flatten().reduce(Cost::plus);
        self.usage = Some(match cost {
            Some(cost) => sum.with_cost(cost),
            None => sum,
        });
    }
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().reduce(u64::saturating_add)
}

impl Running {
    /// What has come, with the whole report unless its agent broke down; `None` while it works.
    fn came(&self) -> Option<(Option<Arc<SubagentReport>>, Answer)> {
        let report = self.coming.borrow().clone();
        let answer = match report.as_deref() {
            Some(report) => {
                report.answer.as_ref().map(|answer| shown(answer).into_owned()).map_err(Clone::clone)
            }
            // Nobody is there any more who could give one.
            None if self.coming.has_changed().is_err() => Err(broken_down()),
            None => return None,
        };
        Some((report, answer))
    }
}

impl Task {
    /// Takes note of what has come since the last look.
    pub(super) fn look(&mut self, settling: &mut Settling) {
        let Work::Runs(running) = &self.work else { return };
        let Some((report, answer)) = running.came() else { return };
        settling.add(running, report.as_deref());
        self.work = Work::Done(answer);
    }

    /// Its result; `None` while there is none.
    fn came(&self) -> Option<Answer> {
        match &self.work {
            Work::Runs(running) => running.came().map(|(_, answer)| answer),
            Work::Done(answer) => Some(answer.clone()),
            Work::Lost => None,
        }
    }

    pub(super) fn status(&self) -> TaskStatus {
        match (&self.work, self.came()) {
            (_, Some(Ok(_))) => TaskStatus::Completed,
            (_, Some(Err(_))) => TaskStatus::Failed,
            (Work::Lost, None) => TaskStatus::Lost,
            (Work::Runs(_) | Work::Done(_), None) => TaskStatus::Running,
        }
    }

    /// The task without its result.
    pub(super) fn record(&self) -> TaskRecord {
        TaskRecord {
            task_id: self.id,
            agent: self.agent.name.clone(),
            description: beginning(&self.asked),
            status: self.status(),
            answer: None,
            error: None,
        }
    }

    /// The task with its result, if there is one.
    pub(super) fn result(&self) -> TaskRecord {
        let (answer, error) = match self.came() {
            Some(Ok(answer)) => (Some(answer), None),
            Some(Err(fault)) => (None, Some(fault)),
            None => (None, None),
        };
        TaskRecord { answer, error, ..self.record() }
    }

    /// A task as an earlier process told it: what had no result then has none now.
    pub(super) fn of_record(record: TaskRecord, agent: Arc<Subagent>) -> Self {
        let TaskRecord { task_id, description, answer, error, .. } = record;
        let work = match (answer, error) {
            (Some(answer), _) => Work::Done(Ok(answer)),
            (None, Some(fault)) => Work::Done(Err(fault)),
            (None, None) => Work::Lost,
        };
        Self { id: task_id, agent, asked: description, earlier: Vec::new(), work }
    }
}

/// The first 500 bytes.
fn beginning(asked: &str) -> String {
    const SHOWN: usize = 500;
    match asked.split_at(asked.floor_char_boundary(SHOWN)) {
        (all, "") => all.to_owned(),
        (first, _) => format!("{first}…"),
    }
}

fn broken_down() -> SubagentFault {
    let mut fault = SubagentFault::default();
    (fault.code, fault.message) = (SubagentCode::SubagentError, "its agent broke down".to_owned());
    fault
}
