//! Tools: definitions, calls and results.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::limits::Amount;
//! use harness_core::message::{Block, ToolCall};
//! use harness_core::port::Clock;
//! use harness_core::tool::{
//!     ArgumentFault, DynTool, FnTool, IntoToolOutcome, Ongoing, RetryClass, SchemaValidator, SettledGrant,
//!     ShallowSchemas, Structured, Timed, Tool, ToolCx, ToolDef, ToolError, ToolKind, ToolOutcome, ToolStatus,
//!     Toolbox, Updates, tool_fn,
//! };
//! use harness_core::{Json, Millis};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Weather {
//!     city: String,
//! }
//!
//! async fn forecast(args: Weather, cx: ToolCx) -> Result<String, ToolError> {
//!     cx.emit(vec![Block::text("calling the station")]);
//!     if args.city == "Atlantis" {
//!         return Err(ToolError::new("busy", "the station is busy").retryable());
//!     }
//!     Ok(format!("4 °C in {}", args.city))
//! }
//!
//! let weather: FnTool<Weather, _> = tool_fn("weather", "Reports the weather of a city", forecast).pure();
//! assert_eq!(weather.def().class, RetryClass::Pure);
//! let tools = Toolbox::new([Arc::new(weather) as Arc<dyn DynTool>]);
//! assert_eq!(tools.defs().len(), 1);
//!
//! fn bounded(slow: Arc<dyn DynTool>, clock: Arc<dyn Clock>) -> Timed {
//!     Timed::new(slow, Millis(5_000), clock)
//! }
//!
//! let handoff = ToolDef::handoff("to_billing", "Answers questions about bills", "billing".into());
//! assert_eq!(handoff.kind, ToolKind::Handoff("billing".into()));
//!
//! // Results: data, errors, and the end of work that an earlier call started.
//! assert_eq!(Structured([1, 2]).into_tool_outcome().structured.map(|json| json.to_string()).as_deref(), Some("[1,2]"));
//! assert!(ToolOutcome::with_error(ToolStatus::Timeout, "late", "no response in time").is_error());
//! let mut outcome = ToolOutcome::text("the report is written");
//! let mut ongoing = Ongoing::default();
//! ongoing.settled.push(SettledGrant { call: "c1".into(), spent: Amount::NONE });
//! outcome.ongoing = Some(Box::new(ongoing));
//!
//! let schema = json!({ "type": "object", "required": ["city"] });
//! assert!(ShallowSchemas.check(&schema, &json!({ "city": "Oslo" })).is_ok());
//! assert_eq!(ArgumentFault::new("cents", "at most 500").path, "cents");
//!
//! let mut cx = ToolCx::for_call(Arc::new(ToolCall::new("c1", "search", Json::empty_object())));
//! cx.updates = Updates::default();
//! # let _ = bounded;
//! ```

mod children;
mod coerce;
mod convert;
mod function;
mod outcome;
mod registry;
mod schema;
mod timed;

pub use children::{Child, ChildFuture, Children};
pub use coerce::coerced;
pub use convert::{IntoToolOutcome, Structured};
pub use function::{FnTool, schema_of, tool_fn};
pub use outcome::{Ongoing, SettledGrant, ToolError, ToolOutcome, ToolStatus};
pub use registry::{DynToolRegistry, ToolRegistry, ToolScope, Toolbox};
pub use schema::{SchemaValidator, ShallowSchemas};
pub use timed::Timed;

use std::fmt;
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

crate::wire_enum! {
    /// Rule for repeating a call that started and has no result (law 5).
    #[derive(Default)]
    pub enum RetryClass {
        /// No effects: may be repeated freely.
        Pure = "pure",
        /// Repeats with the same [`ToolCx::idempotency_key`] have their effects once.
        Idempotent = "idempotent",
        /// Must not run twice.
        #[default]
        Unsafe = "unsafe",
    }
}

/// Kind of a tool definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// Tool that is executed.
    #[default]
    Function,
    /// Handoff to another agent, performed by the turn.
    Handoff(AgentId),
}

