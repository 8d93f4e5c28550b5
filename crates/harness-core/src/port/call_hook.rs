//! Hooks behind calls and before the end of a run: the host's own code, asked by name.
//!
//! A hook is put to work by [`crate::hooks::Hooks`], which gives each its time limit and says what its
//! failure means.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, ToolOutcome};
use crate::cancel::Cancel;
use crate::ids::{CallId, GateName, ToolName};
use crate::machine::Origin;
use crate::message::ToolCall;
use crate::outcome::{End, Fault};
use crate::run::StopMode;
use crate::time::{Millis, Time};
use crate::transcript::Prefix;

/// A call that ran, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinishedCall {
    /// The call.
    pub call: Arc<ToolCall>,
    /// What came of it: a success or a failure.
    pub outcome: Arc<ToolOutcome>,
    /// Whose it was.
    pub origin: Arc<Origin>,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// The iteration.
    pub iteration: u32,
    /// How long it took, from the start of its first attempt.
    pub duration: Millis,
    /// When its result was there.
    pub at: Time,
}

/// Is shown every call that ran, whether it succeeded or failed.
///
/// It changes nothing, and nobody waits for it: a hook that is slow, hangs or fails delays and stops
/// nothing. Each hook sees the calls one after another, in the order of their results. One that is still at
/// work when its run ends may end in peace, but no event tells of it any more.
///
/// ```
/// use harness_core::port::{FinishedCall, PostToolHook};
/// use harness_core::{Fault, GateName};
///
/// struct Audit;
///
/// impl PostToolHook for Audit {
///     fn name(&self) -> GateName {
///         "audit".into()
///     }
///
///     async fn after(&self, done: &FinishedCall) -> Result<(), Fault> {
///         println!("{} {}", done.call.name, done.outcome.status.as_str());
///         Ok(())
///     }
/// }
/// # let _ = Audit;
/// ```
pub trait PostToolHook: Send + Sync {
    /// The hook's name in events.
    fn name(&self) -> GateName;

    /// Looks at a call that ran.
    ///
    /// # Errors
    /// A fault is told as an event and has no effect.
    fn after(&self, done: &FinishedCall) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// The object-safe twin of [`PostToolHook`].
pub trait DynPostToolHook: Send + Sync {
    /// [`PostToolHook::name`].
    fn hook_name(&self) -> GateName;

    /// [`PostToolHook::after`], boxed.
    fn after_boxed<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, Result<(), Fault>>;
}

impl<H: PostToolHook> DynPostToolHook for H {
    fn hook_name(&self) -> GateName {
        self.name()
    }

    fn after_boxed<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.after(done))
    }
}

/// Where a run stands when its end is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StopStanding {
    /// Turns so far, this one included.
    pub turn_count: u32,
    /// Calls that ran in this run, by tool.
    pub tool_usage: BTreeMap<ToolName, u64>,
    /// Whether the model said in this turn that the work is complete.
    pub called_work_complete: bool,
    /// How the run treats what is not satisfied.
    pub mode: StopMode,
}

/// What an agent-stop hook is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentStopAsk {
    /// The end that claims to be complete.
    pub end: End,
    /// Where the run stands.
    pub standing: Arc<StopStanding>,
    /// The transcript.
    pub log: Prefix,
    /// Whose run it is.
    pub origin: Arc<Origin>,
    /// Fires when the answer is not wanted any more.
    pub cancel: Cancel,
}

/// What an agent-stop hook says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentStop {
    /// The run may end.
    Allow,
    /// It goes on: another turn, which begins with the reason.
    Block {
        /// What the model is told.
        reason: String,
    },
}

impl AgentStop {
    /// The wire name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block { .. } => "block",
        }
    }
}

/// Is asked before a run is called complete; the first one that blocks makes it go on.
pub trait AgentStopHook: Send + Sync {
    /// The hook's name in events.
    fn name(&self) -> GateName;

    /// Looks at an end that claims to be complete.
    ///
    /// # Errors
    /// A fault, a panic and no answer in time allow the end of an interactive run and block that of a strict
    /// one, unless [`HookRules::on_error`](crate::hooks::HookRules::on_error) says otherwise.
    fn stopping(&self, ask: &AgentStopAsk) -> impl Future<Output = Result<AgentStop, Fault>> + Send;
}

/// The object-safe twin of [`AgentStopHook`].
pub trait DynAgentStopHook: Send + Sync {
    /// [`AgentStopHook::name`].
    fn hook_name(&self) -> GateName;

    /// [`AgentStopHook::stopping`], boxed.
    fn stopping_boxed<'a>(&'a self, ask: &'a AgentStopAsk) -> BoxFuture<'a, Result<AgentStop, Fault>>;
}

impl<H: AgentStopHook> DynAgentStopHook for H {
    fn hook_name(&self) -> GateName {
        self.name()
    }

    fn stopping_boxed<'a>(&'a self, ask: &'a AgentStopAsk) -> BoxFuture<'a, Result<AgentStop, Fault>> {
        Box::pin(self.stopping(ask))
    }
}

/// The points at which call hooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallHookPoint {
    /// After a call ran.
    PostTool,
    /// Before a run is called complete.
    AgentStop,
}

impl CallHookPoint {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PostTool => "post_tool",
            Self::AgentStop => "agent_stop",
        }
    }
}

/// What a hook did, for the event that tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookNote {
    /// At which point.
    pub point: CallHookPoint,
    /// Which hook.
    pub name: GateName,
    /// The call that it was asked about; `None` before the end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What followed: `allow`, `deny`, `replace`, `ask`; `seen`, `failed` or `missed` after a call; `allow` or
    /// `block` before the end.
    pub decision: std::borrow::Cow<'static, str>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took.
    pub duration: Millis,
    /// What went wrong, when it failed, panicked or took too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}
