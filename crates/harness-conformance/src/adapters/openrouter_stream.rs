//! Kind `openrouter-stream`: streamed answers put together by [`Assembler`], in the reads that the
//! vector gives, cut in two at every byte, and byte by byte.

use harness::adapters::chat::{Assembler, Completion, CompletionCall, ReplyLimits, Verdict as Outcome};
use serde_json::{Map, Value, json};

use super::words::StreamVector;
use crate::Done;
use crate::jsonl_session::decoded;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(|vector| check(&vector)).into()
}

fn check(vector: &StreamVector) -> Done<()> {
    let reads: Vec<Vec<u8>> = vector.chunks_base64.iter().map(|read| decoded(read)).collect();
    let whole = reads.concat();
    let given: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
    let is_stream = vector.content_type.contains("event-stream");
    let expected = &vector.expected;
    compare(expected, "as given", &read(&given, is_stream)?, is_stream)?;
    for (cut, _) in whole.iter().enumerate() {
        let (start, end) = whole.split_at(cut);
        compare(expected, &format!("cut at byte {cut}"), &read(&[start, end], is_stream)?, is_stream)?;
    }
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    compare(expected, "byte by byte", &read(&bytes, is_stream)?, is_stream)
}

/// Returns the message of these reads; a response without a stream is one document.
fn read(reads: &[&[u8]], is_stream: bool) -> Done<Completion> {
    let limits = ReplyLimits::default();
    if !is_stream {
        let document = String::from_utf8_lossy(&reads.concat()).into_owned();
        return Completion::from_document(&document, limits, &mut |_| {}).map_err(|e| e.to_string());
    }
    let mut assembler = Assembler::new(limits);
    for bytes in reads {
        assembler.feed(bytes, &mut |_| {}).map_err(|e| e.to_string())?;
    }
    Ok(assembler.finish())
}

fn compare(expected: &Value, how: &str, answer: &Completion, is_stream: bool) -> Done<()> {
    let mut told = message(answer);
    told.insert("sawDone".to_owned(), json!(is_stream && answer.saw_done));
    if expected.pointer("/message/malformedEvents").is_some() || answer.malformed_events > 0 {
        told.insert("malformedEvents".to_owned(), json!(answer.malformed_events));
    }
    same(how, expected, &json!({ "message": told, "outcome": outcome(answer) }))
}

fn message(answer: &Completion) -> Map<String, Value> {
    let details = answer.reasoning_details.iter().map(|detail| detail.to::<Value>().unwrap_or_default());
    let fields = [
        ("responseId", json!(answer.id)),
        ("model", json!(answer.model)),
        ("content", json!(answer.content)),
        ("reasoning", json!(answer.reasoning)),
        ("refusal", json!(answer.refusal)),
        ("reasoningDetails", details.collect()),
        ("toolCalls", answer.tool_calls.iter().map(call).collect()),
        ("finishReason", json!(answer.finish_reason)),
        ("usage", json!(usage(answer))),
        ("error", json!(error(answer))),
        ("comments", json!(answer.comments)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn call(call: &CompletionCall) -> Value {
    let input = call.input().and_then(|input| input.to::<Value>().ok());
    json!({ "id": call.id, "name": call.name, "argumentsText": call.arguments, "input": input })
}

/// The counts under the suite's names; what was not reported is left out.
fn usage(answer: &Completion) -> Option<Value> {
    let usage = answer.usage.as_ref()?;
    let cost = usage.cost.and_then(|cost| cost.to_string().parse::<f64>().ok());
    let counts = [
        ("inputTokens", usage.prompt),
        ("outputTokens", usage.completion),
        ("totalTokens", usage.total),
        ("cachedTokens", usage.cached),
        ("cacheWriteTokens", usage.cache_write),
        ("reasoningTokens", usage.reasoning),
    ];
    let counts = counts.into_iter().filter_map(|(name, count)| Some((name, json!(count?))));
    let all = counts.chain(cost.map(|cost| ("cost", json!(cost))));
    Some(Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()))
}

fn error(answer: &Completion) -> Option<Value> {
    let error = answer.error.as_ref()?;
    let code = error.code.as_ref().map(|code| code.parse::<u64>().map_or_else(|_| json!(code), |n| json!(n)));
    Some(json!({ "code": code, "message": error.message, "errorType": error.error_type }))
}

fn outcome(answer: &Completion) -> Value {
    match answer.verdict() {
        Outcome::FinalAnswer { truncated: true } => json!({ "type": "final_answer", "truncated": true }),
        Outcome::FinalAnswer { .. } => json!({ "type": "final_answer" }),
        Outcome::ToolRequest => json!({ "type": "tool_request" }),
        Outcome::Invalid(kind) => json!({ "type": "invalid", "kind": kind.code() }),
        unknown => json!({ "type": format!("{unknown:?}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_where_it_is_and_how_the_stream_was_cut() {
        let judge = |finish: &str| {
            let message = json!({
                "responseId": null, "model": null, "content": "hi", "reasoning": null, "refusal": null,
                "reasoningDetails": [], "toolCalls": [], "finishReason": finish, "usage": null,
                "error": null, "sawDone": false, "comments": 0,
            });
            // "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"
            let stream = "ZGF0YTogeyJjaG9pY2VzIjpbeyJkZWx0YSI6eyJjb250ZW50IjoiaGkifSwiZmluaXNoX3JlYXNvbiI6InN0b3AifV19Cgo=";
            let expected = json!({ "message": message, "outcome": { "type": "final_answer" } });
            run(&Vector::made(
                "openrouter-stream",
                json!({
                    "name": "x", "text": "", "cut": "whole", "byteLength": 71, "httpStatus": 200,
                    "contentType": "text/event-stream", "chunksBase64": [stream], "expected": expected,
                }),
            ))
        };
        assert_eq!(judge("stop"), Verdict::Passed);
        let difference = r#"as given.message.finishReason: expected "length", got "stop""#;
        assert_eq!(judge("length"), Verdict::Failed(difference.to_owned()));
    }
}
