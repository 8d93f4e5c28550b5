//! The assembly of streamed answers, checked against the vectors of kind `openrouter-stream` at every
//! cut, and the rules that the vectors do not reach.

use harness_adapters::AdapterError;
use harness_adapters::chat::{Assembler, Completion, InvalidKind, ReplyLimits, Verdict};
use harness_core::port::DeltaPart;
use proptest::prelude::*;
use serde_json::{Value, json};

fn assemble<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> (Completion, String) {
    let mut assembler = Assembler::new(ReplyLimits::default());
    let mut shown = String::new();
    for bytes in reads {
        let mut show = |part: DeltaPart| {
            if let DeltaPart::Text(text) = part {
                shown.push_str(&text);
            }
        };
        assembler.feed(bytes, &mut show).unwrap();
    }
    (assembler.finish(), shown)
}

/// The answer in the vectors' own words.
fn normalized(answer: &Completion) -> Value {
    let usage = answer.usage.as_ref().map(|usage| {
        let numbers = [
            ("inputTokens", usage.prompt),
            ("outputTokens", usage.completion),
            ("totalTokens", usage.total),
            ("cachedTokens", usage.cached),
            ("cacheWriteTokens", usage.cache_write),
            ("reasoningTokens", usage.reasoning),
        ];
        let mut out: serde_json::Map<String, Value> =
            numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
        if let Some(cost) = usage.cost {
            out.insert("cost".to_owned(), serde_json::from_str(&cost.to_string()).unwrap());
        }
        out
    });
    let error = answer.error.as_ref().map(|error| {
        let code =
            error.code.as_ref().map(|code| code.parse::<u64>().map_or_else(|_| json!(code), |n| json!(n)));
        json!({ "code": code, "message": error.message, "errorType": error.error_type })
    });
    let calls: Vec<Value> = answer
        .tool_calls
        .iter()
        .map(|call| {
            let input = call.input().map(|input| input.to::<Value>().unwrap());
            json!({ "id": call.id, "name": call.name, "argumentsText": call.arguments, "input": input })
        })
        .collect();
    let mut message = json!({
        "responseId": answer.id,
        "model": answer.model,
        "content": answer.content,
        "reasoning": answer.reasoning,
        "reasoningDetails": answer.reasoning_details.iter().map(|item| item.to::<Value>().unwrap()).collect::<Vec<_>>(),
        "refusal": answer.refusal,
        "toolCalls": calls,
        "finishReason": answer.finish_reason,
        "usage": usage,
        "error": error,
        "sawDone": answer.saw_done,
        "comments": answer.comments,
    });
    if answer.malformed_events > 0 {
        message["malformedEvents"] = json!(answer.malformed_events);
    }
    let outcome = match answer.verdict() {
        Verdict::FinalAnswer { truncated: true } => json!({ "type": "final_answer", "truncated": true }),
        Verdict::FinalAnswer { .. } => json!({ "type": "final_answer" }),
        Verdict::ToolRequest => json!({ "type": "tool_request" }),
        Verdict::Invalid(kind) => json!({ "type": "invalid", "kind": kind.code() }),
        other => panic!("unknown verdict {other:?}"),
    };
    json!({ "message": message, "outcome": outcome })
}

#[test]
fn every_vector_holds_at_every_cut() {
    let vectors: Value = serde_json::from_str(include_str!("../fixtures/openrouter-stream.json")).unwrap();
    let vectors = vectors["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 24, "the vectors are complete");
    for vector in vectors {
        let bytes = vector["text"].as_str().unwrap().as_bytes();
        let name = vector["name"].as_str().unwrap();
        let (whole, shown) = assemble([bytes]);
        assert_eq!(normalized(&whole), vector["expected"], "{name}");
        assert_eq!(normalized(&assemble(bytes.chunks(1)).0), vector["expected"], "{name}, byte by byte");
        for cut in 0..bytes.len() {
            let (answer, text) = assemble([&bytes[..cut], &bytes[cut..]]);
            assert_eq!(normalized(&answer), vector["expected"], "{name}, cut at byte {cut}");
            assert_eq!(text, shown, "{name}, cut at byte {cut}");
        }
    }
}

/// Streams the deltas of choice 0 and compares the assembled answer.
#[track_caller]
fn check(deltas: &[&str], expected: &Value) {
    let event = |delta: &&str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let stream = deltas.iter().map(event).collect::<Vec<_>>().concat() + "data: [DONE]\n\n";
    let answer = normalized(&assemble([stream.as_bytes()]).0);
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&answer["message"][key], value, "{key}");
    }
}

