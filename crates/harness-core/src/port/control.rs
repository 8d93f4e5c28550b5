//! What says whether a run goes on when a turn is over: its control.

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

/// The control of one run: it sees every message, says what the model is told with a request, and decides at the end
/// of each turn whether the run goes on.
///
/// Pure: it asks nobody, reads no clock and no randomness, so that equal messages give equal decisions. What lies
/// outside comes as the answer to [`Review::NeedsFacts`]. The run asks in this order, for each turn: [`observe`] with
/// what was appended, [`guide`] before each request, then [`review`] (again with the facts, where it wants some), the
/// checks of the application after [`Review::Done`], and [`decide`]. A snapshot of the run holds what [`save`] gives.
///
/// A run that is given no other has [`PlainControl`](crate::run::PlainControl): it ends with its first answer that the
/// checks of the end accept.
///
/// A turn that failed, was cancelled or waits for somebody ends its run whatever the control decides, and a run that has
/// used up its turns stops: the control bounds a run further, it does not widen its bounds.
///
/// ```
/// use harness_core::message::Message;
/// use harness_core::port::{Checked, Control, Review, RunNext, RunStop, TurnEnd};
/// use harness_core::{Json, Outcome};
///
/// /// Goes on until a tool was called.
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
    /// A message of the transcript, with the number of the event that told it. Each once, in order, before the next
    /// request and before the turn is reviewed.
    fn observe(&mut self, event: u64, message: &Message);

    /// What the model is told with the next request, behind everything else and stored nowhere. Asked once for each
    /// iteration. Default nothing.
    fn guide(&mut self, _at: &RunProgress) -> Option<Arc<Message>> {
        None
    }

    /// What a turn came to. `facts` are the answer to [`Review::NeedsFacts`]; JSON `null` when the source of facts
    /// gave none.
    fn review(&mut self, turn: &TurnEnd<'_>, facts: Option<&Json>) -> Review;

    /// How the run goes on. Once for each turn, after [`Control::review`]; `checks` are those of the application that
    /// were asked, in order. A turn that was cancelled while it was judged has an end that says so, and its run
    /// stops whatever is decided.
    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext;

    /// What happened since the last time, for listeners: each an object with a `kind`. Default nothing.
    fn take_events(&mut self) -> Vec<Json> {
        Vec::new()
    }

    /// What is needed to go on in another process.
    fn save(&self) -> Json;

    /// Goes on with what an earlier control of the same settings saved.
    ///
    /// # Errors
    /// When that is of another form.
    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error>;
}

/// What is used of one limit of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// What is limited, for the model: `turns`, `tool calls`.
    pub what: Cow<'static, str>,
    /// How much is used.
    pub used: u64,
    /// How much there is; 0 is no limit.
    pub most: u64,
}

/// Where a run stands when a request is made, or when the end of a turn is judged.
///
/// ```
/// use harness_core::port::{RunProgress, Used};
///
/// let progress = RunProgress::of_turn(2, 5);
/// let most = progress.used.iter().max_by_key(|Used { used, most, .. }| used * 100 / (*most).max(1));
/// assert!(most.is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunProgress {
    /// The turn, from 1.
    pub turn: u32,
    /// Turns at most.
    pub max_turns: u32,
    /// How the run treats a check that is not satisfied.
    pub mode: StopMode,
    /// How often the view or the transcript was made shorter.
    pub compactions: u64,
    /// The agent at work, with its tools; `None` outside of a run.
    pub prepared: Option<Arc<PreparedAgent>>,
    /// What is used of the run's limits: turns, model calls, tool calls, tokens, seconds.
    pub used: [Used; 5],
    /// Calls of the turns that are over, by tool. Counted only where a check judges ends.
    pub tool_calls: BTreeMap<ToolName, u64>,
    /// Whether the model said in the turn that is judged that the work is complete.
    pub signalled: bool,
}

impl RunProgress {
    /// A turn of so many.
    pub fn of_turn(turn: u32, max_turns: u32) -> Self {
        Self { turn, max_turns, ..Self::default() }
    }
}

/// A turn that is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnEnd<'a> {
    /// How it ended, and why.
    pub end: &'a End,
    /// The turn, from 1.
    pub turn: u32,
    /// Turns at most.
    pub max_turns: u32,
    /// How the run treats a check that is not satisfied.
    pub mode: StopMode,
    /// Turns in a row that checks may ask for before an interactive run accepts.
    pub nudges: u32,
    /// The limit that lets no further turn begin.
    pub limit: Option<Reached>,
    /// Whether a limit of the run other than its turns is reached.
    pub is_spent: bool,
    /// When.
    pub now: Time,
}

impl<'a> TurnEnd<'a> {
    /// The first turn of a run without limits, which ended so at the beginning of time.
    pub fn new(end: &'a End) -> Self {
        Self {
            end,
            turn: 1,
            max_turns: u32::MAX,
            mode: StopMode::default(),
            nudges: 0,
            limit: None,
            is_spent: false,
            now: Time(0),
        }
    }
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// That depends on facts that lie outside of the run: what to ask the [`FactSource`](crate::decide::FactSource), once.
    NeedsFacts(Json),
    /// It claims that the work is done, and the control believes it: the checks of the application are asked.
    Done {
        /// Whether the model gave a signal that the work is done.
        signalled: bool,
        /// Whether a check that asks for more work is let go.
        waives: bool,
        /// What the control's own checks said.
        own: Vec<Checked>,
    },
    /// It claims that the work is done, and the control's own checks do not believe it. The last of them says why.
    Refused(Vec<Checked>),
    /// It claims nothing.
    NotDone,
}

impl Review {
    /// A claim that the control believes, without checks of its own.
    pub fn done() -> Self {
        Self::Done { signalled: false, waives: false, own: Vec::new() }
    }
}

/// What a check said about the end of a run, as the run takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The check.
    pub check: GateName,
    /// What it said.
    pub verdict: CheckedAs,
    /// Why, or what is to be done; for people and for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Checked {
    /// What a check said, without a reason.
    pub fn new(check: impl Into<GateName>, verdict: CheckedAs) -> Self {
        Self { check: check.into(), verdict, why: None }
    }

    /// Its waiver, when it was let go.
    pub fn waiver(&self) -> Option<Waiver> {
        let is_waived = self.verdict == CheckedAs::Waived;
        is_waived.then(|| Waiver::new(self.check.clone(), self.why.clone().unwrap_or_default()))
    }
}

/// How a run takes what a check said.
///
/// ```
/// use harness_core::port::{Checked, CheckedAs};
///
/// let checked = Checked::new("tests-ran", CheckedAs::Accepted);
/// assert!(checked.waiver().is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedAs {
    /// It is satisfied.
    Accepted,
    /// It is not satisfied, and the run may end all the same.
    Waived,
    /// It is not satisfied; the checks behind it were not asked.
    Refused,
}

/// How a run goes on after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunNext {
    /// It is over.
    Stop(RunStop),
    /// Another turn, which begins with this text; `None` goes on where the transcript ends.
    Continue(Option<String>),
}

/// How a run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStop {
    /// Why, in place of the end of its last turn.
    pub stop: Option<Stop>,
    /// The answer, in place of that of its last turn.
    pub answer: Option<String>,
    /// The checks that were let go; they count when it ends `completion_waived`.
    pub waived: Vec<Waiver>,
    /// What [`End::control`] tells.
    pub report: Option<Json>,
}
