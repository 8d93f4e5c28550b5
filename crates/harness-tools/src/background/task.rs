//! Tasks of background agents.

use std::sync::Arc;

use harness_core::CallId;
use harness_core::limits::Amount;
use harness_core::message::{Cost, Usage};
use harness_core::tool::SettledGrant;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::subagent::{Exchange, Subagent, SubagentCode, SubagentFault, SubagentReport, shown};

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The agent is working.
    Running,
    /// The task has an answer.
    Completed,
    /// The task ended with an error.
    Failed,
    /// The task ran in a process that has ended; its result is unknown.
    Lost,
}

/// Task in results of the tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Number of the task, from 1.
    pub task_id: u64,
    /// Name of the agent.
    pub agent: String,
    /// Latest description, cut if it is long.
    pub description: String,
    /// Status.
    pub status: TaskStatus,
    /// Answer, if results are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Error, if results are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SubagentFault>,
}

/// Result of a task.
type Answer = Result<String, SubagentFault>;

/// Receiver of the report.
pub(super) type Coming = watch::Receiver<Option<Arc<SubagentReport>>>;

/// A task and its state.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) agent: Arc<Subagent>,
    /// Latest description.
    pub(super) asked: String,
    /// Earlier descriptions and answers.
    pub(super) earlier: Vec<Exchange>,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Runs(Running),
    Done(Answer),
    Lost,
}

/// A working agent; dropping it aborts the work.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) coming: Coming,
    /// Call whose grant it spends.
    pub(super) call: CallId,
    pub(super) granted: Amount,
    pub(super) handle: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Released grants and usage of finished tasks.
#[derive(Debug, Default)]
pub(super) struct Settling {
    pub(super) grants: Vec<SettledGrant>,
    pub(super) usage: Option<Usage>,
}

impl Settling {
    fn add(&mut self, running: &Running, report: Option<&SubagentReport>) {
        // The spending of a panicked agent is unknown, so the whole grant is charged.
        let spent = report.map_or(running.granted, |report| report.spent);
        self.grants.push(SettledGrant { call: running.call.clone(), spent });
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
    /// The result, with its report unless the agent panicked; `None` while it works.
    fn finished(&self) -> Option<(Option<Arc<SubagentReport>>, Answer)> {
        let report = self.coming.borrow().clone();
        let answer = match report.as_deref() {
            Some(report) => {
                report.answer.as_ref().map(|answer| shown(answer).into_owned()).map_err(Clone::clone)
            }
            // The sender is gone without a report.
            None if self.coming.has_changed().is_err() => Err(panicked()),
            None => return None,
        };
        Some((report, answer))
    }
}

impl Task {
    /// Settles the task if it has finished.
    pub(super) fn settle(&mut self, settling: &mut Settling) {
        let Work::Runs(running) = &self.work else { return };
        let Some((report, answer)) = running.finished() else { return };
        settling.add(running, report.as_deref());
        self.work = Work::Done(answer);
    }

    /// The result, if there is one.
    fn answer(&self) -> Option<Answer> {
        match &self.work {
            Work::Runs(running) => running.finished().map(|(_, answer)| answer),
            Work::Done(answer) => Some(answer.clone()),
            Work::Lost => None,
        }
    }

    pub(super) fn status(&self) -> TaskStatus {
        match (&self.work, self.answer()) {
            (_, Some(Ok(_))) => TaskStatus::Completed,
            (_, Some(Err(_))) => TaskStatus::Failed,
            (Work::Lost, None) => TaskStatus::Lost,
            (Work::Runs(_) | Work::Done(_), None) => TaskStatus::Running,
        }
    }

    /// Record without the result.
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

    /// Record with the result, if there is one.
    pub(super) fn result(&self) -> TaskRecord {
        let (answer, error) = match self.answer() {
            Some(Ok(answer)) => (Some(answer), None),
            Some(Err(fault)) => (None, Some(fault)),
            None => (None, None),
        };
        TaskRecord { answer, error, ..self.record() }
    }

    /// Restores a task from its record; without a result it is lost.
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

fn panicked() -> SubagentFault {
    let mut fault = SubagentFault::default();
    (fault.code, fault.message) = (SubagentCode::SubagentError, "the agent panicked".to_owned());
    fault
}
