//! Tools: what they are, how one is called, and what came of it.

mod coerce;
mod convert;
mod declares;
mod function;
mod outcome;
mod raw;
mod registry;
mod schema;
mod timed;
mod updates;

pub use coerce::coerced;
pub use convert::{IntoToolOutcome, Structured};
pub use function::{FnTool, schema_of, tool_fn};
pub use outcome::{Ongoing, SettledGrant, ToolError, ToolOutcome, ToolStatus};
pub use raw::RawTool;
pub use registry::{DynToolRegistry, ToolRegistry, ToolScope, Toolbox};
pub use schema::{SchemaValidator, ShallowSchemas};
pub use timed::Timed;
pub use updates::{ToolUpdates, Updates};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::ids::{AgentId, ToolName};
use crate::json::Json;
use crate::limits::{Amount, Grant};
use crate::message::{Block, ToolCall};
use crate::origin::Origin;
use crate::outcome::Purpose;
use crate::outcome::ledger::Ledger;
use crate::time::Time;
use crate::twin;

/// What a restart may do with a call that had started and not finished (law 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// Running it again changes nothing: it may be repeated freely.
    Pure,
    /// It has effects, but repeats with the same [`ToolCx::idempotency_key`] have them once.
    Idempotent,
    /// It must not run twice. The default.
    #[default]
    Unsafe,
}

impl RetryClass {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Unsafe => "unsafe",
        }
    }
}

/// What a tool definition stands for.
///
/// ```
/// use harness_core::tool::{ToolDef, ToolKind};
///
/// let handoff = ToolDef::handoff("to_billing", "For bills", "billing".into());
/// assert_eq!(handoff.kind, ToolKind::Handoff("billing".into()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// A tool that is executed.
    #[default]
    Function,
    /// A move to another agent; performed by the turn itself.
    Handoff(AgentId),
}

/// A tool as a model is told of it, and how the turn treats it. Cloning it is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolDef {
    /// The name that the model calls.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments; `None` sends an open object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// A function or a handoff.
    #[serde(default)]
    pub kind: ToolKind,
    /// What a restart may do with it. Default `unsafe`.
    #[serde(default)]
    pub class: RetryClass,
    /// Whether it demands to run alone in its batch. Default false.
    #[serde(default)]
    pub sequential: bool,
    /// Whether it is meant to be called again and again with equal arguments until its result changes:
    /// equal results of it are no loop. Default false.
    #[serde(default)]
    pub polling: bool,
    /// Whether all that it changes is a state of its own (a list, notes, a mode): nothing outside of the
    /// conversation is touched, so it may be called where only looking around is allowed. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
    /// Whether a good result of it ends the turn after its batch, whatever else is in the batch. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Whether each call waits for approval. Default false.
    #[serde(default)]
    pub requires_approval: bool,
    /// What one call may spend beyond itself at most (a sub-agent). Of each kind it gets no more than half of
    /// what is left when it begins, and it does not run when nothing is. Default nothing.
    #[serde(default)]
    pub share: Amount,
    /// The caller's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolDef {
    /// A function without a schema, of class `unsafe`.
    pub fn new(name: impl Into<ToolName>, description: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: None,
            kind: ToolKind::Function,
            class: RetryClass::Unsafe,
            sequential: false,
            polling: false,
            internal: false,
            terminal: false,
            requires_approval: false,
            share: Amount::NONE,
            metadata: None,
        }
    }

    /// A handoff to `agent`. It takes any object and has no effects of its own.
    pub fn handoff(name: impl Into<ToolName>, description: impl Into<Arc<str>>, agent: AgentId) -> Self {
        Self { kind: ToolKind::Handoff(agent), class: RetryClass::Pure, ..Self::new(name, description) }
    }

    /// The same definition with an argument schema.
    #[must_use]
    pub fn with_schema(mut self, schema: Json) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Whether a call may change something outside of the conversation: its class is not `pure`, it is not
    /// [`internal`](Self::internal), and it is no handoff.
    pub fn mutates(&self) -> bool {
        self.class != RetryClass::Pure && !self.internal && self.kind == ToolKind::Function
    }

    /// The same definition of a tool that changes only a state of its own.
    #[must_use]
    pub fn into_internal(mut self) -> Self {
        self.internal = true;
        self
    }

    /// The same definition with another retry class.
    #[must_use]
    pub fn with_class(mut self, class: RetryClass) -> Self {
        self.class = class;
        self
    }
}

