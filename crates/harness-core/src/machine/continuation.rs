//! Resuming work: the decisions, and whether they fit.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cx, Start};
use crate::ids::{AgentId, CallDigest, CallId, SessionId, ThreadId, TurnId};
use crate::json::Json;
use crate::message::{Message, UserMessage};
use crate::origin::Origin;
use crate::outcome::{
    CONTINUATION_VERSION, Continuation, ContinuationKind, Outcome, PendingCall, Stop, TotalUsage,
};
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "ResumeFields")]
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

/// The fields of a [`Resume`]. A derived reader of a tagged enum buffers them, and loses the exact JSON of arguments.
#[derive(Deserialize)]
struct ResumeFields {
    kind: ContinuationKind,
    answer: Option<Box<Message>>,
    decisions: Option<Vec<CallDecision>>,
    guidance: Option<Box<Message>>,
}

impl TryFrom<ResumeFields> for Resume {
    type Error = &'static str;

    fn try_from(fields: ResumeFields) -> Result<Self, Self::Error> {
        Ok(match fields.kind {
            ContinuationKind::Clarification => {
                Self::Clarification { answer: fields.answer.ok_or("missing field `answer`")? }
            }
            ContinuationKind::Approval => {
                Self::Approval { decisions: fields.decisions.ok_or("missing field `decisions`")? }
            }
            ContinuationKind::Deferred => Self::Deferred { guidance: fields.guidance },
        })
    }
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

crate::wire_enum! {
    /// Reason why a continuation or a run cannot be resumed.
    #[non_exhaustive]
    pub enum ResumeErrorKind {
        /// The continuation belongs to another session.
        OtherSession = "resume.other_session",
        /// The continuation belongs to another thread.
        OtherThread = "resume.other_thread",
        /// The continuation was made under another descriptor.
        OtherDescriptor = "resume.other_descriptor",
        /// The transcript has fewer messages than when the continuation was made.
        Stale = "resume.stale",
        /// The continuation was resumed before, or the conversation has continued since.
        Consumed = "resume.consumed",
        /// The continuation needs another kind of input.
        OtherKind = "resume.other_kind",
        /// No decision was given.
        NothingDecided = "resume.nothing_decided",
        /// Two decisions were given about one call.
        DecidedTwice = "resume.decided_twice",
        /// The call is not pending.
        NotParked = "resume.not_parked",
        /// The decision is about other arguments, or another tool contract.
        OtherCall = "resume.other_call",
        /// The request has no arguments to edit, or its call has started.
        NotEditable = "resume.not_editable",
        /// The checkpoint has another version.
        RunVersion = "run_resume.version",
        /// The checkpoint cannot be read.
        RunUnreadable = "run_resume.unreadable",
        /// The run belongs to another session or thread.
        RunElsewhere = "run_resume.elsewhere",
        /// The run was started under another descriptor.
        RunOtherDescriptor = "run_resume.other_descriptor",
        /// The transcript has fewer messages than at the checkpoint.
        RunStale = "run_resume.stale",
        /// The transcript is that of another conversation.
        RunForeign = "run_resume.foreign",
        /// The control of the run cannot read its saved state.
        RunControl = "run_resume.control",
    }
}

/// An error of resuming a continuation or a run: it does not fit this place, or the decisions. Nothing has started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ResumeError {
    /// The reason; its [code](ResumeErrorKind::as_str) is stable.
    pub kind: ResumeErrorKind,
    /// The problem and what to do; quotes nothing of the state.
    pub message: String,
}

impl ResumeError {
    pub(crate) fn new(kind: ResumeErrorKind, message: String) -> Self {
        Self { kind, message }
    }
}

