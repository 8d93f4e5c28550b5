//! Resuming work: the decisions, and whether they fit.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cx, Start};
use crate::ids::{AgentId, CallDigest, CallId, SessionId, ThreadId, TurnId};
use crate::json::Json;
use crate::message::{Message, UserMessage};
use crate::origin::Origin;
use crate::outcome::{CONTINUATION_VERSION, Continuation, ContinuationKind, Outcome, Stop, TotalUsage};
use crate::port::Decision;
use crate::transcript::Prefix;

/// A decision about one pending call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallDecision {
    /// The call, or the id of an approval that the model requested.
    pub call: CallId,
    /// The decision about it.
    pub decision: Decision,
    /// The digest that the decision is about, from [`PendingCall::digest`](crate::outcome::PendingCall::digest). It must
    /// equal that of the pending call. Default: not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<CallDigest>,
}

impl CallDecision {
    /// A decision about a call.
    pub fn new(call: impl Into<CallId>, decision: Decision) -> Self {
        Self { call: call.into(), decision, digest: None }
    }

    /// Runs it as it is.
    pub fn granted(call: impl Into<CallId>) -> Self {
        Self::new(call, Decision::Granted)
    }

    /// Does not run it; the model receives the reason.
    pub fn denied(call: impl Into<CallId>, reason: impl Into<String>) -> Self {
        Self::new(call, Decision::Denied { reason: reason.into() })
    }

    /// Runs it with these arguments.
    pub fn edited(call: impl Into<CallId>, arguments: Json) -> Self {
        Self::new(call, Decision::Edited(arguments))
    }

    /// Binds the decision to this digest.
    #[must_use]
    pub fn having_seen(mut self, digest: impl Into<CallDigest>) -> Self {
        self.digest = Some(digest.into());
        self
    }
}

/// The input that resumes a continuation.
///
/// ```
/// use harness_core::machine::{CallDecision, Resume};
/// use harness_core::outcome::Continuation;
///
/// /// Grants every pending call, as it was shown.
/// fn granted(parked: &Continuation) -> Resume {
///     let decisions = parked.pending.iter().map(|call| {
///         CallDecision::granted(call.call_id.clone()).having_seen(call.digest.clone())
///     });
///     Resume::decided(decisions)
/// }
/// # let _ = granted;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// The user's answer to a question.
    Clarification {
        /// The user's message.
        answer: Box<Message>,
    },
    /// Decisions about pending calls. Calls without a decision stay pending.
    Approval {
        /// At least one.
        decisions: Vec<CallDecision>,
    },
    /// More of the limit that was reached.
    Deferred {
        /// A message for the model.
        guidance: Option<Box<Message>>,
    },
}

impl Resume {
    /// The user's answer to a question.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Clarification { answer: Box::new(UserMessage::text(text).into()) }
    }

    /// Decisions about pending calls.
    pub fn decided(decisions: impl IntoIterator<Item = CallDecision>) -> Self {
        Self::Approval { decisions: decisions.into_iter().collect() }
    }

    /// Continues without a message.
    pub fn deferred() -> Self {
        Self::Deferred { guidance: None }
    }

    /// The kind of continuation that it resumes.
    pub fn kind(&self) -> ContinuationKind {
        match self {
            Self::Clarification { .. } => ContinuationKind::Clarification,
            Self::Approval { .. } => ContinuationKind::Approval,
            Self::Deferred { .. } => ContinuationKind::Deferred,
        }
    }
}

/// A difference between the place where work belongs and the place where it should be resumed.
///
/// ```
/// use harness_core::machine::{Misplaced, Place};
///
/// let misplaced =
///     Misplaced { place: Place::Thread, expected: Some("a".to_owned()), found: None };
/// assert_eq!(misplaced.to_string(), "belongs to thread `a`, not to no thread");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("belongs to {}, not to {}", place.named(expected.as_deref()), place.named(found.as_deref()))]
pub struct Misplaced {
    /// The kind of place that differs.
    pub place: Place,
    /// The name or hash of the place where the work belongs.
    pub expected: Option<String>,
    /// The name or hash of this place.
    pub found: Option<String>,
}

