use harness_core::port::{DeltaPart, ModelFaultCode as Code};
use insta::assert_snapshot;

use super::builder::RESPONSES;
use super::model::ResponsesForm;
use crate::AdapterError;
use crate::http::ReplyLimits;
use crate::http::testing::{self, Judged};

/// Every kind of event of a stream: reasoning, a tool of the provider, annotations, two calls at once,
/// keep-alives, and an event that nobody knows yet.
const STREAM: &str = include_str!("../../../../fixtures/adapters/responses.sse");

fn assemble<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> (Judged, Vec<DeltaPart>) {
    testing::stream::<ResponsesForm>(&RESPONSES, reads)
}

/// Stop reason of a document, and what its message asks of the turn.
#[track_caller]
fn check(reply: &str, expected: &str) {
    let (judged, _) = testing::document::<ResponsesForm>(&RESPONSES, reply);
    let shown = match judged {
        Err(fault) => format!("fault {} {}", fault.code.as_str(), fault.transient),
        judged => testing::shown(judged),
    };
    assert_eq!(shown, expected, "{reply}");
}

fn completed(output: &str) -> String {
    format!(r#"{{"object":"response","id":"resp_1","status":"completed","output":[{output}]}}"#)
}

fn incomplete(reason: &str, output: &str) -> String {
    format!(
        r#"{{"object":"response","status":"incomplete","incomplete_details":{{"reason":"{reason}"}},"output":[{output}]}}"#
    )
}

const TEXT: &str = r#"{"type":"message","content":[{"type":"output_text","text":"Yes."}]}"#;
const REFUSAL: &str = r#"{"type":"message","content":[{"type":"refusal","refusal":"No."}]}"#;
const CALL: &str = r#"{"type":"function_call","call_id":"c1","name":"find","arguments":"{\"n\":1.10}"}"#;
const THOUGHT: &str = r#"{"type":"reasoning","summary":[]}"#;

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
          "thinkingSignature": "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"gAAA+/==\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Where is Ålesund?\"}],\"weight\":1.10}",
          "id": "rs_1",
          "summary": [
            "Where is Ålesund?"
          ]
        },
        {
          "type": "toolCall",
          "id": "ws_1",
          "name": "web_search_call",
          "arguments": {},
          "kind": "hosted",
          "hosted": {"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"weather"}}
        },
        {
          "type": "text",
          "text": "It is mild 🌤 there.",
          "annotations": [
            {"type":"url_citation","url":"https://example.com/a"}
          ],
          "phase": "commentary",
          "itemId": "msg_1",
          "status": "completed"
        },
        {
          "type": "toolCall",
          "id": "call_1",
          "name": "find.it",
          "arguments": {"n":1.10},
          "rawArguments": "{\"n\": 1.10}",
          "itemId": "fc_1",
          "status": "completed"
        },
        {
          "type": "toolCall",
          "id": "call_2",
          "name": "other",
          "arguments": {},
          "itemId": "fc_2",
          "status": "completed"
        }
      ],
      "usage": {
        "input": 20,
        "output": 30,
        "cacheRead": 100,
        "reasoning": 12,
        "totalTokens": 150
      },
      "stopReason": "toolUse",
      "protocol": "openai-responses",
      "provider": "openai",
      "model": "m",
      "responseModel": "served-2025",
      "responseId": "resp_1",
      "providerMetadata": {"nativeFinishReason":"completed"}
    }
    "#);
    let pieces: Vec<String> = pieces.iter().map(|piece| serde_json::to_string(piece).unwrap()).collect();
    assert_snapshot!(pieces.join("\n"), @r#"
    {"thinking":"Where is "}
    {"thinking":"Ålesund?"}
    {"text":"It is mild 🌤"}
    {"text":" there."}
    {"callStarted":{"index":0,"id":"call_1","name":"find_it"}}
    {"callArguments":{"index":0,"text":"{\"n\": 1."}}
    {"callStarted":{"index":1,"id":"call_2","name":"other"}}
    {"callArguments":{"index":1,"text":"{}"}}
    {"callArguments":{"index":0,"text":"10}"}}
    "#);
}

