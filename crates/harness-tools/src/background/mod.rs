//! Sub-agents that work in the background while their caller continues.

mod arguments;
mod task;
mod tasks;

use std::fmt;
use std::sync::Arc;

use harness_core::limits::Amount;
use harness_core::message::Message;
use harness_core::tool::{DynTool, Ongoing, ToolCx, ToolOutcome, ToolStatus, tool_fn};
use harness_core::{Json, Origin};
use serde::Serialize;
use tokio::sync::watch;

use self::arguments::{Clear, Continue, Nothing, Results, Start, Wait};
use self::task::{Coming, Running, Settling, Task, Work};
pub use self::task::{TaskRecord, TaskStatus};
use self::tasks::Tasks;
use crate::state::{Keep, Kept, MOST_KEPT};
use crate::subagent::{DynSubagentRunner, Subagent, SubagentAsk, distinct, most, too_deep};
use crate::tool_set::ToolSet;

const WAIT: (&str, &str) = (
    "background_agents_wait_for_first_completion",
    "Waits until one of the tasks `task_ids` finishes (default: all running tasks) and returns its result.",
);
const RESULTS: (&str, &str) =
    ("background_agents_get_task_results", "Returns the results of the tasks `task_ids` without waiting.");
const ALL: (&str, &str) = ("background_agents_get_all_tasks", "Lists all tasks with their status.");
const CONTINUE: (&str, &str) = (
    "background_agents_continue_task",
    "Gives the agent of a finished task a further task. It knows its earlier tasks and answers.",
);
const CLEAR: (&str, &str) =
    ("background_agents_clear_completed_task", "Forgets finished tasks and their results.");

/// Maximum number of running tasks and of all tasks, per run or thread.
const MOST_RUNNING: usize = 8;
const MOST_TASKS: usize = 32;

/// Maximum size of the answers in one result, in bytes; an answer without room is returned when requested alone.
const MOST_TOLD: usize = 128 * 1024;

/// The tools `background_agents_start_task`, `_wait_for_first_completion`, `_get_task_results`,
/// `_get_all_tasks`, `_continue_task` and `_clear_completed_task`: sub-agents that work while their
/// caller continues.
///
/// - A task has the budget that was granted to its start, as with a [`SubagentTool`](crate::SubagentTool). It
///   stays reserved while the task runs. The next result of any of these tools charges the actual usage of
///   finished tasks to the caller instead.
/// - At most 8 tasks run concurrently and 32 are kept, per run ([`Keep::Run`]) or thread. Answers are cut at
///   64 KiB, and one result contains at most 128 KiB of them. Tasks of the 50 latest runs are kept.
/// - Tasks are cancelled when the run that started them ends or is interrupted, or the turn if it is driven
///   alone.
/// - Results of the tools contain the tasks as structured data, from which
///   [`restore_from`](Self::restore_from) restores them after a restart. A task without a reported result is
///   `lost` then.
///
/// Tasks are spawned on the tokio runtime in which the tools are called.
#[derive(Clone)]
pub struct BackgroundAgents {
    subagents: Arc<[Arc<Subagent>]>,
    runner: Arc<dyn DynSubagentRunner>,
    tasks: Arc<Kept<Tasks>>,
    max_depth: u32,
    most_running: usize,
    share: Amount,
    gated: bool,
}

impl fmt::Debug for BackgroundAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundAgents").field("subagents", &self.subagents).finish_non_exhaustive()
    }
}

impl BackgroundAgents {
    /// Creates the tools; `None` without sub-agents. Of two with the same name the later one is used.
    pub fn new(
        subagents: impl IntoIterator<Item = Subagent>,
        runner: Arc<dyn DynSubagentRunner>,
        keep: Keep,
    ) -> Option<Self> {
        let all = distinct(subagents);
        (!all.is_empty()).then(|| Self {
            share: most(&all),
            subagents: all.into(),
            runner,
            tasks: Arc::new(Kept::new(keep, MOST_KEPT)),
            max_depth: 1,
            most_running: MOST_RUNNING,
            gated: false,
        })
    }

    /// Sets the maximum nesting, as [`SubagentTool::max_depth`](crate::SubagentTool::max_depth).
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// Sets the maximum number of running tasks, from 1 to 32. Default 8.
    #[must_use]
    pub fn most_running(mut self, most: usize) -> Self {
        self.most_running = most.clamp(1, MOST_TASKS);
        self
    }

