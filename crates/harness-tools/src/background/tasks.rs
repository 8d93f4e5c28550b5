//! The tasks of one run or conversation.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use harness_core::message::Message;
use harness_core::port::BoxFuture;
use serde::Deserialize;

use super::{Coming, MOST_TASKS, Settling, Task, TaskRecord, TaskStatus, Work};
use crate::subagent::{Exchange, Subagent};

/// The beginning of the names of all tools that tell of tasks.
const PREFIX: &str = "background_agents_";

/// How often a task may go on, and how long one text may be that it is asked, in bytes.
const MOST_EARLIER: usize = 16;
const MOST_ASKED: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// How many there ever were.
    begun: u64,
    all: Vec<Task>,
}

impl Tasks {
    /// Takes note of what has come.
    pub(super) fn look(&mut self) -> Settling {
        let mut settling = Settling::default();
        self.all.iter_mut().for_each(|task| task.look(&mut settling));
        settling
    }

    /// Whether one more may run.
    pub(super) fn room(&self, most_running: usize) -> Result<(), String> {
        if self.all.iter().filter(|task| task.status() == TaskStatus::Running).count() >= most_running {
            return Err(format!("{most_running} tasks run already; wait for one of them first"));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, agent: Arc<Subagent>, asked: String) -> Result<u64, String> {
        fits(&asked)?;
        if self.all.len() >= MOST_TASKS {
            return Err(format!("{MOST_TASKS} tasks are kept at most; clear those that are over first"));
        }
        self.begun += 1;
        self.all.push(Task { id: self.begun, agent, asked, earlier: Vec::new(), work: Work::Lost });
        Ok(self.begun)
    }

    /// Makes a task ready to go on with something more.
    pub(super) fn reopen(&mut self, id: u64, asked: &str) -> Result<u64, String> {
        fits(asked)?;
        let task = self.get_mut(id)?;
        let answered = match &task.work {
            Work::Done(Ok(answer)) => answer.clone(),
            Work::Done(Err(fault)) => format!("(no answer: {})", fault.message),
            Work::Lost => "(no answer: it was lost)".to_owned(),
            Work::Runs(_) => return Err(format!("task {id} still runs; wait for it first")),
        };
        if task.earlier.len() >= MOST_EARLIER {
            return Err(format!("task {id} has gone on {MOST_EARLIER} times; start another one"));
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
            none if none.is_empty() => format!("there is no task {id}; none was started"),
            known => format!("there is no task {id}; there are {known}"),
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

    /// Which tasks are to be waited for, and what comes of them; nothing comes when one of them is over. Without
    /// numbers those that run, or all when none does.
    pub(super) fn to_wait_for(&self, ids: Vec<u64>) -> Result<(Vec<u64>, Vec<Coming>), String> {
        let ids = if ids.is_empty() { self.running_or_all() } else { ids };
        if ids.is_empty() {
            return Err("there is no task to wait for; start one first".to_owned());
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

    /// The results of those of these numbers that are over.
    pub(super) fn over(&self, ids: &[u64]) -> Vec<TaskRecord> {
        let over = |task: &&Task| ids.contains(&task.id) && task.status() != TaskStatus::Running;
        self.all.iter().filter(over).map(Task::result).collect()
    }

    /// Forgets those of these numbers, or all that are over.
    pub(super) fn clear(&mut self, ids: &[u64]) -> Result<Vec<u64>, String> {
        for id in ids {
            if self.get(*id)?.status() == TaskStatus::Running {
                return Err(format!("task {id} still runs; wait for it first"));
            }
        }
        let goes =
            |task: &Task| task.status() != TaskStatus::Running && (ids.is_empty() || ids.contains(&task.id));
        let cleared = self.all.iter().filter(|task| goes(task)).map(|task| task.id).collect();
        self.all.retain(|task| !goes(task));
        Ok(cleared)
    }

    /// The tasks that some messages tell of.
    pub(super) fn told_in<'m>(
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
        for told in own.filter_map(|result| result.structured.as_ref()?.to::<TaskChanges>().ok()) {
            for record in told.tasks {
                restored.begun = restored.begun.max(record.task_id);
                restored.resume(record, agents);
            }
            restored.all.retain(|task| !told.cleared.contains(&task.id));
        }
        restored
    }

    /// Takes what is told of a task in place of what was told before, unless that says more.
    fn resume(&mut self, record: TaskRecord, agents: &[Arc<Subagent>]) {
        let Some(agent) = agents.iter().find(|agent| agent.name == record.agent) else { return };
        let known = self.all.iter().position(|task| task.id == record.task_id);
        let result_told = matches!(record.status, TaskStatus::Completed | TaskStatus::Failed)
            && record.answer.is_none()
            && record.error.is_none();
        match known {
            Some(_) if result_told => {}
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
        return Err("the description is empty; say what is to be done".to_owned());
    }
    if asked.len() > MOST_ASKED {
        return Err(format!("the description has {} bytes; at most {MOST_ASKED} are passed on", asked.len()));
    }
    Ok(())
}

/// Waits until something has come of one of them, or nothing can any more.
pub(super) async fn first(coming: Vec<Coming>) {
    let one = |mut coming: Coming| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // An error is the end, too: its agent broke down.
            let _ = coming.wait_for(Option::is_some).await;
        })
    };
    let mut all: Vec<Pin<_>> = coming.into_iter().map(one).collect();
    poll_fn(|cx| {
        let over = all.iter_mut().any(|one| one.as_mut().poll(cx).is_ready());
        if over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
