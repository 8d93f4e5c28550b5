//! Sub-agents: work that an agent delegates to another agent.

use std::borrow::Cow;
use std::sync::Arc;

use harness_core::limits::{Amount, Limits};
use harness_core::message::{ApprovalRequest, Cost, ToolCall, Usage};
use harness_core::tool::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::{Json, Origin};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::{Arguments, Refused, checked};
use crate::exact::answered;
use crate::tool_set::ToolSet;

/// Maximum size of a sub-agent's answer for its caller: 64 KiB.
const MOST_OUTPUT: usize = 64 * 1024;

/// Agent that work can be delegated to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// Name, by which a model chooses it.
    pub name: String,
    /// Description for the model that delegates.
    pub description: String,
    /// Instructions.
    pub instructions: String,
    /// Names of the tools that it may use; `None` allows all tools of its runner.
    pub tools: Option<Vec<String>>,
    /// Maximum number of turns. Default 1; further turns are taken only if a check of the end requires them.
    pub max_turns: u32,
    /// Maximum number of iterations. Default 8.
    pub max_iterations: u32,
    /// Maximum number of tool calls. Default 128.
    pub max_tool_calls: u32,
    /// Maximum number of tokens. Default 4 million.
    pub max_tokens: u64,
    /// Maximum cost, if known. Default 20 units.
    pub max_cost: Cost,
}

impl Subagent {
    /// Creates an agent with all tools and the default limits.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Self {
        let limits = Limits::default();
        Self {
            name: name.into(),
            description: description.into(),
            instructions: instructions.into(),
            tools: None,
            max_turns: 1,
            max_iterations: 8,
            max_tool_calls: limits.tool_calls,
            max_tokens: limits.tokens,
            max_cost: limits.cost,
        }
    }

    /// Maximum budget of one call.
    pub fn limits(&self) -> Amount {
        let mut limits = Amount::NONE;
        (limits.iterations, limits.tool_calls) = (self.max_iterations, self.max_tool_calls);
        (limits.tokens, limits.cost) = (self.max_tokens, self.max_cost);
        limits
    }
}

/// The largest limits of these agents.
pub(crate) fn most(subagents: &[Arc<Subagent>]) -> Amount {
    subagents.iter().fold(Amount::NONE, |mut most, subagent| {
        let limits = subagent.limits();
        most.iterations = most.iterations.max(limits.iterations);
        most.tool_calls = most.tool_calls.max(limits.tool_calls);
        most.tokens = most.tokens.max(limits.tokens);
        most.cost = most.cost.max(limits.cost);
        most
    })
}

/// Sub-agents with distinct names, in order; of two with the same name the later one is used.
pub(crate) fn distinct(subagents: impl IntoIterator<Item = Subagent>) -> Vec<Arc<Subagent>> {
    let mut all: Vec<Arc<Subagent>> = Vec::new();
    for subagent in subagents {
        match all.iter_mut().find(|known| known.name == subagent.name) {
            Some(known) => *known = Arc::new(subagent),
            None => all.push(Arc::new(subagent)),
        }
    }
    all
}

/// Task of a sub-agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubagentAsk {
    /// Sub-agent that gets the task.
    pub subagent: Arc<Subagent>,
    /// Description of the task. With `earlier`, it is all that the sub-agent receives.
    pub description: String,
    /// Earlier tasks and answers, if it continues a task.
    pub earlier: Vec<Exchange>,
    /// The call: its origin, budget ([`ToolCx::grant`]), deadline and cancellation.
    pub cx: ToolCx,
}

impl SubagentAsk {
    /// Creates a task without earlier exchanges.
    pub fn new(subagent: Arc<Subagent>, description: impl Into<String>, cx: ToolCx) -> Self {
        Self { subagent, description: description.into(), earlier: Vec::new(), cx }
    }
}

/// Task of a sub-agent and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// Description of the task.
    pub asked: String,
    /// Answer.
    pub answered: String,
}

impl Exchange {
    /// Creates an exchange.
    pub fn new(asked: impl Into<String>, answered: impl Into<String>) -> Self {
        Self { asked: asked.into(), answered: answered.into() }
    }
}

/// Result of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentReport {
    /// Answer, or the error.
    pub answer: Result<String, SubagentFault>,
    /// Number of iterations.
    pub iterations: u32,
    /// Amount spent of the call's grant, even on failure.
    pub spent: Amount,
    /// Usage for the totals of the turn.
    pub usage: Option<Arc<Usage>>,
    /// Requests of the sub-agent that wait for a person. With any, the call is pending, and asks for the same sub-agent again
    /// when it is granted ([`ToolOutcome::waiting_for`]).
    pub approvals: Vec<ApprovalRequest>,
}

impl SubagentReport {
    /// Creates a report with an answer.
    pub fn answered(answer: impl Into<String>, iterations: u32) -> Self {
        Self {
            answer: Ok(answer.into()),
            iterations,
            spent: Amount::NONE,
            usage: None,
            approvals: Vec::new(),
        }
    }

