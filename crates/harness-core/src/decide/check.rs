//! Checks: asked about a prompt, an answer or an end before it counts, and about what tools and models gave.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};

use super::DecideCx;
use super::guarded::{Guard, Guarded, OnError, Point, Points};
use crate::ids::{AgentId, GateName};
use crate::json::Json;
use crate::message::{Block, Invalid, Message, ToolCall};
use crate::outcome::{End, Fault, Question, ThinEvidence};
use crate::port::{Progress, RunProgress};
use crate::tool::ToolOutcome;
use crate::twin;

/// What a check looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Subject {
    /// What somebody asks, before it is in the transcript. Messages that the turn wrote itself are not among them.
    Prompt(Vec<Arc<Message>>),
    /// An answer, before it is in the transcript: also a question of the model, and what a tool that ends the turn
    /// has to say.
    Answer {
        /// Its words.
        text: String,
        /// Whose it is.
        agent: AgentId,
        /// The message; `None` when the words are those of a tool, which the transcript holds already.
        message: Option<Arc<Message>>,
    },
    /// The end of a turn that claims that the work of its run is done.
    End {
        /// How it ended.
        end: Arc<End>,
        /// Where the run stands.
        progress: Arc<RunProgress>,
    },
    /// The result of a call that ran, a success or a failure. It is in the transcript.
    Result {
        /// The call.
        call: Arc<ToolCall>,
        /// What came of it.
        outcome: Arc<ToolOutcome>,
        /// Where the turn stands.
        progress: Progress,
    },
    /// An output of a model that is of no use. It is in the transcript.
    Invalid {
        /// What is wrong with it.
        invalid: Box<Invalid>,
        /// Where the turn stands.
        progress: Progress,
    },
}

impl Subject {
    /// Its words: those of the messages of a prompt, one per line, those of the answer or of the result, the answer of
    /// an end, or what is wrong with an output.
    pub fn text(&self) -> String {
        match self {
            Self::Prompt(messages) => {
                messages.iter().map(|message| message.joined_text()).collect::<Vec<_>>().join("\n")
            }
            Self::Answer { text, .. } => text.clone(),
            Self::End { end, .. } => end.answer.clone().unwrap_or_default(),
            Self::Result { outcome, .. } => outcome.content.iter().filter_map(Block::as_text).collect(),
            Self::Invalid { invalid, .. } => invalid.reason.clone(),
        }
    }

    /// Puts these words in place of its own.
    pub(crate) fn amend(&mut self, words: String) {
        match self {
            Self::Prompt(messages) => {
                let mut words = Some(words);
                for message in messages.iter_mut() {
                    *message = Arc::new(message.with_text(words.take().unwrap_or_default()));
                }
                messages.retain(|message| !message.content().is_empty());
            }
            Self::Answer { text, message, .. } => {
                if let Some(message) = message {
                    *message = Arc::new(message.with_text(words.clone()));
                }
                *text = words;
            }
            Self::End { .. } | Self::Result { .. } | Self::Invalid { .. } => {}
        }
    }
}

/// The strictness of what nothing is stricter than.
const STRICTEST: u8 = 4;

/// What a check says. The first check that does not accept decides, in the order in which they were given. A verdict
/// that means nothing at a point counts as a failure of the check.
///
/// | at | it may be |
/// |---|---|
/// | [`Points::PROMPT`] | `Accept`, `Amend`, `Continue`, `Refuse` |
/// | [`Points::ANSWER`] | `Accept`, `Amend`, `Continue`, `Ask`, `Refuse`, `Unfounded` |
/// | [`Points::END`] | `Accept`, `Waive`, `Continue`, `Ask`, `Refuse` |
/// | [`Points::RESULT`] | `Accept`, `Ask`, `Refuse` |
/// | [`Points::INVALID`] | `Accept`, `Continue`, `Ask`, `Refuse` |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CheckVerdict {
    /// Nothing against it.
    Accept,
    /// It counts with these words in place of its own, and the checks behind are asked about them. The words of a
    /// tool that ends the turn stay as they are in the transcript.
    Amend(String),
    /// An end is believed although something is missing; the result says so. Refused in strict mode.
    Waive {
        /// Why.
        why: String,
    },
    /// An answer is kept, but does not count: the model reads the guidance and answers again. So it does behind an output
    /// of no use. An end is not believed: another turn begins with the guidance. A prompt is refused.
    Continue {
        /// What the model reads.
        guidance: String,
    },
    /// The user is asked something first: it ends `clarification_required`. An answer is not kept. Because of a result it
    /// is asked unless a limit is reached at that moment, and can rescue a failure that would have ended the turn. A blank
    /// question counts as [`Accept`](Self::Accept).
    Ask(Question),
    /// A prompt or an answer is not kept, and the turn ends `guardrail_triggered`. Pieces of a streamed answer may be out
    /// already. An end is not believed: another turn begins with the reason. Because of a result or of an output of no use
    /// the turn ends, and these stay.
    Refuse {
        /// Why.
        reason: String,
    },
    /// An answer rests on too little: it is not kept, and the turn ends `evidence_density_violation`.
    Unfounded(Box<ThinEvidence>),
}

