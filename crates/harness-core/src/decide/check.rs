//! Checks of prompts, answers, ends, results and invalid outputs.

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
use crate::tool::{SchemaValidator, ToolOutcome};
use crate::twin;

/// Subject of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Subject {
    /// Prompt before it enters the transcript, without messages that the turn created.
    Prompt(Vec<Arc<Message>>),
    /// Answer before it enters the transcript: of the model, a question to the user, or a tool that ends the turn.
    Answer {
        /// Text.
        text: String,
        /// Agent.
        agent: AgentId,
        /// Message; `None` for the text of a tool, which is already in the transcript.
        message: Option<Arc<Message>>,
        /// JSON Schema of the agent's answers ([`AgentConfig::output`](crate::port::AgentConfig::output)).
        output: Option<Json>,
    },
    /// End of a turn that claims that the work of its run is done.
    End {
        /// End of the turn.
        end: Arc<End>,
        /// Progress of the run.
        progress: Arc<RunProgress>,
    },
    /// Result of a call that ran, success or failure. It is in the transcript.
    Result {
        /// Call.
        call: Arc<ToolCall>,
        /// Outcome of the call.
        outcome: Arc<ToolOutcome>,
        /// Progress of the turn.
        progress: Progress,
    },
    /// Invalid output of a model. It is in the transcript.
    Invalid {
        /// Problem of the output.
        invalid: Box<Invalid>,
        /// Progress of the turn.
        progress: Progress,
    },
}

impl Subject {
    /// Returns the text: of the prompt's messages, one per line, of the answer, the result or the end, or the problem of
    /// an invalid output.
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

    /// Replaces the text of a prompt or an answer.
    pub(crate) fn amend(&mut self, amended: String) {
        match self {
            Self::Prompt(messages) => {
                let mut amended = Some(amended);
                for message in messages.iter_mut() {
                    *message = Arc::new(message.with_text(amended.take().unwrap_or_default()));
                }
                messages.retain(|message| !message.content().is_empty());
            }
            Self::Answer { text, message, .. } => {
                if let Some(message) = message {
                    *message = Arc::new(message.with_text(amended.clone()));
                }
                *text = amended;
            }
            Self::End { .. } | Self::Result { .. } | Self::Invalid { .. } => {}
        }
    }
}

/// Highest strictness of a verdict.
const STRICTEST: u8 = 4;

/// Verdict of a check. The first check that does not accept decides. A verdict that is not defined for a point counts as
/// an error of the check.
///
/// | point | verdicts |
/// |---|---|
/// | [`Points::PROMPT`] | `Accept`, `Amend`, `Continue`, `Refuse` |
/// | [`Points::ANSWER`] | `Accept`, `Amend`, `Continue`, `Invalid`, `Ask`, `Refuse`, `Unfounded` |
/// | [`Points::END`] | `Accept`, `Waive`, `Continue`, `Ask`, `Refuse` |
/// | [`Points::RESULT`] | `Accept`, `Ask`, `Refuse` |
/// | [`Points::INVALID`] | `Accept`, `Continue`, `Ask`, `Refuse` |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CheckVerdict {
    /// The subject counts.
    Accept,
    /// The subject counts with this text instead, which later checks see. The text of a tool that ends the turn is not
    /// changed in the transcript.
    Amend(String),
    /// The end is accepted although its condition is not met, and the result reports it. Rejected in strict mode.
    Waive {
        /// Reason.
        why: String,
    },
    /// The answer or invalid output stays in the transcript, and the model responds again to the guidance. After an end,
    /// another turn starts with the guidance. A prompt is rejected.
    Continue {
        /// Message for the model.
        guidance: String,
    },
    /// The answer has the wrong form: it stays in the transcript without counting, and the model receives the reason and
    /// answers again. Counts as an invalid output: [`Limits::invalid_outputs`](crate::limits::Limits::invalid_outputs) of
    /// them in a row end the turn `invalid_output`.
    Invalid {
        /// Reason.
        reason: String,
    },
    /// The user is asked first: the turn ends `clarification_required`. An answer is dropped. A question about a result is
    /// skipped if a limit is reached at that moment; otherwise it replaces a failure that would have ended the turn. A
    /// blank question counts as [`Accept`](Self::Accept).
    Ask(Question),
    /// The prompt or answer is dropped, and the turn ends `guardrail_triggered`; deltas of the answer may have been
    /// published. After an end, another turn starts with the reason. After a result or an invalid output, which stay in the
    /// transcript, the turn ends.
    Refuse {
        /// Reason.
        reason: String,
    },
    /// The answer lacks evidence: it is dropped, and the turn ends `evidence_density_violation`.
    Unfounded(Box<ThinEvidence>),
}

