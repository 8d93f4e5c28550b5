//! Tasks of one run or thread.

use std::sync::Arc;

use futures_util::future::select_all;
use harness_core::message::Message;
use serde::Deserialize;

use super::{Coming, MOST_TASKS, Settling, Task, TaskRecord, TaskStatus, Work};
use crate::subagent::{Exchange, Subagent};

/// Prefix of the names of all tools that report tasks.
const PREFIX: &str = "background_agents_";

/// Maximum number of continuations of a task, and maximum size of a description in bytes.
const MOST_EARLIER: usize = 16;
const MOST_ASKED: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// Number of tasks ever created.
    begun: u64,
    all: Vec<Task>,
}

impl Tasks {
    /// Settles finished tasks.
    pub(super) fn settle(&mut self) -> Settling {
        let mut settling = Settling::default();
        self.all.iter_mut().for_each(|task| task.settle(&mut settling));
        settling
    }

    /// Fails if no further task may run.
    pub(super) fn room(&self, most_running: usize) -> Result<(), String> {
        if self.all.iter().filter(|task| task.status() == TaskStatus::Running).count() >= most_running {
            return Err(format!("{most_running} tasks are already running; wait for one of them first"));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, agent: Arc<Subagent>, asked: String) -> Result<u64, String> {
        fits(&asked)?;
        if self.all.len() >= MOST_TASKS {
            return Err(format!("at most {MOST_TASKS} tasks are kept; clear finished tasks first"));
        }
        self.begun += 1;
        self.all.push(Task { id: self.begun, agent, asked, earlier: Vec::new(), work: Work::Lost });
        Ok(self.begun)
    }

    /// Prepares a finished task for a further description.
    pub(super) fn reopen(&mut self, id: u64, asked: &str) -> Result<u64, String> {
        fits(asked)?;
        let task = self.get_mut(id)?;
        let answered = match &task.work {
            Work::Done(Ok(answer)) => answer.clone(),
            Work::Done(Err(fault)) => format!("(no answer: {})", fault.message),
            Work::Lost => "(no answer: it was lost)".to_owned(),
            Work::Runs(_) => return Err(format!("task {id} is still running; wait for it first")),
        };
        if task.earlier.len() >= MOST_EARLIER {
            return Err(format!("task {id} was continued {MOST_EARLIER} times; start a new one"));
        }
        let before = std::mem::replace(&mut task.asked, asked.to_owned());
        task.earlier.push(Exchange::new(before, answered));
        Ok(id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Result<&mut Task, String> {
        let unknown = self.unknown(id);
        self.all.iter_mut().find(|task| task.id == id).ok_or(unknown)
    }

    fn get(&self, id: u64) -> Result<&Task, String> {
        self.all.iter().find(|task| task.id == id).ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: u64) -> String {
        let known: Vec<String> = self.all.iter().map(|task| task.id.to_string()).collect();
        match known.join(", ") {
            none if none.is_empty() => format!("task {id} not found; no task was started"),
            known => format!("task {id} not found; available: {known}"),
        }
    }

    pub(super) fn records(&self) -> Vec<TaskRecord> {
        self.all.iter().map(Task::record).collect()
    }

    pub(super) fn results(&self) -> Vec<TaskRecord> {
        self.all.iter().map(Task::result).collect()
    }

    pub(super) fn results_of(&self, ids: &[u64]) -> Result<Vec<TaskRecord>, String> {
        ids.iter().map(|id| self.get(*id).map(Task::result)).collect()
    }

    /// Tasks to wait for, with receivers of their reports; without receivers if one has finished. Default:
    /// the running tasks, or all if none runs.
    pub(super) fn to_wait_for(&self, ids: Vec<u64>) -> Result<(Vec<u64>, Vec<Coming>), String> {
        let ids = if ids.is_empty() { self.running_or_all() } else { ids };
        if ids.is_empty() {
            return Err("no task to wait for; start one first".to_owned());
        }
        let mut coming = Vec::new();
        for id in &ids {
            match &self.get(*id)?.work {
                Work::Runs(running) => coming.push(running.coming.clone()),
                Work::Done(_) | Work::Lost => return Ok((ids, Vec::new())),
            }
        }
        Ok((ids, coming))
    }

    fn running_or_all(&self) -> Vec<u64> {
        let ids = |all: &mut dyn Iterator<Item = &Task>| all.map(|task| task.id).collect::<Vec<_>>();
        match ids(&mut self.all.iter().filter(|task| matches!(task.work, Work::Runs(_)))) {
            none if none.is_empty() => ids(&mut self.all.iter()),
            running => running,
        }
    }

    /// Results of the finished tasks among these numbers.
    pub(super) fn finished(&self, ids: &[u64]) -> Vec<TaskRecord> {
        let over = |task: &&Task| ids.contains(&task.id) && task.status() != TaskStatus::Running;
        self.all.iter().filter(over).map(Task::result).collect()
    }

    /// Removes the tasks with these numbers, or all finished tasks.
    pub(super) fn clear(&mut self, ids: &[u64]) -> Result<Vec<u64>, String> {
        for id in ids {
            if self.get(*id)?.status() == TaskStatus::Running {
                return Err(format!("task {id} is still running; wait for it first"));
            }
        }
        let goes =
            |task: &Task| task.status() != TaskStatus::Running && (ids.is_empty() || ids.contains(&task.id));
        let cleared = self.all.iter().filter(|task| goes(task)).map(|task| task.id).collect();
        self.all.retain(|task| !goes(task));
        Ok(cleared)
    }

    /// Tasks in the results of a transcript.
    pub(super) fn reported_in<'m>(
        messages: impl IntoIterator<Item = &'m Message>,
        agents: &[Arc<Subagent>],
    ) -> Self {
        #[derive(Deserialize)]
        struct TaskChanges {
            #[serde(default)]
            tasks: Vec<TaskRecord>,
            #[serde(default)]
            cleared: Vec<u64>,
        }
        let mut restored = Self::default();
        let results = messages.into_iter().filter_map(Message::as_tool_result);
        let own = results.filter(|result| result.tool_name.as_str().starts_with(PREFIX));
        for changes in own.filter_map(|result| result.structured.as_ref()?.to::<TaskChanges>().ok()) {
            for record in changes.tasks {
                restored.begun = restored.begun.max(record.task_id);
                restored.restore(record, agents);
            }
            restored.all.retain(|task| !changes.cleared.contains(&task.id));
        }
        restored
    }

    /// Replaces the state of a task by a record, unless the record lacks a known result.
    fn restore(&mut self, record: TaskRecord, agents: &[Arc<Subagent>]) {
        let Some(agent) = agents.iter().find(|agent| agent.name == record.agent) else { return };
        let known = self.all.iter().position(|task| task.id == record.task_id);
        let lacks_result = matches!(record.status, TaskStatus::Completed | TaskStatus::Failed)
            && record.answer.is_none()
            && record.error.is_none();
        match known {
            Some(_) if lacks_result => {}
            Some(at) => {
                let task = Task::of_record(record, Arc::clone(agent));
                if let Some(before) = self.all.get_mut(at) {
                    *before = task;
                }
            }
            None if self.all.len() < MOST_TASKS => self.all.push(Task::of_record(record, Arc::clone(agent))),
            None => {}
        }
    }
}

fn fits(asked: &str) -> Result<(), String> {
    if asked.trim().is_empty() {
        return Err("the description is empty; describe the task".to_owned());
    }
    if asked.len() > MOST_ASKED {
        return Err(format!("the description has {} bytes; the limit is {MOST_ASKED}", asked.len()));
    }
    Ok(())
}

/// Waits until one of them has finished.
pub(super) async fn first(coming: Vec<Coming>) {
    let finished = |mut coming: Coming| {
        Box::pin(async move {
            // An error is an end, too: the agent panicked.
            let _ = coming.wait_for(Option::is_some).await;
        })
    };
    select_all(coming.into_iter().map(finished)).await;
}
