//! Work that is given to another agent.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::Json;
use harness_core::limits::{Amount, Limits};
use harness_core::message::{Cost, Usage};
use harness_core::tool::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::{Arguments, Refused, checked};
use crate::exact::answered;
use crate::tool_set::ToolSet;

/// The most bytes of a sub-agent's answer that are passed on: 64 KiB.
const MOST_OUTPUT: usize = 64 * 1024;

/// An agent that work can be given to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// Its name, by which a model chooses it.
    pub name: String,
    /// What it is good for, for the model.
    pub description: String,
    /// Its instructions.
    pub instructions: String,
    /// The tools that it may use; `None` is all that its runner has.
    pub tools: Option<Vec<String>>,
    /// How many turns it may take. Default 1; more are taken only where its runner has checks of the end that ask
    /// for them.
    pub max_turns: u32,
    /// How many iterations it may take. Default 8.
    pub max_iterations: u32,
    /// How many tool calls it may make. Default 128.
    pub max_tool_calls: u32,
    /// How many tokens it may use. Default 4 million.
    pub max_tokens: u64,
    /// How much money it may spend, where that is known. Default 20 units.
    pub max_cost: Cost,
}

impl Subagent {
    /// An agent with instructions, all tools and the default limits.
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

    /// What it may spend at most in one call, if that is left.
    pub fn limits(&self) -> Amount {
        let mut limits = Amount::NONE;
        (limits.iterations, limits.tool_calls) = (self.max_iterations, self.max_tool_calls);
        (limits.tokens, limits.cost) = (self.max_tokens, self.max_cost);
        limits
    }
}

/// The most that any of some agents may spend in one call.
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

/// Sub-agents by name, in the order in which they were first given; of two with one name the later counts.
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

/// What a sub-agent is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubagentAsk {
    /// Which one.
    pub subagent: Arc<Subagent>,
    /// What it is to do; with what was said before, all that it is told.
    pub description: String,
    /// What it was asked and answered before, when it goes on; otherwise nothing.
    pub earlier: Vec<Exchange>,
    /// The call: whose turn it is, what may be spent ([`ToolCx::grant`]), until when, and the signal to stop.
    pub cx: ToolCx,
}

impl SubagentAsk {
    /// Asks a sub-agent that knows of nothing before.
    pub fn new(subagent: Arc<Subagent>, description: impl Into<String>, cx: ToolCx) -> Self {
        Self { subagent, description: description.into(), earlier: Vec::new(), cx }
    }
}

/// Something that a sub-agent was asked, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// What it was asked.
    pub asked: String,
    /// What it answered.
    pub answered: String,
}

impl Exchange {
    /// A question and its answer.
    pub fn new(asked: impl Into<String>, answered: impl Into<String>) -> Self {
        Self { asked: asked.into(), answered: answered.into() }
    }
}

/// What a sub-agent did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentReport {
    /// Its answer, or why there is none.
    pub answer: Result<String, SubagentFault>,
    /// How many iterations it took.
    pub iterations: u32,
    /// What it spent of the call's grant, also when it failed.
    pub spent: Amount,
    /// What it used, for the turn's totals.
    pub usage: Option<Arc<Usage>>,
}

impl SubagentReport {
    /// An answer after so many iterations.
    pub fn answered(answer: impl Into<String>, iterations: u32) -> Self {
        Self { answer: Ok(answer.into()), iterations, spent: Amount::NONE, usage: None }
    }

    /// A failure after so many iterations.
    pub fn failed(code: SubagentCode, message: impl Into<String>, iterations: u32) -> Self {
        let fault = SubagentFault { code, message: message.into() };
        Self { answer: Err(fault), iterations, spent: Amount::NONE, usage: None }
    }
}

/// Why a sub-agent has no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentFault {
    /// What kind of failure it is.
    pub code: SubagentCode,
    /// What happened, for the model.
    pub message: String,
}

/// The kinds of failures of a sub-agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubagentCode {
    /// It was stopped.
    Aborted,
    /// It did not come to an end within its iterations.
    MaxIterations,
    /// Its answers could not be used.
    InvalidOutput,
    /// There is none of that name.
    UnknownSubagent,
    /// A sub-agent asked for one, deeper than that is allowed.
    DepthReached,
    /// Anything else.
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
    /// Runs one to its end. It draws on the call's grant and stops when `ask.cx.cancel` fires; dropping the
    /// future gives it up.
    fn run(&self, ask: SubagentAsk) -> impl Future<Output = SubagentReport> + Send;
}

harness_core::twin! {
    DynSubagentRunner of SubagentRunner {
        async fn run_boxed = run(ask: SubagentAsk) -> SubagentReport;
    }
}

/// The names of the tools that give work to sub-agents: what a sub-agent is not offered.
pub const SUBAGENT_TOOLS: [&str; 7] = [
    "task",
    "background_agents_start_task",
    "background_agents_wait_for_first_completion",
    "background_agents_get_task_results",
    "background_agents_get_all_tasks",
    "background_agents_continue_task",
    "background_agents_clear_completed_task",
];

/// A place for a runner that comes later: the tools of a registry file are there before the model is.
/// Clones share the place; until it is filled, every sub-agent fails and says so.
///
/// Whoever fills it gives a runner that asks the gates of those who call the tools.
#[derive(Clone, Default)]
pub struct RunnerSlot(Arc<Mutex<Option<Arc<dyn DynSubagentRunner>>>>);