/// A kind of place that must be the same when work is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The session that stores the transcript.
    Session,
    /// The thread of the conversation.
    Thread,
    /// The descriptor of the agents, by its hash.
    Descriptor,
}

impl Place {
    fn named(self, name: Option<&str>) -> String {
        let what = match self {
            Self::Session => "session",
            Self::Thread => "thread",
            Self::Descriptor => "descriptor",
        };
        name.map_or_else(|| format!("no {what}"), |name| format!("{what} `{name}`"))
    }
}

impl Misplaced {
    /// What to do about it.
    pub(crate) fn hint(&self, accept: &str) -> String {
        if self.place == Place::Descriptor {
            format!("; accept the change with `{accept}`")
        } else {
            String::new()
        }
    }

    /// The first difference between where work belongs and `here`; `None` when there is none.
    pub(crate) fn find(
        session: Option<&SessionId>,
        thread: Option<&ThreadId>,
        descriptor: Option<&str>,
        here: &Origin,
    ) -> Option<Self> {
        let places = [
            (Place::Session, session.map(SessionId::as_str), here.session.as_ref().map(SessionId::as_str)),
            (Place::Thread, thread.map(ThreadId::as_str), here.thread.as_ref().map(ThreadId::as_str)),
            (Place::Descriptor, descriptor, here.descriptor_hash.as_deref()),
        ];
        let (place, expected, found) = places.into_iter().find(|(_, expected, found)| expected != found)?;
        let owned = |name: Option<&str>| name.map(str::to_owned);
        Some(Self { place, expected: owned(expected), found: owned(found) })
    }
}

/// An error of resuming a continuation: it does not fit this place, or the decisions. Nothing has started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It belongs to another session, thread or descriptor. A change of the descriptor can be accepted with
    /// [`Continuation::under_descriptor`].
    #[error("continuation `{id}` {misplaced}{}", misplaced.hint("under_descriptor"))]
    Elsewhere {
        /// The id of the continuation.
        id: String,
        /// The place that differs.
        misplaced: Misplaced,
    },
    /// The transcript has fewer messages than when the continuation was made.
    #[error("continuation `{id}` was made at {expected} messages; the transcript has only {found}")]
    Stale {
        /// The id of the continuation.
        id: String,
        /// Messages when it was made.
        expected: u64,
        /// Messages now.
        found: u64,
    },
    /// The conversation has continued since: it was resumed, or got another message.
    #[error(
        "continuation `{id}` was used or superseded: it was made at {expected} messages, the transcript has {found}"
    )]
    Consumed {
        /// The id of the continuation.
        id: String,
        /// Messages when it was made.
        expected: u64,
        /// Messages now.
        found: u64,
    },
    /// It needs another kind of input.
    #[error("continuation `{id}` needs {}, got {}", expected.as_str(), given.as_str())]
    OtherKind {
        /// The id of the continuation.
        id: String,
        /// The kind that it needs.
        expected: ContinuationKind,
        /// The kind that was given.
        given: ContinuationKind,
    },
    /// No decision was given.
    #[error("no decision given for continuation `{id}`; pending calls: {}", waiting.join(", "))]
    NothingDecided {
        /// The id of the continuation.
        id: String,
        /// The pending calls.
        waiting: Vec<String>,
    },
    /// The call is not pending.
    #[error("call `{call}` is not pending; pending calls: {}", waiting.join(", "))]
    NotParked {
        /// The id of the call.
        call: CallId,
        /// The pending calls.
        waiting: Vec<String>,
    },
    /// Two decisions about one call.
    #[error("two decisions given for call `{call}`")]
    DecidedTwice {
        /// The id of the call.
        call: CallId,
    },
    /// The decision is about other arguments, or another tool contract.
    #[error("the decision for call `{call}` is about {seen}, but {parked} is pending")]
    OtherCall {
        /// The id of the call.
        call: CallId,
        /// The digest of the decision.
        seen: CallDigest,
        /// The digest of the pending call.
        parked: CallDigest,
    },
    /// The model's own request has no arguments to edit.
    #[error("request `{request}` can only be granted or denied")]
    NotEditable {
        /// The id of the request.
        request: CallId,
    },
}

