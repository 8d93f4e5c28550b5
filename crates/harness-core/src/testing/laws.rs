//! Laws that every run keeps, as checks of a finished run.
//!
//! The checks read events, messages and ends, so they work on runs of any program:
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::driver::{Ports, drive};
//! use harness_core::machine::Start;
//! use harness_core::message::{AssistantMessage, Message};
//! use harness_core::testing::{EventLog, ScriptedModel, VirtualClock, laws};
//! use harness_core::transcript::Transcript;
//! use harness_core::turn::{Turn, TurnSpec};
//! use harness_core::{Cancel, Origin, Time};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let (model, events) = (ScriptedModel::new([AssistantMessage::text("Hello.")]), EventLog::default());
//! let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
//! ports.hub.fold(events.clone());
//! let spec = Arc::new(TurnSpec::default());
//! let mut turn = Turn::new(Arc::clone(&spec), Origin::default(), Transcript::default());
//! let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("Hi"))).await;
//! laws::calls(turn.log().iter(), &end)?;
//! laws::end(&end)?;
//! laws::limits(&end, &spec.limits.amount())?;
//! laws::events(&events.events())?;
//! # Ok::<(), laws::BrokenLaw>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{Event, EventKind};
use crate::ids::{CallId, RunId};
use crate::limits::Amount;
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::outcome::{ContinuationKind, End, Evidence, Outcome, StopReason};
use crate::transcript;

/// Broken law: its number, and what is wrong where.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::{Message, ToolCall, ToolResultMessage};
/// use harness_core::testing::laws;
///
/// let call = ToolCall::new("c1", "add", Json::empty_object());
/// let stray = Arc::new(Message::from(ToolResultMessage::new(&call, Vec::new(), false)));
/// let broken = laws::transcript([&stray]).unwrap_err();
/// assert_eq!(broken.to_string(), "law 1 is broken: message 1: result without a call (`c1`)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("law {law} is broken: {message}")]
#[non_exhaustive]
pub struct BrokenLaw {
    /// Number of the law.
    pub law: u8,
    /// Description, with the place.
    pub message: String,
}

fn ensure(holds: bool, law: u8, message: impl FnOnce() -> String) -> Result<(), BrokenLaw> {
    if holds { Ok(()) } else { Err(BrokenLaw { law, message: message() }) }
}

/// Checks law 1 on a transcript without open calls: each call has exactly one result, in call order, directly after
/// its answer. Calls of an interrupted answer never ran and may lack results.
///
/// # Errors
/// The first defect.
pub fn transcript<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Result<(), BrokenLaw> {
    let messages: Vec<_> = messages.into_iter().collect();
    pairs(&messages)?;
    let open = open_calls(&messages);
    ensure(open.is_empty(), 1, || format!("calls without results at the end: {}", open.join(", ")))
}

/// Checks law 1 as [`transcript()`] does, on the transcript of a run. Only calls that await approval may lack results.
///
/// # Errors
/// The first defect.
pub fn calls<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>, end: &End) -> Result<(), BrokenLaw> {
    let is_pending = end.continuation.as_ref().is_some_and(|continuation| !continuation.pending.is_empty());
    if !is_pending {
        return transcript(messages);
    }
    pairs(&messages.into_iter().collect::<Vec<_>>())
}

fn pairs(messages: &[&Arc<Message>]) -> Result<(), BrokenLaw> {
    match transcript::check(messages.iter().copied()).first() {
        Some(defect) => Err(BrokenLaw { law: 1, message: format!("message {}: {defect}", defect.at + 1) }),
        None => Ok(()),
    }
}

/// Calls of the last answer without a result.
fn open_calls(messages: &[&Arc<Message>]) -> Vec<String> {
    let is_result = |message: &&&Arc<Message>| message.as_tool_result().is_some();
    let results = messages.iter().rev().take_while(is_result).count();
    let before = messages.len() - results;
    let answer = messages.get(..before).and_then(<[_]>::last).and_then(|message| message.as_assistant());
    let ran =
        answer.filter(|answer| !matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted));
    let calls = ran.into_iter().flat_map(AssistantMessage::tool_calls);
    calls.skip(results).map(|call| format!("`{}`", call.id)).collect()
}

/// Checks law 2 on an end: evidence and continuation fit the stop reason.
///
/// # Errors
/// The part that does not fit.
pub fn end(end: &End) -> Result<(), BrokenLaw> {
    let (reason, evidence) = (end.reason(), &end.stop.evidence);
    #[expect(clippy::wildcard_enum_match_arm, reason = "other reasons have no rule here")]
    let fits = match reason {
        StopReason::MaxIterationsReached
        | StopReason::MaxToolCallsReached
        | StopReason::TimeoutReached
        | StopReason::MaxTurnsReached => is_limit(evidence, reason),
        StopReason::BudgetReached | StopReason::ContextOverflow => {
            matches!(evidence, Evidence::Fault(_)) || is_limit(evidence, reason)
        }
        StopReason::Cancelled => matches!(evidence, Evidence::Cancelled { .. }),
        StopReason::GuardrailTriggered => matches!(evidence, Evidence::Guardrail { .. }),
        StopReason::CompletionWaived => !end.waived.is_empty(),
        _ => true,
    };
    ensure(fits, 2, || format!("evidence of `{reason}` is {evidence:?}"))?;
    let expected = match end.outcome() {
        Outcome::NeedsClarification => Some(ContinuationKind::Clarification),
        Outcome::AwaitingApproval => Some(ContinuationKind::Approval),
        Outcome::Deferred => Some(ContinuationKind::Deferred),
        Outcome::Completed | Outcome::Failed => None,
    };
    let kind = end.continuation.as_ref().map(|continuation| continuation.kind);
    ensure(kind.is_none() || kind == expected, 2, || format!("continuation of `{reason}` is {kind:?}"))
}

