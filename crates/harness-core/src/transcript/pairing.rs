//! Calls and their results: validation and repair of transcripts.
//!
//! Law 1 in data: each call of an answer has exactly one result, in call order, directly after the answer. The last
//! answer may lack results from some call on, if nothing follows it. An interrupted answer ([`FinishReason::Error`],
//! [`FinishReason::Aborted`]) may lack any, because its calls never ran.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::json::Json;
use crate::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage};

/// Text of the result that replaces a missing one.
const INTERRUPTED: &str =
    "The result of this call was lost. It may have taken effect: check before it is repeated.";

/// Kind of a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DefectKind {
    /// Result without a call.
    ResultWithoutCall,
    /// Second result of one call.
    DuplicateResult,
    /// Result out of call order.
    ResultOutOfOrder,
    /// Call without a result, followed by another message.
    CallWithoutResult,
}

impl fmt::Display for DefectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ResultWithoutCall => "result without a call",
            Self::DuplicateResult => "second result of one call",
            Self::ResultOutOfOrder => "result out of order",
            Self::CallWithoutResult => "call without a result",
        })
    }
}

/// Defect in the pairing of calls and results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Defect {
    /// Position of the result, or of the answer with the call.
    pub at: usize,
    /// Call id.
    pub call: CallId,
    /// Kind of the defect.
    pub kind: DefectKind,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id: String = self.call.as_str().chars().take(60).collect();
        write!(f, "{} (`{}`)", self.kind, id.escape_debug())
    }
}

/// Result of [`repair`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Message, ToolCall};
/// use harness_core::transcript::{Defect, DefectKind, Provenance, Repaired, check, repair};
///
/// let answer = AssistantMessage::calls([ToolCall::new("c1", "search", Json::empty_object())]);
/// let log = [Arc::new(answer.into()), Arc::new(Message::user("Never mind."))];
/// let Repaired { messages, defects, .. } = repair(&log);
/// assert_eq!(check(&log), defects);
/// assert!(matches!(defects.as_slice(), [Defect { kind: DefectKind::CallWithoutResult, .. }]));
/// assert!(matches!(messages.as_slice(), [(_, Provenance::Kept(0)), (_, Provenance::Made { .. }), (_, Provenance::Kept(1))]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Messages of a legal transcript, with their provenance.
    pub messages: Vec<(Arc<Message>, Provenance)>,
    /// Repaired defects, in message order; empty if the transcript was legal.
    pub defects: Vec<Defect>,
}

/// Provenance of a message of a repaired transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provenance {
    /// Unchanged from this position.
    Kept(usize),
    /// Result marked `interrupted`, created for a call.
    Made {
        /// Position of the answer with the call.
        answer: usize,
        /// Index of the call in the answer, starting at 0.
        call: u32,
    },
}

/// Finds the defects of a transcript. Empty for a legal one.
pub fn check<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<Defect> {
    run(messages, false).defects
}

/// Makes a transcript legal: adds results marked `interrupted` to calls without one, moves results out of order to their
/// calls, and removes results without a call. Each repair is reported; a legal transcript is unchanged.
///
/// Deterministic; no message is changed. Calls of one answer with the same id are distinguished by their order.
pub fn repair<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Repaired {
    run(messages, true)
}

fn run<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>, keep: bool) -> Repaired {
    let mut repair = Repair { keep, out: Repaired::default(), batch: None };
    for (at, message) in messages.into_iter().enumerate() {
        repair.take(at, message);
    }
    repair.close(true);
    repair.out.defects.sort_by_key(|defect| defect.at);
    repair.out
}

struct Repair<'a> {
    /// Whether to return messages, not only defects.
    keep: bool,
    out: Repaired,
    batch: Option<Batch<'a>>,
}

/// Calls of one answer, until the next answer.
struct Batch<'a> {
    answer: usize,
    timestamp: Option<i64>,
    broken: bool,
    calls: Vec<Pair<'a>>,
    /// Index of the call whose result comes next.
    next: usize,
    /// Messages after the answer that are not results.
    behind: Vec<(usize, &'a Arc<Message>)>,
}

struct Pair<'a> {
    call: &'a Arc<ToolCall>,
    result: Option<(usize, &'a Arc<Message>)>,
}

impl<'a> Repair<'a> {
    fn take(&mut self, at: usize, message: &'a Arc<Message>) {
        match &**message {
            Message::Assistant(answer) => {
                self.close(false);
                self.open(at, message, answer);
            }
            Message::ToolResult(result) => self.result(at, message, result),
            Message::System(_) | Message::User(_) | Message::Custom(_) => match &mut self.batch {
                Some(batch) => batch.behind.push((at, message)),
                None => self.put(message, at),
            },
        }
    }

    fn open(&mut self, at: usize, message: &'a Arc<Message>, answer: &'a AssistantMessage) {
        self.put(message, at);
        let calls: Vec<_> = answer.tool_calls().map(|call| Pair { call, result: None }).collect();
        if !calls.is_empty() {
            let broken = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
            let timestamp = answer.timestamp;
            self.batch = Some(Batch { answer: at, timestamp, broken, calls, next: 0, behind: Vec::new() });
        }
    }

    fn result(&mut self, at: usize, message: &'a Arc<Message>, result: &ToolResultMessage) {
        let id = &result.tool_call_id;
        let Some(batch) = &mut self.batch else {
            return self.defect(at, id, DefectKind::ResultWithoutCall);
        };
        let open = |call: &Pair<'_>| call.call.id == *id && call.result.is_none();
        let Some(place) = batch.calls.iter().position(open) else {
            let known = batch.calls.iter().any(|call| call.call.id == *id);
            let kind = if known { DefectKind::DuplicateResult } else { DefectKind::ResultWithoutCall };
            return self.defect(at, id, kind);
        };
        let in_order = batch.behind.is_empty() && place >= batch.next;
        batch.next = batch.next.max(place + 1);
        if let Some(call) = batch.calls.get_mut(place) {
            call.result = Some((at, message));
        }
        if !in_order {
            self.defect(at, id, DefectKind::ResultOutOfOrder);
        }
    }

    /// Adds the results of the open batch in call order, then the messages behind them.
    fn close(&mut self, is_last: bool) {
        let Some(batch) = self.batch.take() else { return };
        let may_lack = is_last && batch.behind.is_empty();
        for (place, call) in batch.calls.iter().enumerate() {
            if let Some((at, message)) = call.result {
                self.put(message, at);
            } else if !(batch.broken || may_lack && place >= batch.next) {
                self.defect(batch.answer, &call.call.id, DefectKind::CallWithoutResult);
                let made = interrupted(call.call, batch.timestamp);
                let call = u32::try_from(place).unwrap_or(u32::MAX);
                self.out
                    .messages
                    .push((Arc::new(made.into()), Provenance::Made { answer: batch.answer, call }));
            }
        }
        for (at, message) in batch.behind {
            self.put(message, at);
        }
    }

    fn put(&mut self, message: &Arc<Message>, at: usize) {
        if self.keep {
            self.out.messages.push((Arc::clone(message), Provenance::Kept(at)));
        }
    }

    fn defect(&mut self, at: usize, call: &CallId, kind: DefectKind) {
        self.out.defects.push(Defect { at, call: call.clone(), kind });
    }
}

/// Creates the result that replaces a missing one.
fn interrupted(call: &ToolCall, at: Option<i64>) -> ToolResultMessage {
    let mut result = ToolResultMessage::new(call, vec![Block::text(INTERRUPTED)], true);
    result.outcome = Json::parse(r#"{"status":"cancelled","errorCode":"interrupted"}"#).ok();
    result.timestamp = at;
    result
}