#[test]
fn fragments_without_an_index_follow_their_call() {
    check(
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"two","arguments":"{}"}}]}"#,
        ],
        &json!({ "toolCalls": [
            { "id": "a", "name": "one", "argumentsText": "{\"x\":1}", "input": { "x": 1 } },
            { "id": "b", "name": "two", "argumentsText": "{}", "input": {} },
        ] }),
    );
}

#[test]
fn argument_objects_count_as_their_compact_text() {
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":{ "x": "a b" }}}]}"#],
        &json!({ "toolCalls": [
            { "id": "a", "name": "n", "argumentsText": "{\"x\":\"a b\"}", "input": { "x": "a b" } },
        ] }),
    );
}

#[test]
fn content_may_be_a_list_of_parts() {
    check(
        &[
            r#"{"content":[{"type":"text","text":"a"},{"type":"reasoning","text":"not content"},"b"]}"#,
            r#"{"content":"c"}"#,
        ],
        &json!({ "content": "abc" }),
    );
}

#[test]
fn a_field_of_an_odd_type_does_not_hide_the_others() {
    check(&[r#"{"role":7,"content":"ok","reasoning":5,"tool_calls":"none"}"#], &json!({ "content": "ok" }));
}

#[test]
fn reasoning_items_keep_numbers_exactly_and_a_null_erases_nothing() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,",
        "\"text\":\"a\",\"signature\":\"s\",\"weight\":1.10}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,",
        "\"text\":\"b\",\"signature\":null}]}}]}\n\n",
    );
    let (answer, _) = assemble([stream.as_bytes()]);
    let items: Vec<&str> = answer.reasoning_details.iter().map(harness_core::Json::text).collect();
    assert_eq!(items, [r#"{"type":"reasoning.text","index":0,"text":"ab","signature":"s","weight":1.10}"#]);
}

#[test]
fn only_texts_merge_without_an_index() {
    check(
        &[
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"b"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"y"}]}"#,
        ],
        &json!({ "reasoningDetails": [
            { "type": "reasoning.text", "text": "ab" },
            { "type": "reasoning.encrypted", "data": "x" },
            { "type": "reasoning.encrypted", "data": "y" },
        ] }),
    );
}

#[track_caller]
fn check_document(body: &str, expected: Verdict) -> Completion {
    let answer = Completion::from_document(body, ReplyLimits::default(), &mut |_| ()).unwrap();
    assert_eq!(answer.verdict(), expected);
    answer
}

#[test]
fn a_document_reads_like_a_stream() {
    let answer = check_document(
        r#"{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":"hm",
            "tool_calls":[{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b"}}]}}]}"#,
        Verdict::ToolRequest,
    );
    let names: Vec<&str> = answer.tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "calls without index and id stay apart");
    assert_eq!(answer.content.as_deref(), Some("hm"));
}

#[test]
fn a_finish_reason_length_marks_the_answer_as_truncated() {
    check_document(
        r#"{"choices":[{"finish_reason":"length","message":{"content":"cut"}}]}"#,
        Verdict::FinalAnswer { truncated: true },
    );
}

#[test]
fn a_blank_refusal_is_none() {
    let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"fine","refusal":"  "}}]}"#;
    check_document(body, Verdict::FinalAnswer { truncated: false });
}

#[test]
fn an_error_of_a_choice_is_seen() {
    let body = r#"{"choices":[{"finish_reason":"error","error":{"code":502,"message":"died"},"message":{"content":"half"}}]}"#;
    let answer = check_document(body, Verdict::Invalid(InvalidKind::Transient));
    assert_eq!(answer.error.unwrap().message, "died");
}

proptest! {
    #[test]
    fn no_bytes_do_harm_and_no_cut_matters(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24),
        noise in proptest::collection::vec(any::<u8>(), 0..16),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = pieces.concat().into_bytes();
        let at = at.index(bytes.len() + 1);
        bytes.splice(at..at, noise);
        let cut = cut.index(bytes.len() + 1);
        let (whole, shown) = assemble([bytes.as_slice()]);
        let (parts, shown_again) = assemble([&bytes[..cut], &bytes[cut..]]);
        prop_assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
        prop_assert_eq!(shown, shown_again);
    }
}