/// The first difference between where work belongs and `here`: what differs, and the sentence about it.
pub(crate) fn misplaced(
    session: Option<&SessionId>,
    thread: Option<&ThreadId>,
    descriptor: Option<&str>,
    here: &Origin,
) -> Option<(&'static str, String)> {
    let places = [
        ("session", session.map(SessionId::as_str), here.session.as_ref().map(SessionId::as_str)),
        ("thread", thread.map(ThreadId::as_str), here.thread.as_ref().map(ThreadId::as_str)),
        ("descriptor", descriptor, here.descriptor_hash.as_deref()),
    ];
    let (place, expected, found) = places.into_iter().find(|(_, expected, found)| expected != found)?;
    let named = |name: Option<&str>| match name {
        Some(name) => format!("{place} `{name}`"),
        None => format!("no {place}"),
    };
    Some((place, format!("belongs to {}, not to {}", named(expected), named(found))))
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
        let id = &self.id;
        let (session, thread) = (self.session_id.as_ref(), self.thread_id.as_ref());
        if let Some((place, text)) = misplaced(session, thread, self.descriptor_hash.as_deref(), origin) {
            let (kind, hint) = match place {
                "session" => (ResumeErrorKind::OtherSession, ""),
                "thread" => (ResumeErrorKind::OtherThread, ""),
                _ => (ResumeErrorKind::OtherDescriptor, "; accept the change with `under_descriptor`"),
            };
            return Err(ResumeError::new(kind, format!("continuation `{id}` {text}{hint}")));
        }
        let (expected, found) = (self.transcript_len, log.len() as u64);
        if found < expected {
            let text = format!(
                "continuation `{id}` was made at {expected} messages; the transcript has only {found}"
            );
            return Err(ResumeError::new(ResumeErrorKind::Stale, text));
        }
        // Results of the calls may have been added, as long as one of them is open.
        let from = usize::try_from(expected).unwrap_or(usize::MAX);
        let added_results = log.range(from..log.len()).all(|message| message.as_tool_result().is_some());
        let is_open = self.pending.iter().any(|pending| is_open(log, pending));
        if found > expected && !(added_results && is_open) || !(is_open || self.pending.is_empty()) {
            let text = format!(
                "continuation `{id}` was used or superseded: it was made at {expected} messages, the transcript has \
                 {found}"
            );
            return Err(ResumeError::new(ResumeErrorKind::Consumed, text));
        }
        Ok(())
    }

    /// Makes the start of a turn that resumes this one. Checks the place and the decisions.
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub fn start(self, resume: Resume, origin: &Origin, log: &Prefix) -> Result<Start, ResumeError> {
        self.verify(origin, log)?;
        if resume.kind() != self.kind {
            let (id, needed, given) = (&self.id, self.kind, resume.kind());
            let text = format!("continuation `{id}` needs {needed}, got {given}");
            return Err(ResumeError::new(ResumeErrorKind::OtherKind, text));
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

    /// Makes the start of a turn that resumes this one, with `messages` after what `resume` says. Without `resume`, the messages
    /// are the answer.
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub fn start_with(
        self,
        resume: Option<Resume>,
        messages: Vec<Arc<Message>>,
        origin: &Origin,
        log: &Prefix,
    ) -> Result<Start, ResumeError> {
        let mut start = if let Some(resume) = resume {
            self.start(resume, origin, log)?
        } else {
            self.verify(origin, log)?;
            let (agent, waiting) = (self.agent.clone(), self.waiting.clone());
            Start { agent, waiting, continuation: Some(Box::new(self)), ..Start::resume() }
        };
        start.prompt.extend(messages);
        Ok(start)
    }

    fn check(&self, decisions: &[CallDecision]) -> Result<(), ResumeError> {
        let waiting = || {
            let calls = self.pending.iter().map(|pending| pending.call_id.as_str());
            let request = self.request.iter().map(|request| request.id.as_str());
            let ids: Vec<_> = calls.chain(request).map(|id| format!("`{id}`")).collect();
            ids.join(", ")
        };
        let refused = |kind, text| Err(ResumeError::new(kind, text));
        if decisions.is_empty() {
            let (id, waiting) = (&self.id, waiting());
            let text = format!("no decision given for continuation `{id}`; pending calls: {waiting}");
            return refused(ResumeErrorKind::NothingDecided, text);
        }
        for (at, CallDecision { call, decision, digest }) in decisions.iter().enumerate() {
            if decisions.iter().take(at).any(|before| before.call == *call) {
                return refused(
                    ResumeErrorKind::DecidedTwice,
                    format!("two decisions given for call `{call}`"),
                );
            }
            if let Some(parked) = self.pending.iter().find(|pending| pending.call_id == *call) {
                if let Some(seen) = digest.as_ref().filter(|seen| **seen != parked.digest) {
                    let parked = &parked.digest;
                    let text =
                        format!("the decision for call `{call}` is about {seen}, but {parked} is pending");
                    return refused(ResumeErrorKind::OtherCall, text);
                }
                if parked.work.is_some() && matches!(decision, Decision::Edited(_)) {
                    let text = format!("call `{call}` has started; it can only be granted or denied");
                    return refused(ResumeErrorKind::NotEditable, text);
                }
            } else if self.request.as_ref().is_none_or(|request| *call != request.id.as_str()) {
                let text = format!("call `{call}` is not pending; pending calls: {}", waiting());
                return refused(ResumeErrorKind::NotParked, text);
            } else if !matches!(decision, Decision::Granted | Decision::Denied { .. }) {
                let text = format!("request `{call}` can only be granted or denied");
                return refused(ResumeErrorKind::NotEditable, text);
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

/// Whether a pending call is one of the last batch, and has no result.
fn is_open(log: &Prefix, pending: &PendingCall) -> bool {
    log.last_batch().is_some_and(|(at, answer, answered)| {
        let mut open = answer.tool_calls().skip(answered);
        at as u64 == pending.message && open.any(|call| call.id == pending.call_id)
    })
}