fn is_limit(evidence: &Evidence, reason: StopReason) -> bool {
    matches!(evidence, Evidence::Limit(reached) if StopReason::from(reached.limit) == reason)
}

/// Checks law 3 on an end: iterations and tool calls are within the limits of the turn
/// ([`Limits::amount`](crate::limits::Limits::amount)) or of the run. Tokens and cost are known only after a response, so
/// the last response may exceed their limits; they are not checked.
///
/// # Errors
/// The limit that is exceeded.
pub fn limits(end: &End, limits: &Amount) -> Result<(), BrokenLaw> {
    ensure(end.iterations <= limits.iterations, 3, || {
        format!("{} iterations exceed the limit of {}", end.iterations, limits.iterations)
    })?;
    ensure(end.usage.tool_calls <= limits.tool_calls, 3, || {
        format!("{} tool calls exceed the limit of {}", end.usage.tool_calls, limits.tool_calls)
    })
}

/// Checks law 7 on the events of finished runs, in the order of their receipt: the numbers of each run have no gaps, its
/// time does not go back, its end is its last event, and each call that started ended once, unless its work waits for approval.
///
/// # Errors
/// The first event out of place.
pub fn events(events: &[Event]) -> Result<(), BrokenLaw> {
    let mut runs: BTreeMap<Option<&RunId>, Vec<&Event>> = BTreeMap::new();
    for event in events {
        let run = runs.entry(event.origin.run.as_ref()).or_default();
        if event.seq == 0 && !run.is_empty() {
            one_run(&std::mem::take(run))?;
        }
        run.push(event);
    }
    runs.values().try_for_each(|run| one_run(run))
}

fn one_run(events: &[&Event]) -> Result<(), BrokenLaw> {
    for (before, event) in events.iter().zip(events.iter().skip(1)) {
        let seq = event.seq;
        ensure(seq == before.seq + 1, 7, || format!("event {seq} follows event {}", before.seq))?;
        ensure(event.at >= before.at, 7, || format!("event {seq} is earlier than event {}", before.seq))?;
    }
    let is_after = |event: &Event| {
        matches!(event.kind, EventKind::MessageAppended { .. } | EventKind::PartFailed { .. })
    };
    let is_run = events.iter().any(|event| matches!(event.kind, EventKind::RunStarted { .. }));
    let is_end = |event: &Event| {
        matches!(event.kind, EventKind::RunFinished { .. })
            || !is_run && matches!(event.kind, EventKind::TurnFinished { .. })
    };
    let ends = events.iter().filter(|event| is_end(event)).count();
    ensure(ends == 1, 2, || format!("a run ended {ends} times"))?;
    let last = events.iter().rfind(|event| !is_after(event));
    ensure(last.is_some_and(|event| is_end(event)), 7, || "the end is not the last event".to_owned())?;
    ended_calls(events)
}

fn ended_calls(events: &[&Event]) -> Result<(), BrokenLaw> {
    let mut open: BTreeMap<&CallId, i64> = BTreeMap::new();
    for event in events {
        if let EventKind::ToolStarted { call } = &event.kind {
            *open.entry(&call.id).or_default() += 1;
        }
        if let EventKind::ToolFinished { call, .. } | EventKind::ToolFailed { call, ran: true, .. } =
            &event.kind
        {
            *open.entry(&call.id).or_default() -= 1;
        }
    }
    match open.into_iter().find(|(call, count)| *count != i64::from(waits(events, call))) {
        Some((call, count)) if count > 0 => {
            ensure(false, 7, || format!("call `{call}` started and did not end"))
        }
        Some((call, _)) => ensure(false, 7, || format!("call `{call}` ended and did not start")),
        None => Ok(()),
    }
}

/// Whether a call is pending at the end, with work that it started.
fn waits(events: &[&Event], call: &CallId) -> bool {
    let end = events.iter().rev().find_map(|event| {
        let (EventKind::RunFinished { end } | EventKind::TurnFinished { end }) = &event.kind else {
            return None;
        };
        Some(end)
    });
    let mut pending =
        end.and_then(|end| end.continuation.as_ref()).into_iter().flat_map(|made| &made.pending);
    pending.any(|pending| pending.call_id == *call && pending.work.is_some())
}
