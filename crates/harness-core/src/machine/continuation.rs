//! Taking work up again: what is decided, and whether it fits.

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

/// What was decided about one parked call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallDecision {
    /// The call; of an approval that the model asked for, the id of its request.
    pub call: CallId,
    /// What was decided.
    pub decision: Decision,
    /// What the one who decided has seen, from [`PendingCall::digest`](crate::outcome::PendingCall::digest). When
    /// it is given, it must be what is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<CallDigest>,
}

impl CallDecision {
    /// A decision about a call.
    pub fn new(call: impl Into<CallId>, decision: Decision) -> Self {
        Self { call: call.into(), decision, digest: None }
    }

    /// Run it as it is.
    pub fn granted(call: impl Into<CallId>) -> Self {
        Self::new(call, Decision::Granted)
    }

    /// Do not run it; the model is told why.
    pub fn denied(call: impl Into<CallId>, reason: impl Into<String>) -> Self {
        Self::new(call, Decision::Denied { reason: reason.into() })
    }

    /// Run it with these arguments.
    pub fn edited(call: impl Into<CallId>, arguments: Json) -> Self {
        Self::new(call, Decision::Edited(arguments))
    }

    /// The same decision, for exactly what was seen.
    #[must_use]
    pub fn having_seen(mut self, digest: impl Into<CallDigest>) -> Self {
        self.digest = Some(digest.into());
        self
    }
}

/// What takes the work up again.
///
/// ```
/// use harness_core::machine::{CallDecision, Resume};
/// use harness_core::outcome::Continuation;
///
/// /// Grants every call that is parked, as it was shown.
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
        /// What the user says.
        answer: Box<Message>,
    },
    /// What was decided about parked calls. Those that nothing is said of stay parked.
    Approval {
        /// At least one.
        decisions: Vec<CallDecision>,
    },
    /// There is more of what had run out.
    Deferred {
        /// What the model is told, if anything.
        guidance: Option<Box<Message>>,
    },
}

impl Resume {
    /// The user's answer to a question.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Clarification { answer: Box::new(UserMessage::text(text).into()) }
    }

    /// Decisions about parked calls.
    pub fn decided(decisions: impl IntoIterator<Item = CallDecision>) -> Self {
        Self::Approval { decisions: decisions.into_iter().collect() }
    }

    /// Go on.
    pub fn go_on() -> Self {
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

/// Why a continuation does not fit the place where it is to be resumed, or the decisions do not fit it.
/// Nothing has begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It belongs to another session.
    #[error("the continuation `{id}` belongs to {}, not to {}", named("session", expected.as_deref()), named("session", found.as_deref()))]
    OtherSession {
        /// The continuation.
        id: String,
        /// Its session.
        expected: Option<String>,
        /// The session here.
        found: Option<String>,
    },
    /// It belongs to another thread.
    #[error("the continuation `{id}` belongs to {}, not to {}", named("thread", expected.as_deref()), named("thread", found.as_deref()))]
    OtherThread {
        /// The continuation.
        id: String,
        /// Its thread.
        expected: Option<String>,
        /// The thread here.
        found: Option<String>,
    },
    /// The turn ran under another descriptor.
    #[error(
        "the continuation `{id}` was made under {}, and this is {}; to resume it all the same, say so with `under_descriptor`",
        named("descriptor", expected.as_deref()),
        named("descriptor", found.as_deref())
    )]
    OtherDescriptor {
        /// The continuation.
        id: String,
        /// The hash of its descriptor.
        expected: Option<String>,
        /// The hash of the descriptor here.
        found: Option<String>,
    },
    /// The transcript lacks messages that the continuation knows.
    #[error("the continuation `{id}` was made at {expected} messages, and the transcript has only {found}")]
    Stale {
        /// The continuation.
        id: String,
        /// Messages when it was made.
        expected: u64,
        /// Messages now.
        found: u64,
    },
    /// The conversation has gone on since: it was resumed, or something else was said.
    #[error(
        "the continuation `{id}` was used or superseded: it was made at {expected} messages, and the transcript has {found}"
    )]
    Consumed {
        /// The continuation.
        id: String,
        /// Messages when it was made.
        expected: u64,
        /// Messages now.
        found: u64,
    },
    /// It waits for something else.
    #[error("the continuation `{id}` waits for {}, and was given {}", expected.as_str(), given.as_str())]
    OtherKind {
        /// The continuation.
        id: String,
        /// What it waits for.
        expected: ContinuationKind,
        /// What was given.
        given: ContinuationKind,
    },
    /// Nothing was decided.
    #[error("nothing was decided about the continuation `{id}`: it waits for {}", waiting.join(", "))]
    NothingDecided {
        /// The continuation.
        id: String,
        /// What waits.
        waiting: Vec<String>,
    },
    /// There is no such parked call.
    #[error("the call `{call}` is not parked; {} is", waiting.join(", "))]
    NotParked {
        /// The call.
        call: CallId,
        /// What waits.
        waiting: Vec<String>,
    },
    /// A call was decided about twice.
    #[error("two decisions were given about the call `{call}`")]
    DecidedTwice {
        /// The call.
        call: CallId,
    },
    /// The one who decided has seen another call.
    #[error("the decision about `{call}` was made about {seen}, and {parked} is parked")]
    OtherCall {
        /// The call.
        call: CallId,
        /// The digest that was seen.
        seen: CallDigest,
        /// The digest of what is parked.
        parked: CallDigest,
    },
    /// The model's own request has no arguments that could be changed.
    #[error("the request `{request}` can be granted or denied, and nothing else")]
    NotEditable {
        /// The request.
        request: CallId,
    },
}