impl ResumeError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Elsewhere { misplaced, .. } => match misplaced.place {
                Place::Session => "resume.other_session",
                Place::Thread => "resume.other_thread",
                Place::Descriptor => "resume.other_descriptor",
            },
            Self::Stale { .. } => "resume.stale",
            Self::Consumed { .. } => "resume.consumed",
            Self::OtherKind { .. } => "resume.other_kind",
            Self::NothingDecided { .. } => "resume.nothing_decided",
            Self::NotParked { .. } => "resume.not_parked",
            Self::DecidedTwice { .. } => "resume.decided_twice",
            Self::OtherCall { .. } => "resume.other_call",
            Self::NotEditable { .. } => "resume.not_editable",
        }
    }
}

impl Continuation {
    /// The continuation of work that stops now; `None` when the stop cannot be resumed.
    pub(crate) fn of(cx: &Cx<'_>, stop: &Stop, agent: Option<AgentId>, usage: &TotalUsage) -> Option<Self> {
        let kind = match stop.outcome() {
            Outcome::NeedsClarification => ContinuationKind::Clarification,
            Outcome::AwaitingApproval => ContinuationKind::Approval,
            Outcome::Deferred => ContinuationKind::Deferred,
            Outcome::Completed | Outcome::Failed => return None,
        };
        let origin = &cx.sh.origin;
        let turn_id = origin.turn.clone().unwrap_or_else(|| TurnId::from("turn"));
        Some(Self {
            version: CONTINUATION_VERSION,
            id: format!("{turn_id}:{}", kind.as_str()),
            kind,
            created_at: cx.now,
            turn_id,
            session_id: origin.session.clone(),
            thread_id: origin.thread.clone(),
            assistant_id: origin.assistant.as_deref().map(str::to_owned),
            descriptor_hash: origin.descriptor_hash.as_deref().map(str::to_owned),
            stop_reason: stop.reason,
            agent,
            transcript_len: cx.log.len() as u64,
            question: None,
            request: None,
            pending: Vec::new(),
            waiting: Vec::new(),
            iteration: cx.sh.iteration,
            tool_call_count: usage.tool_calls,
            usage: usage.clone(),
            replaced_by: None,
        })
    }
}

impl Continuation {
    /// Accepts another descriptor: agents and tools may have changed. An approval of a changed tool is still refused.
    #[must_use]
    pub fn under_descriptor(mut self, hash: Option<impl Into<String>>) -> Self {
        self.descriptor_hash = hash.map(Into::into);
        self
    }

    /// Checks that it belongs here: session, thread, descriptor, and a transcript that has not continued since. Results
    /// of pending calls may have been added, as after a crash during a resume.
    ///
    /// # Errors
    /// The first difference.
    pub fn verify(&self, origin: &Origin, log: &Prefix) -> Result<(), ResumeError> {
        let id = || self.id.clone();
        let (session, thread) = (self.session_id.as_ref(), self.thread_id.as_ref());
        if let Some(misplaced) = Misplaced::find(session, thread, self.descriptor_hash.as_deref(), origin) {
            return Err(ResumeError::Elsewhere { id: id(), misplaced });
        }
        let (expected, found) = (self.transcript_len, log.len() as u64);
        if found < expected {
            return Err(ResumeError::Stale { id: id(), expected, found });
        }
        if found > expected && !self.is_half_resumed(log) || self.has_lost_its_calls(log) {
            return Err(ResumeError::Consumed { id: id(), expected, found });
        }
        Ok(())
    }

    /// Whether only results of the pending calls' batch were added, and one of them is still open.
    fn is_half_resumed(&self, log: &Prefix) -> bool {
        let from = usize::try_from(self.transcript_len).unwrap_or(usize::MAX);
        log.range(from..log.len()).all(|message| message.as_tool_result().is_some())
            && self.pending.iter().any(|pending| is_open(log, pending.message, &pending.call_id))
    }

