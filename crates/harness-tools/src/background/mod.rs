//! Work that goes on in the background while its caller does something else.

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
    "Waits until one of the tasks `task_ids` is over (of all that run, without), and gives its result.",
);
const RESULTS: (&str, &str) =
    ("background_agents_get_task_results", "Gives the results of the tasks `task_ids`, without waiting.");
const ALL: (&str, &str) = ("background_agents_get_all_tasks", "Lists all tasks and how far they are.");
const CONTINUE: (&str, &str) = (
    "background_agents_continue_task",
    "Asks the agent of a task that is over something more. It knows what it was asked and answered before.",
);
const CLEAR: (&str, &str) =
    ("background_agents_clear_completed_task", "Forgets tasks that are over, and their results.");

/// How many tasks of a run or conversation may run at once, and how many are kept in all.
const MOST_RUNNING: usize = 8;
const MOST_TASKS: usize = 32;

/// How many bytes of answers one result tells; what has no room is told when it is asked for alone.
const MOST_TOLD: usize = 128 * 1024;

/// The tools `background_agents_start_task`, `_wait_for_first_completion`, `_get_task_results`,
/// `_get_all_tasks`, `_continue_task` and `_clear_completed_task`: sub-agents that work while their
/// caller goes on.
///
/// - A task has what its start was granted, as a [`SubagentTool`](crate::SubagentTool) has: it stays set aside
///   while the task runs. When any of the tools next answers, what tasks that are over really used counts in
///   its place, in the caller's report, too.
/// - At most 8 tasks run at once and 32 are kept, per run ([`Keep::Run`]) or conversation; 64 KiB of an answer
///   are, and one result tells 128 KiB of answers. Those of the 50 latest runs are kept.
/// - Tasks end with the run, or the turn that is driven alone, which started them: their `cancel` fires
///   when that is over, or is interrupted.
/// - What the tools told stands in the structured part of their results.
///   [`restore_from`](Self::restore_from) finds it again after a restart; a task whose result was not told is
///   `lost` then.
///
/// Tasks are spawned on tokio's runtime, in which the tools must be called.
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
    /// Tools for some sub-agents; of two with one name the later counts. `None` without any: there is nothing
    /// to offer then.
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

    /// The same for sub-agents of sub-agents, as [`SubagentTool::max_depth`](crate::SubagentTool::max_depth).
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// The same with another number of tasks that may run at once, from 1 to 32. Default 8.
    #[must_use]
    pub fn most_running(mut self, most: usize) -> Self {
        self.most_running = most.clamp(1, MOST_TASKS);
        self
    }

    /// The same, of which one task may spend at most so much. Default the most that any of the sub-agents may.
    #[must_use]
    pub fn share(mut self, share: Amount) -> Self {
        self.share = share;
        self
    }

    /// Declares that the runner asks the gates of whoever calls the tools, as
    /// [`SubagentTool::gated`](crate::SubagentTool::gated).
    #[must_use]
    pub fn gated(mut self) -> Self {
        self.gated = true;
        self
    }

    /// The tasks of a run or conversation with their results, in the order of their numbers. Looking changes
    /// nothing: what they used counts when a tool next answers.
    pub fn tasks(&self, origin: &Origin) -> Vec<TaskRecord> {
        self.tasks.with(origin, |tasks| tasks.results())
    }

    /// Takes up the tasks that a transcript tells of, in place of those of a run or conversation. Tasks whose
    /// results it does not tell are lost, and those of agents that there are no more are left out.
    pub fn restore_from<'m>(&self, origin: &Origin, messages: impl IntoIterator<Item = &'m Message>) {
        let restored = Tasks::told_in(messages, &self.subagents);
        self.tasks.with(origin, |tasks| *tasks = restored);
    }

    /// Gives up and forgets the tasks of a run or conversation.
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
            of.looks(ALL, |this, cx, _: Nothing| this.answer(cx, |tasks| Ok(told(tasks.records())))),
            of.starts(CONTINUE.0, CONTINUE.1, |this, cx, asked: Continue| this.go_on(cx, &asked)),
            of.looks(CLEAR, |this, cx, asked: Clear| this.clear(cx, asked.task_ids)),
        ])
    }

    fn start_text(&self) -> String {
        let mut text =
            "Gives a piece of work to another agent, which knows only what it is told, and goes on \
                        without waiting for it. There are:"
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
            return refused(&format!("there is no agent `{}`; there are {}", asked.agent, names.join(", ")));
        };
        self.begin(cx, |tasks| tasks.add(agent, asked.description.clone()))
    }

    fn go_on(&self, cx: &ToolCx, asked: &Continue) -> ToolOutcome {
        self.begin(cx, |tasks| tasks.reopen(asked.task_id, &asked.description))
    }

    /// Sets an agent to work on a task that `open` gives.
    fn begin(&self, cx: &ToolCx, open: impl FnOnce(&mut Tasks) -> Result<u64, String>) -> ToolOutcome {
        if cx.origin.depth() >= self.max_depth {
            let message = too_deep(self.max_depth).answer.err().map(|fault| fault.message);
            return ToolOutcome::error("depth_reached", message.unwrap_or_default());
        }
        let mut outcome = self.answer(cx, |tasks| {
            tasks.room(self.most_running)?;
            let id = open(tasks)?;
            let task = tasks.get_mut(id)?;
            task.work = Work::Runs(self.spawn(cx, task));
            Ok(told(vec![task.record()]))
        });
        if !outcome.is_error() {
            outcome.ongoing.get_or_insert_default().keeps_grant = true;
        }
        outcome
    }

    fn spawn(&self, cx: &ToolCx, task: &Task) -> Running {
        let mut own = cx.clone();
        // It may well outlast the turn.
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
                    let why = "The waiting was given up; the tasks were still running.";
                    return ToolOutcome::with_error(ToolStatus::Cancelled, "cancelled", why);
                }
            }
        }
        self.answer(cx, |tasks| Ok(told(tasks.over(&ids))))
    }

    fn results(&self, cx: &ToolCx, ids: Vec<u64>) -> ToolOutcome {
        self.answer(cx, |tasks| tasks.results_of(&ids).map(told))
    }

    fn clear(&self, cx: &ToolCx, ids: Vec<u64>) -> ToolOutcome {
        #[derive(Serialize)]
        struct Cleared {
            cleared: Vec<u64>,
        }
        self.answer(cx, |tasks| tasks.clear(&ids).map(|cleared| Cleared { cleared }))
    }

    /// Answers with what `work` gives, and settles the tasks that are over.
    fn answer<T: Serialize>(
        &self,
        cx: &ToolCx,
        work: impl FnOnce(&mut Tasks) -> Result<T, String>,
    ) -> ToolOutcome {
        let (told, settling) = self.tasks.with(&cx.origin, |tasks| {
            let settling = tasks.look();
            (work(tasks), settling)
        });
        let mut outcome = match told {
            Ok(told) => ToolOutcome::structured(Json::of(&told).unwrap_or_default()),
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

/// Tasks with their answers, as far as there is room for them.
fn told(mut tasks: Vec<TaskRecord>) -> TaskList {
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