impl CheckVerdict {
    /// Creates a refusal.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse { reason: reason.into() }
    }

    /// Returns the name in events: `accept`, `amend`, `waive`, `continue`, `invalid`, `ask`, `refuse` or `unfounded`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Amend(_) => "amend",
            Self::Waive { .. } => "waive",
            Self::Continue { .. } => "continue",
            Self::Invalid { .. } => "invalid",
            Self::Ask(_) => "ask",
            Self::Refuse { .. } => "refuse",
            Self::Unfounded(_) => "unfounded",
        }
    }

    /// Returns the reason, if any.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Continue { guidance: text }
            | Self::Invalid { reason: text }
            | Self::Refuse { reason: text }
            | Self::Waive { why: text }
            | Self::Ask(Question { text, .. }) => Some(text),
            Self::Accept | Self::Amend(_) | Self::Unfounded(_) => None,
        }
    }

    /// Returns the strictness: of several simultaneous verdicts the strictest counts.
    fn strictness(&self) -> u8 {
        match self {
            Self::Accept => 0,
            Self::Amend(_) | Self::Waive { .. } => 1,
            Self::Continue { .. } | Self::Invalid { .. } => 2,
            Self::Ask(_) => 3,
            Self::Refuse { .. } | Self::Unfounded(_) => STRICTEST,
        }
    }

    /// Whether the verdict is defined for a point.
    pub(crate) fn fits(&self, point: Point) -> bool {
        let at: &[Point] = match self {
            Self::Accept | Self::Refuse { .. } => return true,
            Self::Amend(_) | Self::Unfounded(_) => &[Point::Prompt, Point::Answer],
            Self::Waive { .. } => &[Point::End],
            Self::Invalid { .. } => &[Point::Answer],
            Self::Continue { .. } => &[Point::Prompt, Point::Answer, Point::End, Point::Invalid],
            Self::Ask(_) => &[Point::Answer, Point::End, Point::Result, Point::Invalid],
        };
        at.contains(&point)
    }
}

/// Decision of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckDecision {
    /// Verdict.
    pub verdict: CheckVerdict,
    /// Facts for records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
}

impl From<CheckVerdict> for CheckDecision {
    fn from(verdict: CheckVerdict) -> Self {
        Self { verdict, facts: None }
    }
}

/// Judges prompts, answers, ends, results or invalid outputs.
///
/// The effect of an error is set by [`Guarded::on_error`]. Model calls through [`DecideCx::ledger`] are charged to the run.
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
    message = "`{Self}` is not a check",
    note = "make one from a closure with `check::func(\"name\", Points::ANSWER, |subject, cx| CheckVerdict::Accept)`"
)]
pub trait Check: Send + Sync {
    /// Judges a subject.
    ///
    /// # Errors
    /// If it cannot judge.
    ///
    /// # Cancel safety
    /// The future is dropped when the decision is cancelled.
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

/// Creates a check, called at these points.
pub fn new(name: impl Into<GateName>, points: Points, check: impl Check + 'static) -> Guarded<dyn DynCheck> {
    Guarded::new(Guard::new(name, points), Arc::new(check))
}

/// Creates a check from a closure.
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

/// Creates a check that refuses texts for which the closure returns a reason.
pub fn guardrail(
    name: impl Into<GateName>,
    points: Points,
    why: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynCheck> {
    func(name, points, move |subject, _| {
        why(&subject.text()).map_or(CheckVerdict::Accept, CheckVerdict::refuse)
    })
}

/// Creates a check of the end: if the closure returns guidance, another turn starts with it. On errors, interactive runs
/// end and strict ones continue.
pub fn stop_hook(
    name: impl Into<GateName>,
    why: impl Fn(&End, &RunProgress) -> Option<String> + Send + Sync + 'static,
) -> Guarded<dyn DynCheck> {
    let check = func(name, Points::END, move |subject, _| {
        let Subject::End { end, progress } = subject else { return CheckVerdict::Accept };
        why(end, progress).map_or(CheckVerdict::Accept, |guidance| CheckVerdict::Continue { guidance })
    });
    check.on_error(OnError::LenientIfInteractive)
}

/// Validates answers against the JSON Schema of their agent ([`AgentConfig::output`](crate::port::AgentConfig::output)).
/// Accepts everything of an agent without one. JSON in a Markdown code fence counts without the fence.
///
/// A mismatch is [`CheckVerdict::Invalid`]: the model reads what is wrong and answers again, up to
/// [`Limits::invalid_outputs`](crate::limits::Limits::invalid_outputs) times in a row; then the turn ends
/// `invalid_output`.
///
/// ```
/// use harness_core::decide::check;
/// use harness_core::tool::ShallowSchemas;
///
/// // `harness_tools::JsonSchemas` knows all of JSON Schema.
/// let check = check::output(ShallowSchemas);
/// assert_eq!(check.guard().name.as_str(), "output");
/// ```
pub fn output(schemas: impl SchemaValidator + 'static) -> Guarded<dyn DynCheck> {
    func("output", Points::ANSWER, move |subject, _| {
        if let Subject::Answer { text, output: Some(schema), .. } = subject {
            judge_output(&schemas, schema, text)
        } else {
            CheckVerdict::Accept
        }
    })
}

fn judge_output(schemas: &impl SchemaValidator, schema: &Json, text: &str) -> CheckVerdict {
    let bare = without_fence(text.trim());
    let fits = |data| {
        let schema = schema.to().map_err(|error| error.to_string())?;
        schemas.check(&schema, &data).map_err(|problem| format!("it does not match its schema: {problem}"))
    };
    let parsed = serde_json::from_str(bare).map_err(|error| format!("it is not JSON: {error}"));
    match parsed.and_then(fits) {
        Ok(()) if bare.len() < text.trim().len() => CheckVerdict::Amend(bare.to_owned()),
        Ok(()) => CheckVerdict::Accept,
        Err(reason) => CheckVerdict::Invalid { reason },
    }
}

/// The content of a text that is one fenced code block; other texts are unchanged.
fn without_fence(text: &str) -> &str {
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let content = fenced.and_then(|block| block.split_once('\n')).map(|(_language, content)| content.trim());
    content.unwrap_or(text)
}

/// Combines checks that are called in parallel: the strictest verdict counts, and a refusal does not wait for the others.
/// An error of one is an error of all, unless another refuses.
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