impl CheckVerdict {
    /// A refusal.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse { reason: reason.into() }
    }

    /// Its name in events: `accept`, `amend`, `waive`, `continue`, `ask`, `refuse` or `unfounded`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Amend(_) => "amend",
            Self::Waive { .. } => "waive",
            Self::Continue { .. } => "continue",
            Self::Ask(_) => "ask",
            Self::Refuse { .. } => "refuse",
            Self::Unfounded(_) => "unfounded",
        }
    }

    /// Why, as far as it says so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Continue { guidance: text }
            | Self::Refuse { reason: text }
            | Self::Waive { why: text }
            | Self::Ask(Question { text, .. }) => Some(text),
            Self::Accept | Self::Amend(_) | Self::Unfounded(_) => None,
        }
    }

    /// How strict it is: of several that were given at once the strictest counts.
    fn strictness(&self) -> u8 {
        match self {
            Self::Accept => 0,
            Self::Amend(_) | Self::Waive { .. } => 1,
            Self::Continue { .. } => 2,
            Self::Ask(_) => 3,
            Self::Refuse { .. } | Self::Unfounded(_) => STRICTEST,
        }
    }

    /// Whether it means something at this point.
    pub(crate) fn fits(&self, point: Point) -> bool {
        let at: &[Point] = match self {
            Self::Accept | Self::Refuse { .. } => return true,
            Self::Amend(_) | Self::Unfounded(_) => &[Point::Prompt, Point::Answer],
            Self::Waive { .. } => &[Point::End],
            Self::Continue { .. } => &[Point::Prompt, Point::Answer, Point::End, Point::Invalid],
            Self::Ask(_) => &[Point::Answer, Point::End, Point::Result, Point::Invalid],
        };
        at.contains(&point)
    }
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckDecision {
    /// What follows.
    pub verdict: CheckVerdict,
    /// What it rests on, for records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
}

impl From<CheckVerdict> for CheckDecision {
    fn from(verdict: CheckVerdict) -> Self {
        Self { verdict, facts: None }
    }
}