/// Deltas of the shape that is read in one pass, and what nearly has it.
const DELTAS: &[&str] = &[
    r#"{"role":"assistant","content":"a"}"#,
    r#"{"content":"plain"}"#,
    r#"{"content":"text"}"#,
    r#"{"content":"\u00fc\",\"reasoning\":\"no"}"#,
    r#"{"content":""}"#,
    r#"{"content":"\u00e9 \"\n","refusal":null,"reasoning_details":null}"#,
    r#"{"content":"","reasoning":"","reasoning_content":"hm"}"#,
    r#"{"content":"b","reasoning":"c","reasoning_content":"d"}"#,
    r#"{"content":null,"tool_calls":null}"#,
    r#"{"content":7,"reasoning":"kept"}"#,
    r#"{"content":["e",{"type":"text","text":"f"}]}"#,
    r#"{"content":"\ud83d","reasoning":"odd"}"#,
    r#"{"refusal":"no"}"#,
    r#"{"content":"g","reasoning_details":[{"type":"reasoning.text","text":"t"}]}"#,
    r#"{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"n","arguments":""}}]}"#,
    r#"{"content":"h","tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#,
    r#"{"tool_calls":[{"index":1,"id":null,"function":{"name":null,"arguments":"1}"}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":{"a":1}}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":null}]}"#,
    r#"{"tool_calls":[{"index":2.0,"function":{"name":"m"}}]}"#,
    r#"{"tool_calls":[{"function":{"arguments":"2"}},{"index":1}]}"#,
    r#"{"tool_calls":[]}"#,
    "null",
    "{}",
    "[]",
];

/// A stream of such deltas of models that take turns; `more` goes into each choice.
fn stream_of(deltas: &[(&str, &str)], more: &str) -> String {
    let event = |(delta, model): &(&str, &str)| {
        format!(
            "data: {{\"id\":\"r\",\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{delta}{more}}}]}}\n\n"
        )
    };
    deltas.iter().map(event).collect()
}

proptest! {
    #[test]
    fn a_delta_means_the_same_in_every_shape_of_its_chunk(
        deltas in proptest::collection::vec(
            (proptest::sample::select(DELTAS), proptest::sample::select(&["m", "m", "m", "n"][..])),
            1..12,
        ),
    ) {
        let seen = |stream: &str| {
            let mut assembler = Assembler::new(ReplyLimits::default());
            let mut parts = Vec::new();
            assembler.feed(stream.as_bytes(), &mut |part| parts.push(part)).unwrap();
            format!("{:?} {parts:?}", assembler.finish())
        };
        let plain = seen(&stream_of(&deltas, ""));
        // Means nothing, and none of the common chunks has it.
        for more in [r#","finish_reason":"""#, r#","usage":"none""#, r#","native_finish_reason":[]"#] {
            prop_assert_eq!(&plain, &seen(&stream_of(&deltas, more)), "{}", more);
        }
    }
}

/// What streams are made of, in any order.
const PIECES: &[&str] = &[
    "data: ",
    "\n\n",
    "\r\n",
    ": c\n",
    "data: [DONE]\n\n",
    r#"{"choices":[{"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"n","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":18446744073709551615,"id":"x"}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"id":"y","function":{"arguments":{"a":[1e400]}}}]}}]}"#,
    r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"t"}]}}]}"#,
    r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
    r#"{"choices":{},"usage":{"prompt_tokens":-1,"cost":"free"}}"#,
    r#"{"error":{"code":"odd","message":null}}"#,
    r#"{"choices":[{"finish_reason":"stop"}]}"#,
];

#[track_caller]
fn check_bound(limits: ReplyLimits, stream: &str, expected: &str) {
    let mut assembler = Assembler::new(limits);
    let fault: AdapterError = assembler.feed(stream.as_bytes(), &mut |_| ()).unwrap_err();
    assert_eq!(fault.to_string(), expected);
    assert_eq!(fault.kind(), "adapter.too_large");
}

fn limits(change: impl FnOnce(&mut ReplyLimits)) -> ReplyLimits {
    let mut limits = ReplyLimits::default();
    change(&mut limits);
    limits
}

#[test]
fn every_part_of_a_reply_is_bounded() {
    let long = "data: 0123456789\n\n";
    check_bound(limits(|l| l.body = 10), long, "the reply is larger than the bound of 10 bytes");
    check_bound(limits(|l| l.line = 10), long, "the line of the reply is larger than the bound of 10 bytes");
    check_bound(limits(|l| l.event = 8), long, "the event of the reply is larger than the bound of 8 bytes");
    let calls =
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0},{"index":1}]}}]}"#.to_owned() + "\n\n";
    check_bound(
        limits(|l| l.tool_calls = 1),
        &calls,
        "the list of tool calls is larger than the bound of 1 calls",
    );
    let items = r#"data: {"choices":[{"delta":{"reasoning_details":[{"index":0},{"index":1}]}}]}"#.to_owned()
        + "\n\n";
    check_bound(
        limits(|l| l.reasoning_items = 1),
        &items,
        "the list of reasoning items is larger than the bound of 1 items",
    );
}
