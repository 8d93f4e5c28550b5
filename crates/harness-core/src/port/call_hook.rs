//! Hooks behind calls: the host's own code, asked by name.
//!
//! A hook is put to work by [`crate::hooks::Hooks`], which gives each its time limit and says what its
//! failure means.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, ToolOutcome};
use crate::ids::{CallId, GateName};
use crate::machine::Origin;
use crate::message::ToolCall;
use crate::outcome::Fault;
use crate::time::{Millis, Time};

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

/// The points at which call hooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallHookPoint {
    /// After a call ran.
    PostTool,
}

impl CallHookPoint {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PostTool => "post_tool",
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
    /// What followed: `seen`, `failed` or `missed`.
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
