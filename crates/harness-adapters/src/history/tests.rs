use harness_core::ModelName;
use harness_core::message::{CustomMessage, SystemMessage, ThinkingBlock, UserMessage};

use super::*;

const RULE: IdRule = IdRule { longest: 12, any_character: false };

/// The conversation as `target` would be sent it, a step a line.
#[track_caller]
fn check(messages: &[Message], sees_images: bool, expected: &str) {
    let target = Target { protocol: "p", provider: "us", model: "m", sees_images, ids: RULE };
    let turns = prepare(messages.iter(), target);
    let lines: Vec<String> = turns.iter().map(shown).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, expected);
}

fn shown(turn: &Turn<'_>) -> String {
    match turn {
        Turn::System(parts) => format!("system: {}", shown_parts(parts)),
        Turn::User { name: Some(name), parts } => format!("user {name}: {}", shown_parts(parts)),
        Turn::User { name: None, parts } => format!("user: {}", shown_parts(parts)),
        Turn::Assistant(said) => {
            let parts: Vec<String> = said.parts.iter().map(shown_said).collect();
            format!("assistant{}: {}", if said.own { " (own)" } else { "" }, parts.join(", "))
        }
        Turn::Results(results) => {
            let results: Vec<String> = results
                .iter()
                .map(|result| {
                    let mark = if result.is_error { "!" } else { "" };
                    format!("{}{mark} = {}", result.call.id, shown_parts(&result.parts))
                })
                .collect();
            format!("results: {}", results.join("; "))
        }
    }
}

fn shown_parts(parts: &[Part<'_>]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.to_string(),
            Part::Image(_) => "<image>".to_owned(),
            Part::File(_) => "<file>".to_owned(),
            Part::Audio(_) => "<audio>".to_owned(),
        })
        .collect();
    parts.join(", ")
}

fn shown_said(part: &SaidPart<'_>) -> String {
    match part {
        SaidPart::Text(text) => text.text.clone(),
        SaidPart::Refusal(text) => format!("refusal {text}"),
        SaidPart::Thought(thought) => format!("thought {}", thought.thinking),
        SaidPart::ForeignThought(text) => format!("foreign thought {text}"),
        SaidPart::Call(sent) => format!("call {}", sent.id),
        SaidPart::Native(item) => format!("native {item}"),
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "find", Json::empty_object())
}

fn asks(ids: &[&str]) -> Message {
    AssistantMessage::calls(ids.iter().map(|id| call(id))).into()
}

fn result(id: &str, content: Vec<Block>) -> Message {
    ToolResultMessage::new(&call(id), content, false).into()
}

fn ok(id: &str) -> Message {
    result(id, vec![Block::text("ok")])
}

fn image() -> Block {
    Block::image("AAAA", "image/png")
}

/// An answer of provider `us`, protocol `p` and the model named.
fn answer(model: &str, content: Vec<Block>) -> AssistantMessage {
    let mut message = AssistantMessage::default();
    message.content = content;
    message.provider = Some("us".to_owned());
    message.protocol = Some("p".to_owned());
    message.model = Some(ModelName::from(model));
    message
}

fn thought(text: &str, signature: Option<&str>, redacted: Option<bool>) -> Block {
    let mut block = ThinkingBlock::new(text);
    block.thinking_signature = signature.map(str::to_owned);
    block.redacted = redacted;
    block.into()
}

#[test]
fn every_call_has_one_result_in_call_order() {
    check(
        &[asks(&["a", "b", "c"]), ok("c"), ok("a"), ok("a"), ok("stray"), Message::user("and?")],
        true,
        "assistant: call a, call b, call c
        results: a = ok; b! = No result provided; c = ok
        user: and?",
    );
    check(&[asks(&["a"])], true, "assistant: call a\nresults: a! = No result provided");
}

#[test]
fn a_result_after_the_next_message_is_too_late() {
    check(
        &[asks(&["a"]), Message::user("stop"), ok("a")],
        true,
        "assistant: call a
        results: a! = No result provided
        user: stop",
    );
}

