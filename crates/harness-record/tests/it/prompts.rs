//! What models received, in records.

use harness_core::event::EventKind;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::Secret;
use harness_core::transcript::{Plan, Span};
use harness_core::{Redactor, canonical};
use harness_record::{Redaction, SeenMessage, SeenRequest};

use super::*;

/// The request as lines: instructions, tools, messages with their positions.
fn told(seen: &SeenRequest<'_>) -> String {
    let tools: Vec<&str> = seen.tools.iter().map(|tool| tool.name.as_str()).collect();
    let messages = seen.messages.iter().map(|message| match message {
        SeenMessage::Item(at, item) => format!("{at} {}: {}", item.role(), item.joined_text()),
        SeenMessage::Made(made) => format!("+ {}: {}", made.role(), made.joined_text()),
        SeenMessage::Missing(count) => format!("({count} missing)"),
        _ => unreachable!("all kinds are listed"),
    });
    let messages: Vec<String> = messages.collect();
    format!("{} [{}]\n{}", seen.instructions, tools.join(" "), messages.join("\n"))
}

#[track_caller]
fn check(record: &RunRecord, turn: u32, expected: &str) {
    assert_eq!(record.seen_request(turn).map(|seen| told(&seen)).as_deref(), Some(expected));
}

#[test]
fn each_request_is_recorded_with_instructions_tools_and_messages() {
    let record = usual().run().record;
    check(&record, 1, "You are the desk. [look pay drop to_expert]\n0 user: Where is order 7?");
    let third = record.seen_request(3).unwrap();
    assert_eq!((third.instructions, third.messages.len()), ("You are the expert.", 6));
    assert_eq!(third.settings.map(Json::text), Some(r#"{"temperature":0.5}"#));
    assert_eq!(third.tools[0].parameters.text(), r#"{"type":"object"}"#);
    assert!(record.seen_request(4).is_none());
}

#[test]
fn equal_parts_are_stored_once() {
    let prompts = usual().run().record.prompts.unwrap();
    assert_eq!(prompts.instructions, ["You are the desk.", "You are the expert."]);
    assert_eq!((prompts.tools.len(), prompts.offers.len(), prompts.requests.len()), (4, 2, 3));
    assert_eq!((prompts.messages.len(), prompts.omitted), (0, 0));
}

#[test]
fn prompts_grow_with_the_run_and_not_with_its_square() {
    let size = |looks: usize| {
        let look = |at: usize| asks([call(&format!("c{at}"), "look", "{}")]);
        let steps = (0..looks).map(look).chain([says("Done.")]);
        let outcomes = (0..looks).map(|_| ToolOutcome::text("x".repeat(1_000)));
        let prompts = Scene::new(steps, outcomes).run().record.prompts.unwrap();
        Json::of(&prompts).unwrap().text().len()
    };
    let (few, many) = (size(5), size(20));
    assert!(many - few <= 15 * 80, "a request adds only references: {few} and {many} bytes");
}

#[test]
fn prompts_can_be_left_out() {
    let mut scene = usual();
    scene.options.prompts = false;
    let record = scene.run().record;
    assert!(record.prompts.is_none());
    assert!(!record.to_json().unwrap().text().contains("You are the desk."));
    assert_eq!(record.prompt_snapshots[0].prompt_hash, canonical::sha256_hex("You are the desk."));
}

#[test]
fn requests_over_the_limit_are_left_out_and_counted() {
    let mut scene = usual();
    scene.options.prompt_bytes = 700;
    let record = scene.run().record;
    let prompts = record.prompts.as_ref().unwrap();
    let turns: Vec<u32> = prompts.requests.iter().map(|request| request.turn).collect();
    assert_eq!((turns, prompts.omitted, prompts.limit), (vec![1, 2], 1, 700), "the expert needs more");
    assert_eq!(prompts.instructions, ["You are the desk."], "nothing of the third request is kept");
    assert!(record.seen_request(3).is_none());
}

/// The record of a usual run whose second request has this plan, and whose first one has guidance.
fn replanned(plan: &Plan, told_history: bool) -> RunRecord {
    let mut scene = usual();
    scene.history = vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    scene.tells_history = told_history;
    let history = if told_history { scene.history.clone() } else { Vec::new() };
    let mut events = scene.run().events;
    let is_request = |event: &Event| matches!(event.kind, EventKind::ModelStepStarted { .. });
    let first = events.iter().position(is_request).unwrap();
    let second = events.iter().rposition(|event| is_request(event) && event.iteration == 2).unwrap();
    let planned = EventKind::ViewPlanned { by: "layers".into(), messages: 5, spans: 2, plan: plan.clone() };
    let made = |event: &Event, kind: EventKind| {
        let mut made = event.clone();
        made.kind = kind;
        made
    };
    let event = made(&events[second], planned);
    events.insert(second, event);
    let guidance =
        json(r#"{"kind":"guidance_injected","sections":["budget"],"tokens":4,"text":"Two turns are left."}"#);
    let event = made(&events[first], EventKind::Control { event: guidance });
    events.insert(first + 1, event);
    refolded(&events, RecordOptions::default(), RunStart::new(None, history))
}

fn summarized() -> Plan {
    let summary: Arc<[Arc<Message>]> = Arc::new([Arc::new(Message::user("They said hello."))]);
    Plan { spans: Arc::new([Span::Made(summary), Span::Kept(1..3)]) }
}

#[test]
fn planned_messages_and_guidance_are_recorded_where_the_model_saw_them() {
    let record = replanned(&summarized(), true);
    check(
        &record,
        1,
        "You are the desk. [look pay drop to_expert]\n0 user: Hello\n1 assistant: Hi.\n2 user: Where is order 7?\n\
         + user: Two turns are left.",
    );
    check(
        &record,
        2,
        "You are the desk. [look pay drop to_expert]\n+ user: They said hello.\n1 assistant: Hi.\n\
         2 user: Where is order 7?",
    );
    assert_eq!(
        record.control_events[0].event.text(),
        r#"{"kind":"guidance_injected","sections":["budget"],"tokens":4}"#
    );
}

#[test]
fn messages_that_the_recorder_did_not_receive_are_counted() {
    let record = replanned(&summarized(), false);
    check(
        &record,
        2,
        "You are the desk. [look pay drop to_expert]\n+ user: They said hello.\n(1 missing)\n0 user: Where is order 7?",
    );
}

#[test]
fn known_secrets_are_redacted_in_prompts() {
    let mut scene = usual();
    scene.options.redaction = Redaction::none().secrets(Redactor::new([Secret::new("You are the")]));
    let record = scene.run().record;
    assert_eq!(record.seen_request(1).unwrap().instructions, "[redacted] desk.");
    assert!(!record.to_json().unwrap().text().contains("You are the"));
    assert_eq!(record.items.len(), 7, "the messages are in the record all the same");
}

#[test]
fn records_of_earlier_versions_keep_their_instructions() {
    let mut record = usual().run().record;
    record.prompts = None;
    record.prompt_snapshots[0].prompt_text = Some("Be brief.".to_owned());
    let record = RunRecord::from_text("old.json", record.to_json().unwrap().text()).unwrap();
    assert!(harness_record::render_text(&record).contains("instructions: Be brief."));
}