    /// Creates a report with an error.
    pub fn failed(code: SubagentCode, message: impl Into<String>, iterations: u32) -> Self {
        let fault = SubagentFault { code, message: message.into() };
        Self { answer: Err(fault), iterations, spent: Amount::NONE, usage: None, approvals: Vec::new() }
    }
}

/// Error of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentFault {
    /// Kind of the error.
    pub code: SubagentCode,
    /// Message for the model.
    pub message: String,
}

/// Kinds of errors of a sub-agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubagentCode {
    /// The sub-agent was cancelled.
    Aborted,
    /// The sub-agent reached its iteration limit.
    MaxIterations,
    /// The model responses were invalid.
    InvalidOutput,
    /// No sub-agent has that name.
    UnknownSubagent,
    /// The nesting of sub-agents exceeds its limit.
    DepthReached,
    /// Any other error.
    #[default]
    SubagentError,
}

/// Runs sub-agents.
///
/// ```
/// use harness_tools::{SubagentAsk, SubagentReport, SubagentRunner};
///
/// struct Echo;
///
/// impl SubagentRunner for Echo {
///     async fn run(&self, ask: SubagentAsk) -> SubagentReport {
///         SubagentReport::answered(format!("{} did {}", ask.subagent.name, ask.description), 1)
///     }
/// }
/// ```
pub trait SubagentRunner: Send + Sync {
    /// Runs a sub-agent to its end. It spends the call's grant and stops when `ask.cx.cancel` fires.
    /// Dropping the future aborts it.
    fn run(&self, ask: SubagentAsk) -> impl Future<Output = SubagentReport> + Send;

    /// Whether it gives the work to [`ToolCx::children`] when there is one, as
    /// [`Tool::delegates`](harness_core::tool::Tool::delegates) describes. Default false: it runs the sub-agent itself.
    fn delegates(&self) -> bool {
        false
    }
}

harness_core::twin! {
    DynSubagentRunner of SubagentRunner {
        async fn run_boxed = run(ask: SubagentAsk) -> SubagentReport;
        fn delegates_dyn = delegates() -> bool;
    }
}

/// Names of the tools that delegate work. Sub-agents do not get them.
pub const SUBAGENT_TOOLS: [&str; 7] = [
    "task",
    "background_agents_start_task",
    "background_agents_wait_for_first_completion",
    "background_agents_get_task_results",
    "background_agents_get_all_tasks",
    "background_agents_continue_task",
    "background_agents_clear_completed_task",
];

/// Slot for a runner that is set later, because the tools of a registry file exist before the model.
/// Clones share the slot. Until it is filled, every sub-agent fails.
///
/// The runner must apply the gates of the caller.
#[derive(Clone, Default)]
pub struct RunnerSlot(Arc<Mutex<Option<Arc<dyn DynSubagentRunner>>>>);

impl std::fmt::Debug for RunnerSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunnerSlot").field(&self.get().is_some()).finish()
    }
}

impl RunnerSlot {
    /// Creates an empty slot.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the runner, replacing an earlier one.
    pub fn fill(&self, runner: Arc<dyn DynSubagentRunner>) {
        *self.0.lock() = Some(runner);
    }

    fn get(&self) -> Option<Arc<dyn DynSubagentRunner>> {
        self.0.lock().clone()
    }
}

impl SubagentRunner for RunnerSlot {
    fn delegates(&self) -> bool {
        self.get().is_some_and(|runner| runner.delegates_dyn())
    }

    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        match self.get() {
            Some(runner) => runner.run_boxed(ask).await,
            None => SubagentReport::failed(
                SubagentCode::SubagentError,
                "no runner for sub-agents is configured",
                0,
            ),
        }
    }
}

/// The tool `task`: delegates work to a sub-agent and waits for its answer.
///
/// Invalid arguments are `invalid_input`. An error of the sub-agent is a success with
/// `{"ok": false, "error": {"message", "code"}, …}`, so the turn continues. Answers are cut at 64 KiB.
/// Calls may run in parallel and share no state.
///
/// A sub-agent spends the budget of its caller: up to its own limits, and at most half of the remaining
/// budget at its start ([`share`](Self::share)). Its actual usage is charged to the caller. A sub-agent
/// cannot start further sub-agents unless [`max_depth`](Self::max_depth) allows it.
#[derive(Clone)]
pub struct SubagentTool {
    def: ToolDef,
    subagents: Arc<[Arc<Subagent>]>,
    runner: Arc<dyn DynSubagentRunner>,
    max_depth: u32,
}

impl std::fmt::Debug for SubagentTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubagentTool").field("subagents", &self.subagents).finish_non_exhaustive()
    }
}

impl SubagentTool {
    /// Creates the tool; `None` without sub-agents. Of two with the same name the later one is used.
    pub fn new(
        subagents: impl IntoIterator<Item = Subagent>,
        runner: Arc<dyn DynSubagentRunner>,
    ) -> Option<Self> {
        let all = distinct(subagents);
        (!all.is_empty()).then(|| Self { def: def(&all), subagents: all.into(), runner, max_depth: 1 })
    }

