//! Repair of calls and results.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage};
use harness_core::transcript::{DefectKind, Provenance, Repaired, check, repair};

/// Parses a transcript: `ask c1 c2`, `broken c1`, `c1` (its result), `say TEXT`, `text` (an answer).
fn transcript(lines: &[&str]) -> Vec<Arc<Message>> {
    let message = |line: &&str| -> Message {
        let calls = |ids: &str| {
            AssistantMessage::calls(ids.split(' ').map(|id| ToolCall::new(id, "pay", Json::empty_object())))
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
            assert!(result.outcome.as_ref().expect("an outcome").text().contains("interrupted"));
            format!("!{}", result.tool_call_id)
        }
        Message::ToolResult(result) => result.tool_call_id.to_string(),
        Message::System(_) | Message::User(_) | Message::Custom(_) => {
            format!("say {}", message.joined_text())
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_repair(lines: &[&str], expected: &[&str], defects: &[(usize, &str, DefectKind)]) {
    let messages = transcript(lines);
    let repaired = repair(&messages);
    let found: Vec<_> = repaired.messages.iter().map(|(message, _)| shown(message)).collect();
    assert_eq!(found, expected);
    let reported: Vec<_> =
        repaired.defects.iter().map(|defect| (defect.at, defect.call.as_str(), defect.kind)).collect();
    assert_eq!(reported, defects);
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
        let Repaired { messages: repaired, defects, .. } = repair(&messages);
        let whole: Vec<_> = repaired.iter().map(|(message, _)| Arc::clone(message)).collect();
        assert_eq!(check(&whole), [], "{lines:?}");
        assert_eq!(defects.is_empty(), whole == messages, "{lines:?}");
        let lost =
            defects.iter().filter(|defect| matches!(defect.kind, K::ResultWithoutCall | K::DuplicateResult));
        let kept = repaired.iter().filter(|(_, from)| !matches!(from, Provenance::Made { .. }));
        assert_eq!(kept.count() + lost.count(), messages.len(), "what is left out is reported: {lines:?}");
    }
}