    /// Sets the maximum budget of one task. Default: the largest limits of the sub-agents.
    #[must_use]
    pub fn share(mut self, share: Amount) -> Self {
        self.share = share;
        self
    }

    /// Declares that the runner asks the caller's gates, as
    /// [`SubagentTool::gated`](crate::SubagentTool::gated).
    #[must_use]
    pub fn gated(mut self) -> Self {
        self.gated = true;
        self
    }

    /// Tasks of a run or thread with their results, by number. Reading them charges nothing; the next result
    /// of a tool does.
    pub fn tasks(&self, origin: &Origin) -> Vec<TaskRecord> {
        self.tasks.with(origin, |tasks| tasks.results())
    }

    /// Replaces the tasks of a run or thread by those in a transcript. Tasks without a result are lost, and
    /// those of agents that no longer exist are omitted.
    pub fn restore_from<'m>(&self, origin: &Origin, messages: impl IntoIterator<Item = &'m Message>) {
        let restored = Tasks::reported_in(messages, &self.subagents);
        self.tasks.with(origin, |tasks| *tasks = restored);
    }

    /// Aborts and removes the tasks of a run or thread.
    pub fn forget(&self, origin: &Origin) {
        self.tasks.forget(origin);
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        let of = Arc::new(self);
        let this = Arc::clone(&of);
        let wait = tool_fn(WAIT.0, WAIT.1, move |asked: Wait, cx| {
            let this = Arc::clone(&this);
            async move { this.wait(&cx, asked.task_ids).await }
        });
        ToolSet::new([
            of.starts("background_agents_start_task", &of.start_text(), |this, cx, asked: Start| {
                this.start(cx, &asked)
            }),
            Arc::new(wait.idempotent().internal().polling()) as _,
            of.looks(RESULTS, |this, cx, asked: Results| this.results(cx, asked.task_ids)),
            of.looks(ALL, |this, cx, _: Nothing| this.answer(cx, |tasks| Ok(listed(tasks.records())))),
            of.starts(CONTINUE.0, CONTINUE.1, |this, cx, asked: Continue| this.resume(cx, &asked)),
            of.looks(CLEAR, |this, cx, asked: Clear| this.clear(cx, asked.task_ids)),
        ])
    }

    fn start_text(&self) -> String {
        let mut text = "Delegates work to another agent, which knows only this description, and continues \
                        without waiting for it. Available agents:"
            .to_owned();
        for subagent in self.subagents.iter() {
            text.extend(["\n- ", &subagent.name, ": ", &subagent.description]);
        }
        text
    }

    fn starts<A>(
        self: &Arc<Self>,
        name: &str,
        description: &str,
        run: fn(&Self, &ToolCx, A) -> ToolOutcome,
    ) -> Arc<dyn DynTool>
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
    {
        let this = Arc::clone(self);
        let tool = tool_fn(name, description, move |asked: A, cx: ToolCx| {
            let outcome = run(&this, &cx, asked);
            async move { outcome }
        });
        let tool = tool.share(self.share);
        if self.gated { Arc::new(tool.internal()) } else { Arc::new(tool) }
    }

    fn looks<A>(
        self: &Arc<Self>,
        (name, description): (&str, &str),
        run: fn(&Self, &ToolCx, A) -> ToolOutcome,
    ) -> Arc<dyn DynTool>
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
    {
        let this = Arc::clone(self);
        let tool = tool_fn(name, description, move |asked: A, cx: ToolCx| {
            let outcome = run(&this, &cx, asked);
            async move { outcome }
        });
        Arc::new(tool.idempotent().internal().polling())
    }

    fn start(&self, cx: &ToolCx, asked: &Start) -> ToolOutcome {
        let found = self.subagents.iter().find(|subagent| subagent.name == asked.agent);
        let Some(agent) = found.cloned() else {
            let names: Vec<&str> = self.subagents.iter().map(|subagent| &*subagent.name).collect();
            return refused(&format!("unknown agent `{}`; available: {}", asked.agent, names.join(", ")));
        };
        self.launch(cx, |tasks| tasks.add(agent, asked.description.clone()))
    }

    fn resume(&self, cx: &ToolCx, asked: &Continue) -> ToolOutcome {
        self.launch(cx, |tasks| tasks.reopen(asked.task_id, &asked.description))
    }

    /// Starts an agent on the task that `open` returns.
    fn launch(&self, cx: &ToolCx, open: impl FnOnce(&mut Tasks) -> Result<u64, String>) -> ToolOutcome {
        if cx.origin.depth() >= self.max_depth {
            let message = too_deep(self.max_depth).answer.err().map(|fault| fault.message);
            return ToolOutcome::error("depth_reached", message.unwrap_or_default());
        }
        let mut outcome = self.answer(cx, |tasks| {
            tasks.room(self.most_running)?;
            let id = open(tasks)?;
            let task = tasks.get_mut(id)?;
            task.work = Work::Runs(self.spawn(cx, task));
            Ok(listed(vec![task.record()]))
        });
        if !outcome.is_error() {
            outcome.ongoing.get_or_insert_default().keeps_grant = true;
        }
        outcome
    }

    fn spawn(&self, cx: &ToolCx, task: &Task) -> Running {
        let mut own = cx.clone();
        // It may outlive the turn.
        own.deadline = None;
        let mut ask = SubagentAsk::new(Arc::clone(&task.agent), &*task.asked, own);
        ask.earlier.clone_from(&task.earlier);
        let (report, coming) = watch::channel(None);
        let runner = Arc::clone(&self.runner);
        let work = tokio::spawn(async move {
            let came = runner.run_boxed(ask).await;
            report.send_replace(Some(Arc::new(came)));
        });
        Running { coming, call: cx.call.id.clone(), granted: cx.grant.0, handle: work.abort_handle() }
    }

    async fn wait(&self, cx: &ToolCx, ids: Vec<u64>) -> ToolOutcome {
        let (ids, coming) = match self.tasks.with(&cx.origin, |tasks| tasks.to_wait_for(ids)) {
            Ok(found) => found,
            Err(why) => return refused(&why),
        };
        if !coming.is_empty() {
            tokio::select! {
                () = tasks::first(coming) => {}
                () = cx.cancel.cancelled() => {
                    let why = "Waiting was cancelled; the tasks are still running.";
                    return ToolOutcome::with_error(ToolStatus::Cancelled, "cancelled", why);
                }
            }
        }
        self.answer(cx, |tasks| Ok(listed(tasks.finished(&ids))))
    }

    fn results(&self, cx: &ToolCx, ids: Vec<u64>) -> ToolOutcome {
        self.answer(cx, |tasks| tasks.results_of(&ids).map(listed))
    }

    fn clear(&self, cx: &ToolCx, ids: Vec<u64>) -> ToolOutcome {
        #[derive(Serialize)]
        struct Cleared {
            cleared: Vec<u64>,
        }
        self.answer(cx, |tasks| tasks.clear(&ids).map(|cleared| Cleared { cleared }))
    }

    /// Returns the result of `work`, and settles finished tasks.
    fn answer<T: Serialize>(
        &self,
        cx: &ToolCx,
        work: impl FnOnce(&mut Tasks) -> Result<T, String>,
    ) -> ToolOutcome {
        let (result, settling) = self.tasks.with(&cx.origin, |tasks| {
            let settling = tasks.settle();
            (work(tasks), settling)
        });
        let mut outcome = match result {
            Ok(value) => ToolOutcome::structured(Json::of(&value).unwrap_or_default()),
            Err(why) => refused(&why),
        };
        settle(&mut outcome, settling);
        outcome
    }
}

#[derive(Serialize)]
struct TaskList {
    tasks: Vec<TaskRecord>,
}

/// Tasks with their answers, as far as they fit.
fn listed(mut tasks: Vec<TaskRecord>) -> TaskList {
    let mut room = MOST_TOLD;
    for answer in tasks.iter_mut().map(|task| &mut task.answer) {
        let bytes = answer.as_ref().map_or(0, String::len);
        if bytes > room {
            *answer = None;
        } else {
            room -= bytes;
        }
    }
    TaskList { tasks }
}

fn settle(outcome: &mut ToolOutcome, Settling { grants, usage }: Settling) {
    if !grants.is_empty() {
        let mut ongoing = Ongoing::default();
        ongoing.settled = grants;
        outcome.ongoing = Some(Box::new(ongoing));
    }
    outcome.usage = usage.map(Arc::new);
}

fn refused(why: &str) -> ToolOutcome {
    ToolOutcome::error("background_task", why)
}