#[test]
fn a_document_says_the_same_as_its_stream() {
    let (streamed, _) = assemble([STREAM.as_bytes()]);
    let end =
        STREAM.lines().find_map(|line| line.strip_prefix(r#"data: {"type":"response.completed""#)).unwrap();
    let document = end.split_once(r#""response":"#).unwrap().1.strip_suffix('}').unwrap();
    let (judged, pieces) = testing::document::<ResponsesForm>(&RESPONSES, document);
    assert_eq!(judged, streamed);
    let text = |part: &DeltaPart| matches!(part, DeltaPart::Text(text) if text == "It is mild 🌤 there.");
    assert_eq!(pieces.iter().filter(|part| text(part)).count(), 1);
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
    let told = STREAM.find("event: response.completed").unwrap();
    for end in STREAM.match_indices("\n\n").map(|(at, _)| at + 2).filter(|end| *end <= told) {
        let fault = assemble([&STREAM.as_bytes()[..end]]).0.unwrap_err();
        assert_eq!((fault.code, fault.transient), (Code::Network, true), "cut at byte {end}");
        assert!(fault.partial.is_none_or(|partial| partial.tool_calls().next().is_none()));
    }
}

#[test]
fn every_end_is_told_truthfully() {
    check(&completed(TEXT), "stop final_answer");
    check(&completed(&format!("{THOUGHT},{TEXT},{CALL}")), "toolUse tool_request");
    check(&completed(REFUSAL), "refusal refusal: No.");
    check(&completed(&format!("{REFUSAL},{CALL}")), "refusal refusal: No.");
    check(&incomplete("max_output_tokens", TEXT), "length final_answer");
    check(&incomplete("content_filter", TEXT), "contentFilter refusal: ");
    check(&incomplete("sleepy", TEXT), "sleepy final_answer");
    check(r#"{"object":"response","status":"cancelled","output":[]}"#, "fault provider true");
    check(
        r#"{"object":"response","status":"failed","error":{"code":"server_error","message":"Oops"}}"#,
        "fault provider true",
    );
    check(
        r#"{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow"}}"#,
        "fault rate_limited true",
    );
    check(r#"{"error":{"code":"invalid_prompt","message":"No"}}"#, "fault invalid_request false");
}

#[test]
fn an_empty_answer_is_never_a_success() {
    let empty = "error invalid empty_response: the answer holds neither text nor tool calls";
    check(&completed(""), empty);
    check(&completed(THOUGHT), empty);
    check(
        &incomplete("max_output_tokens", THOUGHT),
        "error invalid empty_response: the token limit cut the answer before its text; raise `max_tokens`",
    );
}

#[test]
fn a_call_that_cannot_be_trusted_is_not_run() {
    check(
        &incomplete("max_output_tokens", CALL),
        "error invalid schema_mismatch: the token limit cut the answer inside a tool call",
    );
    let bad = r#"{"type":"function_call","call_id":"c2","name":"find","arguments":"{\"n\""}"#;
    check(
        &completed(&format!("{CALL},{bad}")),
        "error invalid schema_mismatch: the arguments of the call of `find` are not a JSON object",
    );
    check(
        &completed(r#"{"type":"function_call","call_id":"c2","arguments":"{}"}"#),
        "error invalid schema_mismatch: a tool call came without the name of a tool",
    );
}

#[test]
fn errors_inside_a_stream_are_faults_with_what_had_come() {
    let (before, _) = STREAM.split_at(STREAM.find("event: response.completed").unwrap());
    for (event, code, transient) in [
        (r#"{"type":"error","code":"server_error","message":"Oops","param":null}"#, Code::Provider, true),
        (
            r#"{"type":"error","error":{"type":"tokens","code":"rate_limit_exceeded","message":"Oops"}}"#,
            Code::RateLimited,
            true,
        ),
        (
            r#"{"type":"error","code":"context_length_exceeded","message":"Oops"}"#,
            Code::ContextLengthExceeded,
            false,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"Oops"}}}"#,
            Code::Provider,
            true,
        ),
        (r#"{"error":{"code":402,"message":"Oops"}}"#, Code::CreditsExhausted, false),
    ] {
        let event = format!("data: {event}\n\n");
        let fault = assemble([before.as_bytes(), event.as_bytes()]).0.unwrap_err();
        assert_eq!((fault.code, fault.transient), (code, transient), "{event}: {fault}");
        assert!(fault.message.contains("Oops"), "{fault}");
        let partial = fault.partial.unwrap();
        assert_eq!(partial.joined_text(), "It is mild 🌤 there.");
        assert_eq!(partial.tool_calls().count(), 0, "calls of a failed answer never run");
    }
}

#[test]
fn a_stream_of_something_else_is_named() {
    let fault = assemble([b"data: hello\n\n".as_slice()]).0.unwrap_err();
    assert_eq!(fault.code, Code::Protocol);
    assert_eq!(
        fault.message,
        "HOST sent an event that is not a valid answer of the Responses API: `hello`; \
         check that the base URL is that of an endpoint of the Responses API"
    );
}

#[test]
fn replies_are_bounded() {
    let limits = ReplyLimits { tool_calls: 1, ..ReplyLimits::default() };
    let fault = testing::over::<ResponsesForm>(&limits, &completed(&format!("{CALL},{CALL}")));
    assert!(matches!(fault, AdapterError::TooLarge { what: "list of tool calls", limit: 1, .. }), "{fault}");
}

#[test]
fn fault_42_call_has_its_id_from_the_first_delta() {
    testing::check_ids(assemble([STREAM.as_bytes()]));
}