/// Definition of a tool: for the model, and for the turn. A clone is cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolDef {
    /// Name that the model calls.
    pub name: ToolName,
    /// Description for the model.
    pub description: Arc<str>,
    /// JSON Schema of the arguments; `None` accepts any object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// Function or handoff.
    #[serde(default)]
    pub kind: ToolKind,
    /// Rule for repeating calls. Default `unsafe`.
    #[serde(default)]
    pub class: RetryClass,
    /// Whether calls run alone in their batch. Default false.
    #[serde(default)]
    pub sequential: bool,
    /// Whether the tool is polled: equal results of equal calls are not a loop. Default false.
    #[serde(default)]
    pub polling: bool,
    /// Whether the tool changes only its own state (a list, notes, a mode), nothing outside of the thread, so that it
    /// is allowed in read-only modes. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
    /// Whether a successful result ends the turn after its batch. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Whether each call needs approval. Default false.
    #[serde(default)]
    pub requires_approval: bool,
    /// Maximum further usage of a call (a sub-agent). A call gets at most half of what is left of each resource, and does
    /// not run if nothing is left. Default nothing.
    #[serde(default)]
    pub share: Amount,
    /// Caller data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolDef {
    /// Creates a function without a schema, of class `unsafe`.
    pub fn new(name: impl Into<ToolName>, description: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    /// Creates a handoff to `agent`. It accepts any object.
    pub fn handoff(name: impl Into<ToolName>, description: impl Into<Arc<str>>, agent: AgentId) -> Self {
        Self { kind: ToolKind::Handoff(agent), class: RetryClass::Pure, ..Self::new(name, description) }
    }

    /// Sets the argument schema.
    #[must_use]
    pub fn with_schema(mut self, schema: Json) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Whether a call may change something outside of the thread: a function that is neither `pure` nor
    /// [`internal`](Self::internal).
    pub fn mutates(&self) -> bool {
        self.class != RetryClass::Pure && !self.internal && self.kind == ToolKind::Function
    }

    /// Sets the retry class.
    #[must_use]
    pub fn with_class(mut self, class: RetryClass) -> Self {
        self.class = class;
        self
    }
}

/// Receives progress reports of running calls, for users, never for the model. Must not block.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::{Block, ToolCall};
/// use harness_core::tool::ToolUpdates;
///
/// struct Print;
///
/// impl ToolUpdates for Print {
///     fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
///         for text in content.iter().filter_map(Block::as_text) {
///             println!("{}: {text}", call.name);
///         }
///     }
/// }
/// ```
pub trait ToolUpdates: Send + Sync {
    /// Receives one report of a call, with the arguments in use. Reports after the end of the call are to be ignored.
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>);
}

/// Sink of progress reports; the default drops them.
#[derive(Clone, Default)]
pub struct Updates(Option<Arc<dyn ToolUpdates>>);

impl Updates {
    /// Creates a sink that passes reports to `receiver`.
    pub(crate) fn to(receiver: Option<Arc<dyn ToolUpdates>>) -> Self {
        Self(receiver)
    }

    fn emit(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        if let Some(receiver) = &self.0 {
            receiver.update(call, content);
        }
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Updates").field(&self.0.is_some()).finish()
    }
}

/// Context of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCx {
    /// Call, with the arguments to use.
    pub call: Arc<ToolCall>,
    /// Origin of the turn.
    pub origin: Arc<Origin>,
    /// Calling agent.
    pub agent: AgentId,
    /// Iteration, starting at 1.
    pub iteration: u32,
    /// Position of the message with the call in the transcript.
    pub message: u64,
    /// Index of the call in its batch, starting at 0.
    pub index: u32,
    /// Attempt, starting at 1.
    pub attempt: u32,
    /// Time after which the result is ignored.
    pub deadline: Option<Time>,
    /// Budget of the call for further usage.
    pub grant: Grant,
    /// Fires when the call is cancelled: stop, and return what is done so far.
    pub cancel: Cancel,
    /// Sink of progress reports; see [`ToolCx::emit`].
    pub updates: Updates,
    /// Ledger for model calls of the tool.
    pub ledger: Ledger,
    /// Host parameters: data of the application for its tools, such as a region. The model does not see them. Default `{}`.
    ///
    /// ```
    /// use harness_core::tool::{Tool, ToolCx, ToolOutcome, ToolDef};
    ///
    /// struct Where(ToolDef);
    ///
    /// impl Tool for Where {
    ///     fn def(&self) -> &ToolDef {
    ///         &self.0
    ///     }
    ///
    ///     async fn call(&self, cx: ToolCx) -> ToolOutcome {
    ///         #[derive(serde::Deserialize)]
    ///         struct Settings {
    ///             region: String,
    ///         }
    ///         match cx.params.to::<Settings>() {
    ///             Ok(settings) => ToolOutcome::text(settings.region),
    ///             Err(error) => ToolOutcome::error("params", error.to_string()),
    ///         }
    ///     }
    /// }
    /// ```
    pub params: Json,
    /// Runs the child of the call elsewhere; `None` if the tool runs it itself.
    pub children: Option<Arc<dyn Children>>,
}

