//! Work that is given to another agent.

use std::sync::Arc;

use harness_core::Json;
use harness_core::limits::Amount;
use harness_core::message::Usage;
use harness_core::port::{ArgumentFault, BoxFuture, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use serde::Serialize;
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
    /// How many iterations it may take. Default 8.
    pub max_iterations: u32,
}

impl Subagent {
    /// An agent with instructions, all tools and eight iterations.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            instructions: instructions.into(),
            tools: None,
            max_iterations: 8,
        }
    }
}

/// What a sub-agent is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubagentAsk {
    /// Which one.
    pub subagent: Arc<Subagent>,
    /// What it is to do; all that it is told.
    pub description: String,
    /// The call: whose turn it is, what may be spent ([`ToolCx::grant`]), until when, and the signal to stop.
    pub cx: ToolCx,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentFault {
    /// What kind of failure it is.
    pub code: SubagentCode,
    /// What happened, for the model.
    pub message: String,
}

/// The kinds of failures of a sub-agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// The object-safe twin of [`SubagentRunner`].
pub trait DynSubagentRunner: Send + Sync {
    /// [`SubagentRunner::run`], boxed.
    fn run_boxed(&self, ask: SubagentAsk) -> BoxFuture<'_, SubagentReport>;
}

impl<R: SubagentRunner> DynSubagentRunner for R {
    fn run_boxed(&self, ask: SubagentAsk) -> BoxFuture<'_, SubagentReport> {
        Box::pin(self.run(ask))
    }
}

/// The tool `task` of source 001: gives work to a sub-agent and waits for its answer.
///
/// Wrong arguments are `invalid_input`; whatever happens to the sub-agent is a success with
/// `{"ok": false, "error": {"message", "code"}, …}`, so that the turn goes on. Of an answer 64 KiB are
/// passed on. Nothing is kept between calls. The tool may run beside others.
#[derive(Clone)]
pub struct SubagentTool {
    def: ToolDef,
    subagents: Arc<[Arc<Subagent>]>,
    runner: Arc<dyn DynSubagentRunner>,
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
        let mut all: Vec<Arc<Subagent>> = Vec::new();
        for subagent in subagents {
            match all.iter_mut().find(|known| known.name == subagent.name) {
                Some(known) => *known = Arc::new(subagent),
                None => all.push(Arc::new(subagent)),
            }
        }
        (!all.is_empty()).then(|| Self { def: def(&all), subagents: all.into(), runner })
    }

    /// The same tool, one call of which may spend so much beyond itself. Default nothing.
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
    let brief = "Detailed brief for the subagent: full context, what to do, expected output format. Phrase as \
                 if to a fresh assistant.";
    let schema = json!({
        "type": "object",
        "required": ["description", "subagent_type"],
        "properties": {
            "description": { "type": "string", "minLength": 1, "description": brief },
            "subagent_type": { "type": "string", "enum": names, "description": "Which subagent to invoke." },
        },
    });
    ToolDef::new("task", text).with_schema(Json::of(&schema).unwrap_or_default())
}

#[derive(Serialize)]
struct Told<'r> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToldError<'r>>,
    iterations: u32,
    subagent: &'r str,
}

#[derive(Serialize)]
struct ToldError<'r> {
    message: &'r str,
    code: SubagentCode,
}

fn told(name: &str, report: &SubagentReport) -> ToolOutcome {
    let shown: String;
    let output = match &report.answer {
        Ok(answer) if answer.len() > MOST_OUTPUT => {
            let kept = answer.split_at(answer.floor_char_boundary(MOST_OUTPUT)).0;
            shown = format!("{kept}\n[... {} bytes left out ...]", answer.len() - kept.len());
            Some(&*shown)
        }
        Ok(answer) => Some(&**answer),
        Err(_) => None,
    };
    let error = report.answer.as_ref().err();
    let error = error.map(|fault| ToldError { message: &fault.message, code: fault.code });
    let iterations = report.iterations;
    let mut outcome = answered(&Told { ok: error.is_none(), output, error, iterations, subagent: name });
    outcome.spent = report.spent;
    outcome.usage.clone_from(&report.usage);
    outcome
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
        let ask = SubagentAsk { subagent: Arc::clone(subagent), description, cx };
        told(&name, &self.runner.run_boxed(ask).await)
    }
}