#[test]
fn failed_answers_go_with_their_results() {
    for stop_reason in [FinishReason::Error, FinishReason::Aborted] {
        let mut failed = AssistantMessage::calls([call("a")]);
        failed.stop_reason = stop_reason;
        check(
            &[Message::user("one"), failed.into(), ok("a"), Message::user("two")],
            true,
            "user: one\nuser: two",
        );
    }
}

#[test]
fn images_become_one_note_a_run() {
    let mut images = UserMessage::default();
    images.content = vec![image(), image(), Block::text("see"), image()];
    let log = [images.into(), asks(&["a"]), result("a", vec![Block::text("x"), image(), image()])];
    check(
        &log,
        false,
        "user: (image omitted: model does not support images), see, (image omitted: model does not support images)
        assistant: call a
        results: a = x, (tool image omitted: model does not support images)",
    );
    check(
        &log,
        true,
        "user: <image>, <image>, see, <image>
        assistant: call a
        results: a = x, <image>, <image>",
    );
}

#[test]
fn reasoning_goes_back_only_to_the_model_that_wrote_it() {
    let mut hosted = call("h");
    hosted.hosted = Some(Json::parse(r#"{"type":"search"}"#).unwrap());
    let content = vec![
        thought("open", Some("sig"), None),
        thought("withheld", Some("payload"), Some(true)),
        thought("", None, None),
        hosted.into(),
        Block::extension("p", "search", Json::null()),
        Block::text("yes"),
    ];
    check(
        &[answer("m", content.clone()).into()],
        true,
        "assistant (own): thought open, thought withheld, native {\"type\":\"search\"}, yes",
    );
    check(&[answer("n", content.clone()).into()], true, "assistant: foreign thought open, yes");
    let mut other_protocol = answer("m", content);
    other_protocol.protocol = Some("q".to_owned());
    check(&[other_protocol.into()], true, "assistant: foreign thought open, yes");
}

#[test]
fn ids_are_legal_and_unique_with_their_results() {
    check(
        &[
            asks(&["call.1|x", "call_1_x", ""]),
            ok("call_1_x"),
            ok("call.1|x"),
            ok(""),
            asks(&["call_1_x", "a-long-id-of-the-call"]),
            ok("call_1_x"),
            ok("a-long-id-of-the-call"),
        ],
        true,
        "assistant: call call_1_x, call call_1_x_2, call call
        results: call_1_x = ok; call_1_x_2 = ok; call = ok
        assistant: call call_1_x_3, call a-long-id-of
        results: call_1_x_3 = ok; a-long-id-of = ok",
    );
}

#[test]
fn only_what_a_model_should_read_is_sent() {
    let mut told = CustomMessage::new("note", None);
    told.content = Some(vec![Block::text("told")]);
    told.to_model = true;
    let mut user = UserMessage::text("hi");
    user.name = Some("ann".to_owned());
    check(
        &[
            Message::System(SystemMessage::text("rule")),
            Message::User(user),
            Message::User(UserMessage::default()),
            asks(&["a"]),
            Message::Custom(CustomMessage::new("mark", None)),
            ok("a"),
            Message::Custom(told),
            AssistantMessage::text("").into(),
        ],
        true,
        "system: rule
        user ann: hi
        assistant: call a
        results: a = ok
        user: told",
    );
}

#[test]
fn an_empty_result_shows_its_data_and_its_error() {
    let mut structured = ToolResultMessage::new(&call("a"), Vec::new(), false);
    structured.structured = Some(Json::parse(r#"{"n":1.10}"#).unwrap());
    let failed = ToolResultMessage::new(&call("b"), vec![Block::error("no such file", None, None)], true);
    check(
        &[asks(&["a", "b"]), structured.into(), failed.into()],
        true,
        r#"assistant: call a, call b
        results: a = {"n":1.10}; b! = no such file"#,
    );
}
