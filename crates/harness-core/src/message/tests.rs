use super::*;
use crate::json::Json;

#[track_caller]
fn round_trip(text: &str) -> Message {
    let message: Message = serde_json::from_str(text).expect("a message");
    assert_eq!(serde_json::to_string(&message).expect("JSON"), text);
    message
}

#[track_caller]
fn refused(text: &str, because: &str) {
    let error = serde_json::from_str::<Message>(text).expect_err("no message").to_string();
    assert!(error.contains(because), "{error}");
}

#[test]
fn unknown_keys_and_blocks_and_exact_numbers_survive() {
    round_trip(concat!(
        r#"{"role":"assistant","content":[{"type":"text","text":"hi","x":1e400},"#,
        r#"{"z":1,"type":"hologram","a":{"n":9007199254740993}},"#,
        r#"{"type":"toolCall","id":"c1","name":"add","arguments":{"z":1.10,"a":0,"m":-0},"future":[]}],"#,
        r#""usage":{"input":3,"cost":{"total":0.000000001}},"stopReason":"toolUse","later":null}"#,
    ));
    round_trip(
        r#"{"role":"toolResult","toolCallId":"c1","toolName":"add","content":[],"isError":false,"k":"v"}"#,
    );
    round_trip(r#"{"role":"custom","customType":"note","data":{"b":1,"a":2},"toModel":false}"#);
}

#[test]
fn the_tag_may_stand_anywhere() {
    let message: Message =
        serde_json::from_str(r#"{"content":[{"text":"a","type":"text"}],"name":"ann","role":"user"}"#)
            .expect("a message");
    assert_eq!(
        serde_json::to_string(&message).expect("JSON"),
        r#"{"role":"user","content":[{"type":"text","text":"a"}],"name":"ann"}"#
    );
}

#[test]
fn plain_text_content_and_null_arguments_are_read() {
    let user: Message = serde_json::from_str(r#"{"role":"user","content":"hello"}"#).expect("a message");
    assert_eq!(user.joined_text(), "hello");
    let call: ToolCall = serde_json::from_str(r#"{"id":"c","name":"t","arguments":null}"#).expect("a call");
    assert_eq!(call.arguments.text(), "{}");
}

#[test]
fn what_is_no_message_is_refused_with_the_reason() {
    refused(r#"{"content":[]}"#, "missing field `role`");
    refused(r#"{"role":"pirate","content":[]}"#, "unknown variant `pirate`");
    refused(r#"{"role":"user","content":7}"#, "a list of blocks or a string");
    refused(r#"{"role":"user","content":[{"type":"text"}]}"#, "block `text`: missing field `text`");
    refused(r#"{"role":"user","content":[null]}"#, "a block: an object with a `type`");
    refused("null", "a message: an object with a `role`");
}

#[test]
fn every_output_kind_is_read_back_from_its_stored_form() {
    #[track_caller]
    fn check(message: AssistantMessage, kind: &str) {
        let text = serde_json::to_string(&Message::from(message.clone())).expect("JSON");
        let read = round_trip(&text);
        let read = read.as_assistant().expect("an assistant message");
        assert_eq!(read.output(), message.output());
        assert_eq!(read.output().kind(), kind);
    }
    check(AssistantMessage::text(""), "final_answer");
    check(AssistantMessage::calls([ToolCall::new("c", "t", Json::empty_object())]), "tool_request");
    check(AssistantMessage::clarification("which?"), "clarification");
    check(
        AssistantMessage::approval_request(&ApprovalRequest::new("a", "move", "Move it")),
        "approval_request",
    );
    check(AssistantMessage::refusal("no"), "refusal");
    check(AssistantMessage::invalid(&Invalid::new("garbage")), "invalid");
    check(AssistantMessage::calls([]), "invalid");
}
