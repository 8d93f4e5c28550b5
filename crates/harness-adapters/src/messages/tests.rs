use harness_core::port::{DeltaPart, ModelFaultCode as Code};
use insta::assert_snapshot;

use super::builder::MESSAGES;
use super::model::MessagesForm;
use crate::AdapterError;
use crate::http::ReplyLimits;
use crate::http::testing::{self, Judged};

/// Every kind of event of a stream: reasoning open and withheld, a tool of the provider, citations, two
/// calls at once, keep-alives, and an event that nobody knows yet.
const STREAM: &str = include_str!("../../../../fixtures/adapters/messages.sse");

fn assemble<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> (Judged, Vec<DeltaPart>) {
    testing::stream::<MessagesForm>(&MESSAGES, reads)
}

/// Stop reason of a document, and what its message asks of the turn.
#[track_caller]
fn check(reply: &str, expected: &str) {
    let (judged, _) = testing::document::<MessagesForm>(&MESSAGES, reply);
    assert_eq!(testing::shown(judged), expected, "{reply}");
}

fn ended(reason: &str, content: &str) -> String {
    format!(r#"{{"type":"message","id":"msg_1","content":[{content}],"stop_reason":"{reason}"}}"#)
}

const TEXT: &str = r#"{"type":"text","text":"Yes."}"#;
const CALL: &str = r#"{"type":"tool_use","id":"t1","name":"find","input":{"n":1.10}}"#;

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn a_stream_with_everything_keeps_everything() {
    let (message, pieces) = assemble([STREAM.as_bytes()]);
    let message = serde_json::to_string_pretty(&message.unwrap()).unwrap();
    assert_snapshot!(message, @r#"
    {
      "content": [
        {
          "type": "thinking",
          "thinking": "Where is Ålesund?",
          "thinkingSignature": "EqQB+/=="
        },
        {
          "type": "thinking",
          "thinking": "[reasoning withheld by the provider]",
          "thinkingSignature": "EmwK/+A=",
          "redacted": true
        },
        {
          "type": "toolCall",
          "id": "srvtoolu_1",
          "name": "web_search",
          "arguments": {"query":"weather"},
          "kind": "hosted",
          "hosted": {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"weather"}}
        },
        {
          "type": "toolCall",
          "id": "srvtoolu_1",
          "name": "web_search_tool_result",
          "arguments": {},
          "kind": "hosted",
          "hosted": {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com/a","title":"A","encrypted_content":"Eo8="}]}
        },
        {
          "type": "text",
          "text": "It is mild 🌤 there.",
          "annotations": [
            {"type":"web_search_result_location","url":"https://example.com/a","cited_text":"mild"}
          ]
        },
        {
          "type": "toolCall",
          "id": "toolu_1",
          "name": "find.it",
          "arguments": {"n":1.10},
          "rawArguments": "{\"n\": 1.10}"
        },
        {
          "type": "toolCall",
          "id": "toolu_2",
          "name": "other",
          "arguments": {}
        }
      ],
      "usage": {
        "input": 25,
        "output": 89,
        "cacheRead": 2000,
        "cacheWrite": 300,
        "totalTokens": 2414
      },
      "stopReason": "toolUse",
      "protocol": "anthropic-messages",
      "provider": "anthropic",
      "model": "m",
      "responseModel": "claude-served",
      "responseId": "msg_01",
      "providerMetadata": {"nativeFinishReason":"tool_use","cacheWrite5m":100,"cacheWrite1h":200}
    }
    "#);
    let pieces: Vec<String> = pieces.iter().map(|piece| serde_json::to_string(piece).unwrap()).collect();
    assert_snapshot!(pieces.join("\n"), @r#"
    {"thinking":"Where is "}
    {"thinking":"Ålesund?"}
    {"text":"It is mild 🌤"}
    {"text":" there."}
    {"callStarted":{"index":0,"id":"toolu_1","name":"find_it"}}
    {"callArguments":{"index":0,"text":"{\"n\": 1.1"}}
    {"callStarted":{"index":1,"id":"toolu_2","name":"other"}}
    {"callArguments":{"index":0,"text":"0}"}}
    "#);
}

#[test]
fn the_cut_never_matters() {
    let whole = assemble([STREAM.as_bytes()]);
    for cut in 0..STREAM.len() {
        let (before, after) = STREAM.as_bytes().split_at(cut);
        assert_eq!(assemble([before, after]), whole, "cut at byte {cut}");
    }
    assert_eq!(assemble(STREAM.as_bytes().chunks(1)), whole, "byte by byte");
}

#[test]
fn a_stream_that_ends_early_is_never_an_answer() {
    let ends: Vec<usize> = STREAM.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    let told = STREAM.find("event: message_delta").unwrap();
    for end in ends {
        let (result, _) = assemble([&STREAM.as_bytes()[..end]]);
        if end <= told {
            let fault = result.unwrap_err();
            assert_eq!((fault.code, fault.transient), (Code::Network, true), "cut at byte {end}");
            assert!(fault.partial.is_none_or(|partial| partial.tool_calls().next().is_none()));
        } else {
            assert!(result.is_ok(), "the answer was whole at byte {end}");
        }
    }
}

#[test]
fn every_stop_reason_is_told_truthfully() {
    check(&ended("end_turn", TEXT), "stop final_answer");
    check(&ended("stop_sequence", TEXT), "stop final_answer");
    check(&ended("max_tokens", TEXT), "length final_answer");
    check(&ended("model_context_window_exceeded", TEXT), "length final_answer");
    check(&ended("tool_use", CALL), "toolUse tool_request");
    check(&ended("tool_use", &format!("{TEXT},{CALL}")), "toolUse tool_request");
    check(&ended("pause_turn", ""), "paused final_answer");
    check(&ended("refusal", TEXT), "refusal refusal: the model declined to answer");
    check(&ended("sleepy", TEXT), "sleepy final_answer");
}

#[test]
fn a_refusal_gives_its_reason_and_runs_nothing() {
    let reply = format!(
        r#"{{"type":"message","content":[{CALL}],"stop_reason":"refusal","stop_details":{{"explanation":"Too dangerous."}}}}"#
    );
    check(&reply, "refusal refusal: Too dangerous.");
}

#[test]
fn an_empty_answer_is_never_a_success() {
    let empty = "error invalid empty_response: the answer holds neither text nor tool calls";
    check(&ended("end_turn", ""), empty);
    check(&ended("end_turn", r#"{"type":"text","text":"\n"}"#), empty);
    check(&ended("end_turn", r#"{"type":"thinking","thinking":"Hm.","signature":"s"}"#), empty);
    check(
        &ended("max_tokens", r#"{"type":"thinking","thinking":"Hm.","signature":"s"}"#),
        "error invalid empty_response: the token limit cut the answer before its text; raise `max_tokens`",
    );
    check(
        &ended("tool_use", TEXT),
        "error invalid schema_mismatch: the answer asks for tools and names none",
    );
}

#[test]
fn a_call_that_cannot_be_trusted_is_not_run() {
    check(
        &ended("max_tokens", &format!("{TEXT},{CALL}")),
        "error invalid schema_mismatch: the token limit cut the answer inside a tool call",
    );
    check(
        &ended("tool_use", &format!(r#"{CALL},{{"type":"tool_use","id":"t2","name":"find","input":[1]}}"#)),
        "error invalid schema_mismatch: the arguments of the call of `find` are not a JSON object",
    );
    check(
        &ended("tool_use", r#"{"type":"tool_use","id":"t1","input":{}}"#),
        "error invalid schema_mismatch: a tool call came without the name of a tool",
    );
}

#[test]
fn errors_inside_a_reply_are_faults() {
    for (kind, code, transient) in [
        ("overloaded_error", Code::Provider, true),
        ("api_error", Code::Provider, true),
        ("rate_limit_error", Code::RateLimited, true),
        ("timeout_error", Code::Timeout, true),
        ("authentication_error", Code::AuthFailed, false),
        ("permission_error", Code::AuthFailed, false),
        ("billing_error", Code::CreditsExhausted, false),
        ("not_found_error", Code::ModelNotFound, false),
        ("invalid_request_error", Code::InvalidRequest, false),
        ("request_too_large", Code::ContextLengthExceeded, false),
    ] {
        let event = format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"Oops\"}}}}\n\n"
        );
        let (before, _) = STREAM.split_at(STREAM.find("event: message_delta").unwrap());
        let (result, _) = assemble([before.as_bytes(), event.as_bytes()]);
        let fault = result.unwrap_err();
        assert_eq!((fault.code, fault.transient), (code, transient), "{kind}: {}", fault.message);
        assert!(fault.message.contains("Oops"), "{}", fault.message);
        assert_eq!(fault.partial.unwrap().tool_calls().count(), 0, "calls of a failed answer never run");
    }
}

#[test]
fn a_stream_of_something_else_is_named() {
    let (result, _) = assemble([b"data: hello\n\ndata: {\"choices\":[]}\n\n".as_slice()]);
    let fault = result.unwrap_err();
    assert_eq!(fault.code, Code::Protocol);
    assert_eq!(
        fault.message,
        "HOST sent an event that is not a valid answer of the Messages API: `hello`; \
         check that the base URL is that of an Anthropic-compatible endpoint"
    );
}

#[test]
fn replies_are_bounded() {
    let limits = ReplyLimits { tool_calls: 1, ..ReplyLimits::default() };
    let two = ended("tool_use", &format!("{CALL},{CALL}"));
    let fault = testing::over::<MessagesForm>(&limits, &two);
    assert!(matches!(fault, AdapterError::TooLarge { what: "list of tool calls", limit: 1, .. }), "{fault}");
}

#[test]
fn fault_42_call_has_its_id_from_the_first_delta() {
    testing::check_ids(assemble([STREAM.as_bytes()]));
}
