//! Calls and their results: what a legal transcript is, and how an illegal one is repaired.
//!
//! Law 1 in data: the calls of an answer have exactly one result each, in call order, directly after the
//! answer. Only the last answer may lack results, from some call on, while nothing follows it; and an answer
//! that broke off ([`FinishReason::Error`], [`FinishReason::Aborted`]) may lack them anywhere, because its calls
//! never ran.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::json::Json;
use crate::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage};

/// The text of a result that stands for one that is not in the transcript.
const INTERRUPTED: &str =
    "The result of this call was lost. It may have taken effect: check before it is repeated.";

/// What is wrong with a call, or with a result, of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DefectKind {
    /// A result without a call.
    ResultWithoutCall,
    /// A second result of one call.
    DuplicateResult,
    /// A result that is not where call order puts it.
    ResultOutOfOrder,
    /// A call without a result, though something follows it.
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

/// A place at which a transcript breaks the pairing of calls and results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Defect {
    /// The position of the message: the result, or the answer with the call.
    pub at: usize,
    /// The call.
    pub call: CallId,
    /// What is wrong.
    pub kind: DefectKind,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id: String = self.call.as_str().chars().take(60).collect();
        write!(f, "{} (`{}`)", self.kind, id.escape_debug())
    }
}

/// A legal transcript made of one that may be illegal.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Message, ToolCall};
/// use harness_core::transcript::{Defect, DefectKind, Provenance, Repaired, repair};
///
/// let asks = AssistantMessage::calls([ToolCall::new("c1", "search", Json::empty_object())]);
/// let log = [Arc::new(asks.into()), Arc::new(Message::user("Never mind."))];
/// let Repaired { messages, defects, .. } = repair(&log);
/// assert!(matches!(defects.as_slice(), [Defect { kind: DefectKind::CallWithoutResult, .. }]));
/// assert!(matches!(messages.as_slice(), [(_, Provenance::Kept(0)), (_, Provenance::Made { .. }), (_, Provenance::Kept(1))]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// The messages, with the place from which each one came.
    pub messages: Vec<(Arc<Message>, Provenance)>,
    /// What was repaired, in the order of the messages; empty when the transcript was legal.
    pub defects: Vec<Defect>,
}

/// Where a message of a repaired transcript came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provenance {
    /// Unchanged from this position.
    Kept(usize),
    /// A result marked `interrupted`, made for a call of the answer at this position.
    Made {
        /// The position of the answer.
        answer: usize,
        /// The call's place among those of the answer, from 0.
        call: u32,
    },
}

/// Finds the calls and results that do not belong together as they should. Empty for a legal transcript.
///
/// ```
/// use std::sync::Arc;
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Message, ToolCall};
/// use harness_core::transcript::{DefectKind, check};
///
/// let call = ToolCall::new("c1", "pay", Json::empty_object());
/// let mut messages: Vec<Arc<Message>> = vec![Arc::new(AssistantMessage::calls([call]).into())];
/// assert_eq!(check(&messages), []);
/// messages.push(Arc::new(Message::user("never mind")));
/// assert_eq!(check(&messages)[0].kind, DefectKind::CallWithoutResult);
/// ```
pub fn check<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<Defect> {
    run(messages, false).defects
}

/// Makes a transcript legal. Calls without a result get one that is marked `interrupted`, results out of order
/// go to their calls, and results that belong to no call are left out; each is reported. A legal transcript
/// stays as it is.
///
/// The same messages always give the same result, and no message is changed. Calls of one answer that share an
/// id are told apart by their order.
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
    /// Whether the messages are wanted, beside what is wrong.
    keep: bool,
    out: Repaired,
    batch: Option<Batch<'a>>,
}

/// The calls of one answer, until the next answer.
struct Batch<'a> {
    answer: usize,
    timestamp: Option<i64>,
    broken: bool,
    calls: Vec<Pair<'a>>,
    /// The place of the call whose result comes next.
    next: usize,
    /// What follows the answer and is no result of it.
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

    /// Puts out the results of the open batch in call order, then what followed them.
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