/// Judges whether a prompt, an answer or an end counts.
///
/// A check that fails judges nothing: what follows is a rule of its [`Guarded`]. A dropped future is a question that
/// nobody waits for any more. Models that it asks are charged to the run when they are asked through
/// [`DecideCx::ledger`].
///
/// ```
/// use harness_core::Fault;
/// use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
///
/// struct NoNumbers;
///
/// impl Check for NoNumbers {
///     async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
///         let scrubbed: String =
///             subject.text().chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
///         Ok(CheckVerdict::Amend(scrubbed).into())
///     }
/// }
///
/// let check = check::new("no-numbers", Points::ANSWER, NoNumbers);
/// assert_eq!(check.guard().name.as_str(), "no-numbers");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no check",
    note = "make one of a closure with `check::func(\"name\", Points::ANSWER, |subject, cx| CheckVerdict::Accept)`"
)]
pub trait Check: Send + Sync {
    /// Judges a subject.
    ///
    /// # Errors
    ///
    /// When it cannot judge.
    fn judge(
        &self,
        subject: &Subject,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<CheckDecision, Fault>> + Send;
}

twin! {
    DynCheck of Check {
        async fn judge_boxed = judge(subject: &'a Subject, cx: &'a DecideCx) -> Result<CheckDecision, Fault>;
    }
}

/// A check of this name, asked there.
pub fn new(name: impl Into<GateName>, points: Points, check: impl Check + 'static) -> Guarded<dyn DynCheck> {
    Guarded::new(Guard::new(name, points), Arc::new(check))
}

/// A closure as a check.
pub fn func(
    name: impl Into<GateName>,
    points: Points,
    judge: impl Fn(&Subject, &DecideCx) -> CheckVerdict + Send + Sync + 'static,
) -> Guarded<dyn DynCheck> {
    new(name, points, Func(judge))
}

struct Func<F>(F);

impl<F: Fn(&Subject, &DecideCx) -> CheckVerdict + Send + Sync> Check for Func<F> {
    async fn judge(&self, subject: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        Ok((self.0)(subject, cx).into())
    }
}

/// Refuses the texts for which the closure gives a reason.
///
/// ```
/// use harness_core::decide::{Points, check};
///
/// let check = check::guardrail("no-secrets", Points::PROMPT.and(Points::ANSWER), |text| {
///     text.contains("hunter2").then(|| "it holds a password".to_owned())
/// });
/// # assert_eq!(check.guard().name.as_str(), "no-secrets");
/// ```
pub fn guardrail(
    name: impl Into<GateName>,
    points: Points,
    why: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynCheck> {
    func(name, points, move |subject, _| {
        why(&subject.text()).map_or(CheckVerdict::Accept, CheckVerdict::refuse)
    })
}

/// Lets a run end unless the closure says what is to be done first; another turn begins with that. Asked about an end
/// that claims that the work is done. When it fails an interactive run may end, and a strict one goes on.
///
/// ```
/// use harness_core::decide::check;
///
/// let check = check::stop_hook("tests-ran", |_end, progress| {
///     let ran = progress.tool_calls.contains_key(&"run_tests".into());
///     (!ran).then(|| "Run the tests before you finish.".to_owned())
/// });
/// # assert_eq!(check.guard().name.as_str(), "tests-ran");
/// ```
pub fn stop_hook(
    name: impl Into<GateName>,
    why: impl Fn(&End, &RunProgress) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynCheck> {
    let check = func(name, Points::END, move |subject, _| match subject {
        Subject::End { end, progress } => {
            why(end, progress).map_or(CheckVerdict::Accept, |guidance| CheckVerdict::Continue { guidance })
        }
        Subject::Prompt(_) | Subject::Answer { .. } | Subject::Result { .. } | Subject::Invalid { .. } => {
            CheckVerdict::Accept
        }
    });
    check.on_error(OnError::LenientIfInteractive)
}

/// Several checks asked at once, as one: the strictest verdict counts, and a refusal does not wait for the others. One
/// that fails makes all of them fail, unless another refuses.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Millis;
/// use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
/// # use harness_core::Fault;
/// # struct Slow;
/// # impl Check for Slow {
/// #     async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
/// #         Ok(CheckVerdict::Accept.into())
/// #     }
/// # }
///
/// let check = check::all("two-judges", Points::ANSWER, [Arc::new(Slow) as _, Arc::new(Slow) as _]);
/// let check = check.within(Millis(20_000));
/// # let _ = check;
/// ```
pub fn all(
    name: impl Into<GateName>,
    points: Points,
    checks: impl IntoIterator<Item = Arc<dyn DynCheck>>,
) -> Guarded<dyn DynCheck> {
    new(name, points, All(checks.into_iter().collect()))
}

struct All(Vec<Arc<dyn DynCheck>>);

impl Check for All {
    async fn judge(&self, subject: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        let mut asked: FuturesUnordered<_> =
            self.0.iter().map(|check| check.judge_boxed(subject, cx)).collect();
        let (mut strictest, mut failed) = (CheckDecision::from(CheckVerdict::Accept), None);
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(decision) if decision.verdict.strictness() == STRICTEST => return Ok(decision),
                Ok(decision) if decision.verdict.strictness() > strictest.verdict.strictness() => {
                    strictest = decision;
                }
                Ok(_) => {}
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        failed.map_or(Ok(strictest), Err)
    }
}