    /// Sets the maximum nesting of sub-agents. Default 1; 0 allows none.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// Declares that the runner asks the caller's gates before each call of a sub-agent. Delegating then has
    /// no effects itself, and is allowed in read-only modes.
    #[must_use]
    pub fn gated(mut self) -> Self {
        self.def.internal = true;
        self
    }

    /// Sets the maximum budget of one call, which several calls in parallel share. Default: the largest
    /// limits of the sub-agents.
    #[must_use]
    pub fn share(mut self, share: Amount) -> Self {
        self.def.share = share;
        self
    }

    /// The tool as a set, which is empty for `None`.
    pub fn set_of(tool: Option<Self>) -> ToolSet {
        ToolSet::new(tool.map(|tool| Arc::new(tool) as Arc<dyn DynTool>))
    }

    /// Task and name of the sub-agent.
    fn ask(arguments: &Json) -> Result<(String, String), Refused> {
        let arguments = Arguments::of(arguments)?;
        let description = checked::filled("description", arguments.get("description"))?;
        let name = checked::text("subagent_type", arguments.get("subagent_type"))?;
        Ok((description.to_owned(), name.to_owned()))
    }
}

fn def(subagents: &[Arc<Subagent>]) -> ToolDef {
    let names: Vec<&str> = subagents.iter().map(|subagent| &*subagent.name).collect();
    let mut text = "Delegates work to another agent, which knows only this description, and waits for its \
                    answer. Available agents:"
        .to_owned();
    for subagent in subagents {
        text.extend(["\n- ", &subagent.name, ": ", &subagent.description]);
    }
    let config = "Detailed brief for the subagent: full context, what to do, expected output format. Phrase as \
                 if to a fresh assistant.";
    let schema = json!({
        "type": "object",
        "required": ["description", "subagent_type"],
        "properties": {
            "description": { "type": "string", "minLength": 1, "description": config },
            "subagent_type": { "type": "string", "enum": names, "description": "Which subagent to invoke." },
        },
    });
    let mut def = ToolDef::new("task", text).with_schema(schema.into());
    def.share = most(subagents);
    def
}

#[derive(Serialize)]
struct SubagentAnswer<'r> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<AnswerError<'r>>,
    iterations: u32,
    subagent: &'r str,
}

#[derive(Serialize)]
struct AnswerError<'r> {
    message: &'r str,
    code: SubagentCode,
}

/// The answer, cut to its maximum size.
pub(crate) fn shown(answer: &str) -> Cow<'_, str> {
    if answer.len() <= MOST_OUTPUT {
        return answer.into();
    }
    let kept = answer.split_at(answer.floor_char_boundary(MOST_OUTPUT)).0;
    format!("{kept}\n[... {} bytes left out ...]", answer.len() - kept.len()).into()
}

fn outcome_of(name: &str, report: &SubagentReport) -> ToolOutcome {
    let output = report.answer.as_deref().ok().map(shown);
    let output = output.as_deref();
    let error = report.answer.as_ref().err();
    let error = error.map(|fault| AnswerError { message: &fault.message, code: fault.code });
    let iterations = report.iterations;
    let mut outcome =
        answered(&SubagentAnswer { ok: error.is_none(), output, error, iterations, subagent: name });
    outcome.spent = report.spent;
    outcome.usage.clone_from(&report.usage);
    if report.approvals.is_empty() { outcome } else { outcome.waiting_for(report.approvals.iter().cloned()) }
}

/// Error of a sub-agent that may not start further sub-agents.
pub(crate) fn too_deep(most: u32) -> SubagentReport {
    let message = match most {
        1 => "sub-agents cannot delegate: do the work yourself".to_owned(),
        _ => format!("work is delegated at most {most} times: do it yourself"),
    };
    SubagentReport::failed(SubagentCode::DepthReached, message, 0)
}

impl Tool for SubagentTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        Self::ask(arguments).map(|_| ()).map_err(Into::into)
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        let is_known = |name: &str| self.subagents.iter().any(|subagent| subagent.name == name);
        let is_asked = Self::ask(&call.arguments).is_ok_and(|(_, name)| is_known(&name));
        is_asked && origin.depth() < self.max_depth && self.runner.delegates_dyn()
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let (description, name) = match Self::ask(&cx.call.arguments) {
            Ok(asked) => asked,
            Err(refused) => return refused.outcome(),
        };
        let Some(subagent) = self.subagents.iter().find(|subagent| subagent.name == name) else {
            let message = format!("Unknown subagent: {name}");
            return outcome_of(&name, &SubagentReport::failed(SubagentCode::UnknownSubagent, message, 0));
        };
        if cx.origin.depth() >= self.max_depth {
            return outcome_of(&name, &too_deep(self.max_depth));
        }
        let ask = SubagentAsk::new(Arc::clone(subagent), description, cx);
        outcome_of(&name, &self.runner.run_boxed(ask).await)
    }
}