/// The result that a call gets whose own is lost.
fn interrupted(call: &ToolCall, at: Option<i64>) -> ToolResultMessage {
    let mut result = ToolResultMessage::new(call, vec![Block::text(INTERRUPTED)], true);
    result.outcome = Json::parse(r#"{"status":"cancelled","errorCode":"interrupted"}"#).ok();
    result.timestamp = at;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcript in a few words: `ask c1 c2`, `broken c1`, `c1` (its result), `say TEXT`, `text` (an answer).
    fn transcript(lines: &[&str]) -> Vec<Arc<Message>> {
        let message = |line: &&str| -> Message {
            let calls = |ids: &str| {
                AssistantMessage::calls(
                    ids.split(' ').map(|id| ToolCall::new(id, "pay", Json::empty_object())),
                )
            };
            match line.split_once(' ') {
                Some(("ask", ids)) => calls(ids).into(),
                Some(("broken", ids)) => {
                    let mut answer = calls(ids);
                    answer.stop_reason = FinishReason::Aborted;
                    answer.into()
                }
                Some((_, text)) => Message::user(text),
                None if *line == "text" => AssistantMessage::text("text").into(),
                None => {
                    let call = ToolCall::new(*line, "pay", Json::empty_object());
                    ToolResultMessage::new(&call, vec![Block::text(*line)], false).into()
                }
            }
        };
        lines.iter().map(message).map(Arc::new).collect()
    }

    fn shown(message: &Message) -> String {
        match message {
            Message::Assistant(answer) => {
                let ids: Vec<_> = answer.tool_calls().map(|call| call.id.as_str().to_owned()).collect();
                match &*ids {
                    [] => "text".to_owned(),
                    ids if answer.stop_reason == FinishReason::Aborted => format!("broken {}", ids.join(" ")),
                    ids => format!("ask {}", ids.join(" ")),
                }
            }
            Message::ToolResult(result) if result.is_error => {
                assert!(result.outcome.as_ref().unwrap().text().contains("interrupted"));
                format!("!{}", result.tool_call_id)
            }
            Message::ToolResult(result) => result.tool_call_id.to_string(),
            Message::System(_) | Message::User(_) | Message::Custom(_) => {
                format!("say {}", message.joined_text())
            }
        }
    }

    #[track_caller]
    fn check_repair(lines: &[&str], expected: &[&str], defects: &[(usize, &str, DefectKind)]) {
        let messages = transcript(lines);
        let repaired = repair(&messages);
        let found: Vec<_> = repaired.messages.iter().map(|(message, _)| shown(message)).collect();
        assert_eq!(found, expected);
        let told: Vec<_> =
            repaired.defects.iter().map(|defect| (defect.at, defect.call.as_str(), defect.kind)).collect();
        assert_eq!(told, defects);
        assert_eq!(check(&messages), repaired.defects);
        let whole: Vec<_> = repaired.messages.into_iter().map(|(message, _)| message).collect();
        assert_eq!(check(&whole), [], "a repaired transcript is legal");
    }

    use DefectKind as K;

    #[test]
    fn fault_32_a_legal_transcript_stays_as_it_is() {
        for lines in [
            &["say go", "ask c1 c2", "c1", "c2", "text", "say on"][..],
            &["ask c1", "c1", "ask c1", "c1"],
            &["say go", "ask c1 c2"],
            &["ask c1 c2", "c1"],
            &["broken c1 c2", "say on", "text"],
            &["broken c1", "c1", "text"],
        ] {
            check_repair(lines, lines, &[]);
        }
    }

    #[test]
    fn fault_32_orphans_are_found_and_repaired() {
        check_repair(&["c9", "say go"], &["say go"], &[(0, "c9", K::ResultWithoutCall)]);
        check_repair(
            &["ask c1", "c9", "c1", "text"],
            &["ask c1", "c1", "text"],
            &[(1, "c9", K::ResultWithoutCall)],
        );
        check_repair(
            &["ask c1 c2", "c1", "say on"],
            &["ask c1 c2", "c1", "!c2", "say on"],
            &[(0, "c2", K::CallWithoutResult)],
        );
        check_repair(
            &["ask c1", "ask c1", "c1"],
            &["ask c1", "!c1", "ask c1", "c1"],
            &[(0, "c1", K::CallWithoutResult)],
        );
        check_repair(
            &["ask c1", "c1", "c1", "text"],
            &["ask c1", "c1", "text"],
            &[(2, "c1", K::DuplicateResult)],
        );
        check_repair(&["text", "c1"], &["text"], &[(1, "c1", K::ResultWithoutCall)]);
    }

    #[test]
    fn fault_32_results_out_of_order_go_to_their_calls() {
        check_repair(
            &["ask c1 c2 c3", "c3", "c1", "c2"],
            &["ask c1 c2 c3", "c1", "c2", "c3"],
            &[(2, "c1", K::ResultOutOfOrder), (3, "c2", K::ResultOutOfOrder)],
        );
        check_repair(
            &["ask c1", "say wait", "c1", "text"],
            &["ask c1", "c1", "say wait", "text"],
            &[(2, "c1", K::ResultOutOfOrder)],
        );
        check_repair(&["ask c1 c2", "c2"], &["ask c1 c2", "!c1", "c2"], &[(0, "c1", K::CallWithoutResult)]);
    }

    /// Ids that repeat are paired by their order.
    #[test]
    fn fault_32_calls_of_one_answer_may_have_one_id() {
        check_repair(&["ask c1 c1", "c1", "c1", "text"], &["ask c1 c1", "c1", "c1", "text"], &[]);
        check_repair(
            &["ask c1 c1", "c1", "text"],
            &["ask c1 c1", "c1", "!c1", "text"],
            &[(0, "c1", K::CallWithoutResult)],
        );
    }

    #[test]
    fn fault_32_every_short_transcript_is_repaired_to_a_legal_one() {
        let words = ["ask c1 c2", "broken c1", "c1", "c2", "say on", "text"];
        for number in 0..words.len().pow(5) {
            let lines: Vec<_> = (0..5).map(|at| words[number / words.len().pow(at) % words.len()]).collect();
            let messages = transcript(&lines);
            let Repaired { messages: repaired, defects } = repair(&messages);
            let whole: Vec<_> = repaired.iter().map(|(message, _)| Arc::clone(message)).collect();
            assert_eq!(check(&whole), [], "{lines:?}");
            assert_eq!(defects.is_empty(), whole == messages, "{lines:?}");
            let lost = defects
                .iter()
                .filter(|defect| matches!(defect.kind, K::ResultWithoutCall | K::DuplicateResult));
            let kept = repaired.iter().filter(|(_, from)| !matches!(from, Provenance::Made { .. }));
            assert_eq!(
                kept.count() + lost.count(),
                messages.len(),
                "what is left out is reported: {lines:?}"
            );
        }
    }
}