    /// Whether no pending call is where it was.
    fn has_lost_its_calls(&self, log: &Prefix) -> bool {
        !self.pending.is_empty()
            && !self.pending.iter().any(|pending| is_open(log, pending.message, &pending.call_id))
    }

    /// Makes the start of a turn that resumes this one. Checks the place and the decisions.
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub fn start(self, resume: Resume, origin: &Origin, log: &Prefix) -> Result<Start, ResumeError> {
        self.verify(origin, log)?;
        if resume.kind() != self.kind {
            return Err(ResumeError::OtherKind { id: self.id, expected: self.kind, given: resume.kind() });
        }
        let mut start =
            Start { agent: self.agent.clone(), waiting: self.waiting.clone(), ..Start::default() };
        match resume {
            Resume::Clarification { answer } => start.prompt.push(Arc::new(*answer)),
            Resume::Deferred { guidance } => {
                start.prompt.extend(guidance.map(|guidance| Arc::new(*guidance)));
            }
            Resume::Approval { decisions } => {
                self.check(&decisions)?;
                if self.pending.is_empty() {
                    start.prompt.extend(decisions.iter().map(|decision| self.result_of(decision)));
                } else {
                    start.decisions = decisions;
                }
            }
        }
        start.continuation = Some(Box::new(self));
        Ok(start)
    }

    fn check(&self, decisions: &[CallDecision]) -> Result<(), ResumeError> {
        let waiting = || {
            let calls = self.pending.iter().map(|pending| pending.call_id.as_str());
            let request = self.request.iter().map(|request| request.id.as_str());
            calls.chain(request).map(|id| format!("`{id}`")).collect()
        };
        if decisions.is_empty() {
            return Err(ResumeError::NothingDecided { id: self.id.clone(), waiting: waiting() });
        }
        for (at, decision) in decisions.iter().enumerate() {
            let call = decision.call.clone();
            if decisions.iter().take(at).any(|before| before.call == call) {
                return Err(ResumeError::DecidedTwice { call });
            }
            let parked = self.pending.iter().find(|pending| pending.call_id == call);
            let is_request = self.request.as_ref().is_some_and(|request| call == request.id.as_str());
            match (parked, is_request) {
                (None, false) => return Err(ResumeError::NotParked { call, waiting: waiting() }),
                (None, true) if !matches!(decision.decision, Decision::Granted | Decision::Denied { .. }) => {
                    return Err(ResumeError::NotEditable { request: call });
                }
                (None, true) => {}
                (Some(parked), _) => {
                    let seen = decision.digest.as_ref().filter(|seen| **seen != parked.digest);
                    if let Some(seen) = seen {
                        let (seen, parked) = (seen.clone(), parked.digest.clone());
                        return Err(ResumeError::OtherCall { call, seen, parked });
                    }
                }
            }
        }
        Ok(())
    }

    /// The message to the model about a decision on its own request.
    fn result_of(&self, decision: &CallDecision) -> Arc<Message> {
        let summary = self.request.as_ref().map(|request| request.summary.as_str()).unwrap_or_default();
        let text = match &decision.decision {
            Decision::Denied { reason } => format!("Not approved: {summary} ({reason})"),
            Decision::Granted | Decision::Edited(_) | Decision::Later => format!("Approved: {summary}"),
        };
        Arc::new(UserMessage::text(text).into())
    }
}

/// Whether a call of the message at `at` has no result.
fn is_open(log: &Prefix, at: u64, call: &CallId) -> bool {
    let Ok(at) = usize::try_from(at) else { return false };
    let Some(answer) = log.get(at).and_then(|message| message.as_assistant()) else { return false };
    let results = log.range(at.saturating_add(1)..log.len());
    let answered = results.take_while(|message| message.as_tool_result().is_some()).count();
    answer.tool_calls().skip(answered).any(|open| open.id == *call)
}
