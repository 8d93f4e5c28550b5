//! Hooks: the host's own code at four points of a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, Ledger, Progress, ToolOutcome};
use crate::cancel::Cancel;
use crate::machine::Origin;
use crate::message::{Invalid, ToolCall};
use crate::outcome::{End, Fault, Question};
use crate::time::Time;
use crate::transcript::Prefix;

/// The points at which a host wants to be asked. A point that is not wanted costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct HookPoints {
    /// [`TurnHooks::on_result`].
    pub results: bool,
    /// [`TurnHooks::on_tool_error`].
    pub tool_errors: bool,
    /// [`TurnHooks::on_invalid_output`].
    pub invalid_outputs: bool,
    /// [`TurnHooks::on_finished`].
    pub finished: bool,
}

impl HookPoints {
    /// No point.
    pub const NONE: Self =
        Self { results: false, tool_errors: false, invalid_outputs: false, finished: false };

    /// Every point.
    pub const ALL: Self = Self { results: true, tool_errors: true, invalid_outputs: true, finished: true };

    /// Only [`TurnHooks::on_result`].
    pub const RESULTS: Self = Self { results: true, ..Self::NONE };

    /// Whether a result with this status is shown to any hook.
    pub(crate) fn sees_result(self, is_error: bool) -> bool {
        self.results || (is_error && self.tool_errors)
    }
}

/// What a hook may look at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookCx {
    /// The transcript so far.
    pub log: Prefix,
    /// The position in it at which the turn began.
    pub from: usize,
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// Where the turn stands: iteration, tool calls, elapsed time, what is left.
    pub progress: Progress,
    /// When an answer is of no use any more.
    pub deadline: Option<Time>,
    /// Fires when the answer is not wanted any more.
    pub cancel: Cancel,
    /// Where model calls of the hook are reserved and settled.
    pub ledger: Ledger,
}

/// What a hook is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum HookAsk {
    /// A result, before the turn goes on with it.
    Result {
        /// The call.
        call: Arc<ToolCall>,
        /// What came of it.
        outcome: Arc<ToolOutcome>,
    },
    /// A failure, before [`HookAsk::Result`] is asked about it.
    ToolError {
        /// The call.
        call: Arc<ToolCall>,
        /// What came of it.
        outcome: Arc<ToolOutcome>,
    },
    /// A model's output that is of no use.
    InvalidOutput(Invalid),
    /// The end of the turn.
    Finished(Arc<End>),
}

/// The host's own code at four points of a turn. Every method has a default that does nothing;
/// [`TurnHooks::wants`] says which are asked at all.
///
/// A turn waits for its hooks: their time counts against its time limit, and a hook that has not
/// answered at the deadline is dropped like a model or a tool. A fault or a panic is told as
/// `part_failed` and counts as an answer that says nothing. Code that only wants to know, and never to ask or to stop
/// a turn, is better an [`crate::event::Observer`]: nobody waits for it.
///
/// ```
/// use harness_core::Fault;
/// use harness_core::message::ToolCall;
/// use harness_core::outcome::{AskReason, Question};
/// use harness_core::port::{HookCx, HookPoints, ToolOutcome, TurnHooks};
///
/// struct WhichOrder;
///
/// impl TurnHooks for WhichOrder {
///     fn wants(&self) -> HookPoints {
///         HookPoints::RESULTS
///     }
///
///     async fn on_result(
///         &self,
///         call: &ToolCall,
///         outcome: &ToolOutcome,
///         _: &HookCx,
///     ) -> Result<Option<Question>, Fault> {
///         let several = call.name == "find_orders" && outcome.content.len() > 1;
///         Ok(several.then(|| Question::new("Which of the orders?", AskReason::AmbiguousIdentifier)))
///     }
/// }
/// ```
pub trait TurnHooks: Send + Sync {
    /// The points at which this host wants to be asked. Asked once per turn specification.
    fn wants(&self) -> HookPoints {
        HookPoints::ALL
    }

    /// Sees the result of a call that ran, after it is in the transcript and before the turn goes on. A
    /// question ends the turn `needs_clarification`, unless a limit is reached at that moment; it can
    /// rescue a failure that would have ended the turn.
    ///
    /// # Errors
    /// A fault is told and changes nothing.
    fn on_result(
        &self,
        _call: &ToolCall,
        _outcome: &ToolOutcome,
        _cx: &HookCx,
    ) -> impl Future<Output = Result<Option<Question>, Fault>> + Send {
        std::future::ready(Ok(None))
    }

    /// Sees a call that failed, before [`TurnHooks::on_result`] does.
    ///
    /// # Errors
    /// A fault is told and changes nothing.
    fn on_tool_error(
        &self,
        _call: &ToolCall,
        _outcome: &ToolOutcome,
        _cx: &HookCx,
    ) -> impl Future<Output = Result<(), Fault>> + Send {
        std::future::ready(Ok(()))
    }

    /// Sees an output that is of no use, before the turn decides whether to ask again.
    ///
    /// # Errors
    /// A fault is told and changes nothing.
    fn on_invalid_output(
        &self,
        _invalid: &Invalid,
        _cx: &HookCx,
    ) -> impl Future<Output = Result<(), Fault>> + Send {
        std::future::ready(Ok(()))
    }

    /// Sees how the turn ended, last of all; also after faults. It changes nothing any more. It may take
    /// until the deadline, and at least two seconds.
    ///
    /// # Errors
    /// A fault is logged and has no effect.
    fn on_finished(&self, _end: &End, _cx: &HookCx) -> impl Future<Output = Result<(), Fault>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The object-safe twin of [`TurnHooks`].
pub trait DynTurnHooks: Send + Sync {
    /// [`TurnHooks::wants`].
    fn wanted(&self) -> HookPoints;

    /// The method that `ask` is for, boxed.
    fn ask_boxed<'a>(
        &'a self,
        ask: &'a HookAsk,
        cx: &'a HookCx,
    ) -> BoxFuture<'a, Result<Option<Question>, Fault>>;
}

impl<H: TurnHooks> DynTurnHooks for H {
    fn wanted(&self) -> HookPoints {
        self.wants()
    }

    fn ask_boxed<'a>(
        &'a self,
        ask: &'a HookAsk,
        cx: &'a HookCx,
    ) -> BoxFuture<'a, Result<Option<Question>, Fault>> {
        Box::pin(async move {
            match ask {
                HookAsk::Result { call, outcome } => self.on_result(call, outcome, cx).await,
                HookAsk::ToolError { call, outcome } => {
                    self.on_tool_error(call, outcome, cx).await.map(|()| None)
                }
                HookAsk::InvalidOutput(invalid) => self.on_invalid_output(invalid, cx).await.map(|()| None),
                HookAsk::Finished(end) => self.on_finished(end, cx).await.map(|()| None),
            }
        })
    }
}