/// Everything a tool gets with a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCx {
    /// The call, with the arguments to use.
    pub call: Arc<ToolCall>,
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// The agent that asked.
    pub agent: AgentId,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The position of the message that asks for the call, in the transcript.
    pub message: u64,
    /// The call's place in its batch, from 0.
    pub index: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// When the result is of no use any more.
    pub deadline: Option<Time>,
    /// What the call may spend beyond itself.
    pub grant: Grant,
    /// Fires when the result is not wanted any more: stop, and answer with what there is.
    pub cancel: Cancel,
    /// Who hears how far the call is; see [`ToolCx::emit`].
    pub updates: Updates,
    /// Where model calls of the tool itself are reserved and settled.
    pub ledger: Ledger,
}

impl ToolCx {
    /// A context for tests and for direct use of a tool: first attempt, no deadline, no share.
    pub fn for_call(call: Arc<ToolCall>) -> Self {
        Self {
            call,
            origin: Arc::default(),
            agent: "main".into(),
            iteration: 1,
            message: 0,
            index: 0,
            attempt: 1,
            deadline: None,
            grant: Grant::default(),
            cancel: Cancel::never(),
            updates: Updates::default(),
            ledger: Ledger::unlimited(Purpose::Child),
        }
    }

    /// Tells whoever listens how far the call is. The model never sees it.
    pub fn emit(&self, update: Vec<Block>) {
        self.updates.emit(&self.call, update);
    }

    /// `THREAD/SESSION/MESSAGE/INDEX/CALL`: equal on every attempt of this call and, in a session with a name,
    /// after every restart; different for every other call. Without a session nothing survives a restart, and
    /// the run's id stands in the session's place.
    pub fn idempotency_key(&self) -> String {
        let thread = self.origin.thread.as_ref().map_or("-", |id| id.as_str());
        let run = self.origin.run.as_ref().map_or("-", |id| id.as_str());
        let session = self.origin.session.as_ref().map_or(run, |id| id.as_str());
        format!("{thread}/{session}/{}/{}/{}", self.message, self.index, self.call.id)
    }
}

/// Why arguments do not fit a tool.
///
/// ```
/// use harness_core::tool::ArgumentFault;
///
/// let fault = ArgumentFault::new("/cents", "at most 500");
/// assert_eq!((fault.path.as_str(), fault.problem.as_str()), ("/cents", "at most 500"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub struct ArgumentFault {
    /// The wrong field as a path (`items[2].price`); empty for the whole.
    pub path: String,
    /// What is wrong with it and what was expected.
    pub problem: String,
}

impl ArgumentFault {
    /// A wrong field and what was expected.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }

    fn sentence(&self) -> String {
        if self.path.is_empty() || self.path == "." {
            return format!("the arguments are wrong: {}", self.problem);
        }
        format!("argument `{}` is wrong: {}", self.path, self.problem)
    }
}

/// A tool: something a model can call.
///
/// Most tools are made with [`tool_fn`]; implement the trait for a tool whose schema is not a Rust type.
///
/// ```
/// use harness_core::Json;
/// use harness_core::tool::{RetryClass, Tool, ToolCx, ToolDef, ToolOutcome};
///
/// struct Dice(ToolDef);
///
/// impl Tool for Dice {
///     fn def(&self) -> &ToolDef {
///         &self.0
///     }
///
///     async fn call(&self, _: ToolCx) -> ToolOutcome {
///         ToolOutcome::text("4")
///     }
/// }
///
/// let dice = Dice(ToolDef::new("dice", "Rolls a die").with_class(RetryClass::Pure));
/// # let _ = dice;
/// ```
///
/// A panic becomes an error result. The future is dropped when the turn gives up on the call; before
/// that `cx.cancel` fires, and an answer given within the grace period is still used.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "make one from a function with `tool_fn(name, description, |args: Args, cx| async move {{ .. }})`"
)]
pub trait Tool: Send + Sync {
    /// The definition; must not change while the tool is offered.
    fn def(&self) -> &ToolDef;

    /// Checks arguments before a gate or an approver sees them. The default accepts all.
    ///
    /// A call that no gate or approver decides about runs without this check: [`Tool::call`] checks its arguments, too.
    ///
    /// # Errors
    /// The wrong field and what was expected; the model reads it.
    fn check(&self, _arguments: &Json) -> Result<(), ArgumentFault> {
        Ok(())
    }

    /// Runs one attempt.
    fn call(&self, cx: ToolCx) -> impl Future<Output = ToolOutcome> + Send;
}

twin! {
    DynTool of Tool {
        async fn call_boxed = call(cx: ToolCx) -> ToolOutcome;
        fn tool_def = def() -> &ToolDef;
        fn check_dyn = check(arguments: &Json) -> Result<(), ArgumentFault>;
    }
}
