//! Control of a run: decides after each turn whether the run continues.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{GateName, ToolName};
use crate::json::Json;
use crate::limits::Reached;
use crate::message::Message;
use crate::outcome::{End, Stop, StopMode, Waiver};
use crate::port::PreparedAgent;
use crate::time::Time;

/// Control of one run: sees every message, guides the model, and decides after each turn whether the run continues.
///
/// Pure: without I/O, clock and randomness, so that equal messages give equal decisions. Outside facts arrive as the
/// response to [`Review::NeedsFacts`]. For each turn the run calls [`observe`] with appended messages, [`guide`] before
/// each request, then [`review`] (again with facts, if it needs any), the application's checks after [`Review::Done`], and
/// [`decide`]. A snapshot of the run contains the result of [`save`].
///
/// The default is [`PlainControl`](crate::run::PlainControl): the run ends with the first answer that the checks of the
/// end accept.
///
/// A control cannot extend a run: a turn that failed, was cancelled or needs input ends its run, and so does the limit of
/// turns.
///
/// ```
/// use harness_core::message::Message;
/// use harness_core::port::{Checked, Control, Review, RunNext, RunStop, TurnEnd};
/// use harness_core::{Json, Outcome};
///
/// /// Continues until a tool was called.
/// #[derive(Debug, Default)]
/// struct Works(bool);
///
/// impl Control for Works {
///     fn observe(&mut self, _event: u64, message: &Message) {
///         self.0 |= message.as_tool_result().is_some();
///     }
///
///     fn review(&mut self, turn: &TurnEnd<'_>, _facts: Option<&Json>) -> Review {
///         let claims = turn.end.outcome() == Outcome::Completed;
///         if claims { Review::done() } else { Review::NotDone }
///     }
///
///     fn decide(&mut self, turn: &TurnEnd<'_>, _checks: &[Checked]) -> RunNext {
///         if self.0 || turn.end.outcome() != Outcome::Completed {
///             return RunNext::Stop(RunStop::default());
///         }
///         RunNext::Continue(Some("Call a tool.".to_owned()))
///     }
///
///     fn save(&self) -> Json {
///         Json::of(&self.0).unwrap_or_default()
///     }
///
///     fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
///         self.0 = saved.to()?;
///         Ok(())
///     }
/// }
/// ```
///
/// [`observe`]: Control::observe
/// [`guide`]: Control::guide
/// [`review`]: Control::review
/// [`decide`]: Control::decide
/// [`save`]: Control::save
pub trait Control: fmt::Debug + Send + Sync {
    /// Observes a message of the transcript, with the number of its event. Called once for each, in order, before the
    /// next request and before the review.
    fn observe(&mut self, event: u64, message: &Message);

    /// Returns guidance for the model: the last message of the next request, never stored. Called once for each
    /// iteration. Default: none.
    fn guide(&mut self, _at: &RunProgress) -> Option<Arc<Message>> {
        None
    }

    /// Reviews a turn. `facts` is the response to [`Review::NeedsFacts`], or JSON `null` if the source failed.
    fn review(&mut self, turn: &TurnEnd<'_>, facts: Option<&Json>) -> Review;

    /// Decides whether the run continues. Called once for each turn, after [`Control::review`], with the results of the
    /// application's checks in order. If the turn was cancelled meanwhile, its end reports it, and the run stops in any
    /// case.
    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext;

    /// Returns new events of the control: objects with a `kind`. Default: none.
    fn take_events(&mut self) -> Vec<Json> {
        Vec::new()
    }

    /// Returns the state to resume from in another process.
    fn save(&self) -> Json;

    /// Restores a state that a control with equal settings saved.
    ///
    /// # Errors
    /// If the state has another form.
    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error>;
}

/// Usage of one limit of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Name of the resource, for the model: `turns`, `tool calls`.
    pub what: Cow<'static, str>,
    /// Used amount.
    pub used: u64,
    /// Limit; 0 for none.
    pub most: u64,
}

/// Progress of a run, at a request or at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunProgress {
    /// Turn, starting at 1.
    pub turn: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Treatment of checks that do not accept.
    pub mode: StopMode,
    /// Number of compactions.
    pub compactions: u64,
    /// Active agent; `None` outside of a run.
    pub prepared: Option<Arc<PreparedAgent>>,
    /// Usage of the run's limits: turns, model calls, tool calls, tokens, seconds.
    pub used: [Used; 5],
    /// Calls of finished turns, by tool. Counted only if there is a check of the end.
    pub tool_calls: BTreeMap<ToolName, u64>,
    /// Whether the model signalled in the judged turn that the work is complete.
    pub signalled: bool,
}

/// Finished turn of a run.
#[derive(Clone, Debug)]
pub struct TurnEnd<'a> {
    /// End of the turn.
    pub end: &'a End,
    /// Turn, starting at 1.
    pub turn: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Treatment of checks that do not accept.
    pub mode: StopMode,
    /// Maximum number of consecutive turns that checks may request before an interactive run accepts.
    pub nudges: u32,
    /// Limit that prevents a further turn.
    pub limit: Option<Reached>,
    /// Whether a limit other than that of turns is reached.
    pub is_spent: bool,
    /// Time.
    pub now: Time,
}

/// Review of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// Needs facts from the [`FactSource`](crate::decide::FactSource): its request, once.
    NeedsFacts(Json),
    /// The turn claims that the work is done, and the control accepts it: the application's checks follow.
    Done {
        /// Whether the model signalled that the work is done.
        signalled: bool,
        /// Whether a check that requests more work is waived.
        waives: bool,
        /// Results of the control's checks.
        own: Vec<Checked>,
    },
    /// The turn claims that the work is done, and a check of the control does not accept it: the last one.
    Refused(Vec<Checked>),
    /// The turn does not claim that the work is done.
    NotDone,
}

impl Review {
    /// Accepts a claim without checks of the control.
    pub fn done() -> Self {
        Self::Done { signalled: false, waives: false, own: Vec::new() }
    }
}

/// Result of a check of the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// Check.
    pub check: GateName,
    /// Effect on the run.
    pub verdict: CheckedAs,
    /// Reason or guidance, for the user and the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Checked {
    /// Returns the waiver of a waived check.
    pub fn waiver(&self) -> Option<Waiver> {
        let is_waived = self.verdict == CheckedAs::Waived;
        is_waived.then(|| Waiver { gate: self.check.clone(), why: self.why.clone().unwrap_or_default() })
    }
}

/// Effect of a check's verdict on the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedAs {
    /// Accepted.
    Accepted,
    /// Not accepted, but the run may end.
    Waived,
    /// Not accepted; later checks were not called.
    Refused,
}

/// Decision after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunNext {
    /// The run ends.
    Stop(RunStop),
    /// Another turn starts with this text, or without a message.
    Continue(Option<String>),
}

/// End of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStop {
    /// Stop reason, if it differs from the last turn's.
    pub stop: Option<Stop>,
    /// Answer, if it differs from the last turn's.
    pub answer: Option<String>,
    /// Waived checks; they count if the run ends `completion_waived`.
    pub waived: Vec<Waiver>,
    /// Content of [`End::control`].
    pub report: Option<Json>,
}