fn named(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("no {what}"), |name| format!("{what} `{name}`"))
}

impl ResumeError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OtherSession { .. } => "resume.other_session",
            Self::OtherThread { .. } => "resume.other_thread",
            Self::OtherDescriptor { .. } => "resume.other_descriptor",
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
    /// What resumes work that stopped now; `None` when the stop cannot be resumed.
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
    /// The same continuation for another descriptor: an explicit choice, because agents and tools may not
    /// be what they were. What was approved of a tool that has changed is still refused.
    #[must_use]
    pub fn under_descriptor(mut self, hash: Option<impl Into<String>>) -> Self {
        self.descriptor_hash = hash.map(Into::into);
        self
    }

    /// Whether it belongs to this place: session, thread, descriptor, and a transcript that has not gone
    /// on since. Results of its own calls may have been added, as a crash in the middle of resuming
    /// leaves them.
    ///
    /// # Errors
    /// What does not fit.
    pub fn verify(&self, origin: &Origin, log: &Prefix) -> Result<(), ResumeError> {
        let id = || self.id.clone();
        let text = |name: Option<&str>| name.map(str::to_owned);
        let session = origin.session.as_ref().map(SessionId::as_str);
        let own = self.session_id.as_ref().map(SessionId::as_str);
        if own != session {
            return Err(ResumeError::OtherSession { id: id(), expected: text(own), found: text(session) });
        }
        let thread = origin.thread.as_ref().map(ThreadId::as_str);
        let own = self.thread_id.as_ref().map(ThreadId::as_str);
        if own != thread {
            return Err(ResumeError::OtherThread { id: id(), expected: text(own), found: text(thread) });
        }
        let descriptor = origin.descriptor_hash.as_deref();
        let own = self.descriptor_hash.as_deref();
        if own != descriptor {
            let (expected, found) = (text(own), text(descriptor));
            return Err(ResumeError::OtherDescriptor { id: id(), expected, found });
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

    /// Whether only results of the parked calls' batch were added, and one of them is still open.
    fn is_half_resumed(&self, log: &Prefix) -> bool {
        let from = usize::try_from(self.transcript_len).unwrap_or(usize::MAX);
        log.range(from..log.len()).all(|message| message.as_tool_result().is_some())
            && self.pending.iter().any(|pending| is_open(log, pending.message, &pending.call_id))
    }

    /// Whether parked calls are not where they were.
    fn has_lost_its_calls(&self, log: &Prefix) -> bool {
        !self.pending.is_empty()
            && !self.pending.iter().any(|pending| is_open(log, pending.message, &pending.call_id))
    }

    /// What begins a turn that resumes this one: checks the place and the decisions.
    ///
    /// # Errors
    /// What does not fit; see [`ResumeError`].
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
        Ok(start.with_continuation(Some(self)))
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

    /// What the model is told of a decision about its own request.
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