impl ToolCx {
    /// Creates a context for tests and direct use: first attempt, no deadline, no grant.
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
            params: Json::empty_object(),
            children: None,
        }
    }

    /// Reports progress to the user. The model does not receive it.
    pub fn emit(&self, update: Vec<Block>) {
        self.updates.emit(&self.call, update);
    }

    /// Returns `THREAD/SESSION/MESSAGE/INDEX/CALL`: unique for the call, and equal for all its attempts, even after a
    /// restart if the session has a name. Without a session, the run's id takes its place.
    pub fn idempotency_key(&self) -> String {
        let thread = self.origin.thread.as_ref().map_or("-", |id| id.as_str());
        let run = self.origin.run.as_ref().map_or("-", |id| id.as_str());
        let session = self.origin.session.as_ref().map_or(run, |id| id.as_str());
        format!("{thread}/{session}/{}/{}/{}", self.message, self.index, self.call.id)
    }
}

/// Invalid arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub struct ArgumentFault {
    /// Path of the invalid field (`items[2].price`); empty for the whole.
    pub path: String,
    /// Problem and expected value.
    pub problem: String,
}

impl ArgumentFault {
    /// Creates the error of a field.
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

/// Tool that a model can call.
///
/// Most tools are made with [`tool_fn`].
///
/// ```
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "make one from a function with `tool_fn(name, description, |args: Args, cx| async move {{ .. }})`"
)]
pub trait Tool: Send + Sync {
    /// Returns the definition; it must not change while the tool is offered.
    fn def(&self) -> &ToolDef;

    /// Validates arguments before gates and approvers see them. Default: accepts all.
    ///
    /// Calls without a gate or an approver skip this: [`Tool::call`] validates its arguments, too.
    ///
    /// # Errors
    /// The invalid field and the expected value, for the model.
    fn check(&self, _arguments: &Json) -> Result<(), ArgumentFault> {
        Ok(())
    }

    /// Whether this call hands all of its work to one child. A durable driver runs such a child as a separate thread, and
    /// calls the tool several times: to learn the child, on any machine, and for the result. So the call passes its child
    /// to [`ToolCx::children`] when it is first polled and before any effect, equal calls pass equal children, and what
    /// follows has no effect, either. Default false: the call is performed as a whole. A wrapper of a tool answers for it
    /// only if all of this holds with the wrapper, too.
    fn delegates(&self, _call: &ToolCall, _origin: &Origin) -> bool {
        false
    }

    /// Runs one attempt. A panic becomes an error result.
    ///
    /// # Cancel safety
    /// The future is dropped when the turn gives up on the call. Before that `cx.cancel` fires, and a result within the
    /// grace period still counts.
    fn call(&self, cx: ToolCx) -> impl Future<Output = ToolOutcome> + Send;
}

twin! {
    DynTool of Tool {
        async fn call_boxed = call(cx: ToolCx) -> ToolOutcome;
        fn tool_def = def() -> &ToolDef;
        fn check_dyn = check(arguments: &Json) -> Result<(), ArgumentFault>;
        fn delegates_dyn = delegates(call: &ToolCall, origin: &Origin) -> bool;
    }
}