impl std::fmt::Debug for RunnerSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunnerSlot").field(&self.get().is_some()).finish()
    }
}

impl RunnerSlot {
    /// An empty place.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a runner there, in place of one that was there before.
    pub fn fill(&self, runner: Arc<dyn DynSubagentRunner>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(runner);
    }

    fn get(&self) -> Option<Arc<dyn DynSubagentRunner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SubagentRunner for RunnerSlot {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        match self.get() {
            Some(runner) => runner.run_boxed(ask).await,
            None => SubagentReport::failed(SubagentCode::SubagentError, "nothing here can run sub-agents", 0),
        }
    }
}

/// The tool `task`: gives work to a sub-agent and waits for its answer.
///
/// Wrong arguments are `invalid_input`; whatever happens to the sub-agent is a success with
/// `{"ok": false, "error": {"message", "code"}, …}`, so that the turn goes on. Of an answer 64 KiB are
/// passed on. Nothing is kept between calls. The tool may run beside others.
///
/// A sub-agent spends of its caller's budget: as much as its own limits allow, and at most half of what is
/// left when it begins ([`share`](Self::share)). What it really used counts for the caller, in its report, too. A sub-agent
/// cannot start another one, unless [`max_depth`](Self::max_depth) says otherwise.
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
    /// The tool for some sub-agents; of two with one name the later counts. `None` without any: there is
    /// nothing to offer then.
    pub fn new(
        subagents: impl IntoIterator<Item = Subagent>,
        runner: Arc<dyn DynSubagentRunner>,
    ) -> Option<Self> {
        let all = distinct(subagents);
        (!all.is_empty()).then(|| Self { def: def(&all), subagents: all.into(), runner, max_depth: 1 })
    }

    /// The same tool for sub-agents of sub-agents: so many calls may lie between an agent and work that a
    /// user asked for. Default 1; 0 lets nobody start one.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// Declares that the runner asks the gates of whoever calls the tool, before each call of a sub-agent: then
    /// giving work to one changes nothing in itself, and is allowed where only looking around is.
    #[must_use]
    pub fn gated(mut self) -> Self {
        self.def.internal = true;
        self
    }

    /// The same tool, one call of which may spend at most so much beyond itself: what several calls that run
    /// at once are to share. Default the most that any of the sub-agents may.
    #[must_use]
    pub fn share(mut self, share: Amount) -> Self {
        self.def.share = share;
        self
    }

    /// The tool as a set; an empty one without the tool.
    pub fn set_of(tool: Option<Self>) -> ToolSet {
        ToolSet::new(tool.map(|tool| Arc::new(tool) as Arc<dyn DynTool>))
    }

    /// What is to be done, and by whom.
    fn ask(arguments: &Json) -> Result<(String, String), Refused> {
        let arguments = Arguments::of(arguments)?;
        let description = checked::filled("description", arguments.get("description"))?;
        let name = checked::text("subagent_type", arguments.get("subagent_type"))?;
        Ok((description.to_owned(), name.to_owned()))
    }
}

fn def(subagents: &[Arc<Subagent>]) -> ToolDef {
    let names: Vec<&str> = subagents.iter().map(|subagent| &*subagent.name).collect();
    let mut text =
        "Gives a piece of work to another agent, which knows only what it is told, and waits for its \
                    answer. There are:"
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

/// What is passed on of an answer.
pub(crate) fn shown(answer: &str) -> Cow<'_, str> {
    if answer.len() <= MOST_OUTPUT {
        return answer.into();
    }
    let kept = answer.split_at(answer.floor_char_boundary(MOST_OUTPUT)).0;
    format!("{kept}\n[... {} bytes left out ...]", answer.len() - kept.len()).into()
}

fn told(name: &str, report: &SubagentReport) -> ToolOutcome {
    let output = report.answer.as_deref().ok().map(shown);
    let output = output.as_deref();
    let error = report.answer.as_ref().err();
    let error = error.map(|fault| AnswerError { message: &fault.message, code: fault.code });
    let iterations = report.iterations;
    let mut outcome =
        answered(&SubagentAnswer { ok: error.is_none(), output, error, iterations, subagent: name });
    outcome.spent = report.spent;
    outcome.usage.clone_from(&report.usage);
    outcome
}

/// What a sub-agent is told that asks for another one.
pub(crate) fn too_deep(most: u32) -> SubagentReport {
    let message = match most {
        1 => "a sub-agent cannot give work to another one: do it yourself".to_owned(),
        _ => format!("work is given on {most} times at most: do it yourself"),
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

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let (description, name) = match Self::ask(&cx.call.arguments) {
            Ok(asked) => asked,
            Err(refused) => return refused.outcome(),
        };
        let Some(subagent) = self.subagents.iter().find(|subagent| subagent.name == name) else {
            let message = format!("Unknown subagent: {name}");
            return told(&name, &SubagentReport::failed(SubagentCode::UnknownSubagent, message, 0));
        };
        if cx.origin.depth() >= self.max_depth {
            return told(&name, &too_deep(self.max_depth));
        }
        let ask = SubagentAsk::new(Arc::clone(subagent), description, cx);
        told(&name, &self.runner.run_boxed(ask).await)
    }
}
