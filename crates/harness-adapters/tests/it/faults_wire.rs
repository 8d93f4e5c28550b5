//! What a stream may hold beside what it should, in every protocol: characters cut in two, events that cannot be read,
//! ids and names without end.

use std::fmt::Write as _;

use harness_adapters::MAX_LABEL_BYTES;
use harness_core::message::{AssistantMessage, FinishReason};
use harness_core::port::{DeltaPart, ModelFault, ModelFaultCode as Code};

use crate::support::{KEY, PROTOCOLS, Pieces, Protocol, Reply, Server, bounded, hello};

/// What an endpoint sends: texts as the inside of JSON strings, in pieces.
struct Sent<'a> {
    thoughts: &'a [&'a str],
    texts: &'a [&'a str],
    /// The id and the name of a call.
    call: Option<(&'a str, &'a str)>,
    arguments: &'a [&'a str],
    /// The end in the protocol's words; the usual one when it is empty.
    reason: &'a str,
    /// The response's own id.
    id: &'a str,
    /// An event in between.
    strange: &'a str,
}

impl Default for Sent<'_> {
    fn default() -> Self {
        Self { thoughts: &[], texts: &["ok"], call: None, arguments: &[], reason: "", id: "r", strange: "" }
    }
}

impl Sent<'_> {
    fn stream(&self, protocol: &Protocol) -> String {
        let events = match protocol.name {
            "chat completions" => self.chat(),
            "messages" => self.messages(),
            "responses" => self.responses(),
            other => panic!("unknown protocol {other}"),
        };
        let mut stream = String::new();
        for event in events {
            write!(stream, "data: {event}\n\n").unwrap();
        }
        stream
    }

    /// The end in the protocol's words.
    fn end<'s>(&'s self, usual: &'s str) -> &'s str {
        if self.reason.is_empty() { usual } else { self.reason }
    }

    fn strange(&self) -> impl Iterator<Item = String> {
        (!self.strange.is_empty()).then(|| self.strange.to_owned()).into_iter()
    }

    fn chat(&self) -> Vec<String> {
        let id = self.id;
        let delta =
            |delta: String| format!(r#"{{"id":"{id}","choices":[{{"index":0,"delta":{{{delta}}}}}]}}"#);
        let mut events = Vec::new();
        events.extend(self.thoughts.iter().map(|text| delta(format!(r#""reasoning":"{text}""#))));
        events.extend(self.texts.iter().map(|text| delta(format!(r#""content":"{text}""#))));
        events.extend(self.strange());
        if let Some((id, name)) = self.call {
            let call = format!(r#""tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"{name}"}}}}]"#);
            events.push(delta(call));
        }
        events.extend(self.arguments.iter().map(|text| {
            delta(format!(r#""tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]"#))
        }));
        let end = self.end(if self.call.is_some() { "tool_calls" } else { "stop" });
        events.push(format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{end}"}}]}}"#));
        events.push("[DONE]".to_owned());
        events
    }

    fn messages(&self) -> Vec<String> {
        let id = self.id;
        let mut events = vec![format!(r#"{{"type":"message_start","message":{{"id":"{id}","model":"m"}}}}"#)];
        let mut block = |index: usize, start: String, kind: &str, field: &str, pieces: &[&str]| {
            events.push(format!(
                r#"{{"type":"content_block_start","index":{index},"content_block":{{{start}}}}}"#
            ));
            events.extend(pieces.iter().map(|text| {
                format!(
                    r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":"{text}"}}}}"#
                )
            }));
            events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
        };
        if !self.thoughts.is_empty() {
            let start = r#""type":"thinking","thinking":"""#.to_owned();
            block(0, start, "thinking_delta", "thinking", self.thoughts);
        }
        block(1, r#""type":"text","text":"""#.to_owned(), "text_delta", "text", self.texts);
        if let Some((id, name)) = self.call {
            let start = format!(r#""type":"tool_use","id":"{id}","name":"{name}","input":{{}}"#);
            block(2, start, "input_json_delta", "partial_json", self.arguments);
        }
        events.extend(self.strange());
        let end = self.end(if self.call.is_some() { "tool_use" } else { "end_turn" });
        events.push(format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{end}"}}}}"#));
        events.push(r#"{"type":"message_stop"}"#.to_owned());
        events
    }

    fn responses(&self) -> Vec<String> {
        let id = self.id;
        let mut events = vec![format!(r#"{{"type":"response.created","response":{{"id":"{id}"}}}}"#)];
        let mut item = |index: usize, start: String, kind: &str, pieces: &[&str]| {
            events.push(format!(
                r#"{{"type":"response.output_item.added","output_index":{index},"item":{{{start}}}}}"#
            ));
            events.extend(
                pieces
                    .iter()
                    .map(|text| format!(r#"{{"type":"{kind}","output_index":{index},"delta":"{text}"}}"#)),
            );
        };
        if !self.thoughts.is_empty() {
            let start = r#""type":"reasoning","id":"t""#.to_owned();
            item(0, start, "response.reasoning_summary_text.delta", self.thoughts);
        }
        let start = r#""type":"message","id":"m","content":[]"#.to_owned();
        item(1, start, "response.output_text.delta", self.texts);
        if let Some((id, name)) = self.call {
            let start = format!(r#""type":"function_call","call_id":"{id}","name":"{name}""#);
            item(2, start, "response.function_call_arguments.delta", self.arguments);
        }
        events.extend(self.strange());
        events.push(if self.reason.is_empty() {
            r#"{"type":"response.completed","response":{"status":"completed"}}"#.to_owned()
        } else {
            let details = format!(r#""incomplete_details":{{"reason":"{}"}}"#, self.reason);
            format!(r#"{{"type":"response.incomplete","response":{{"status":"incomplete",{details}}}}}"#)
        });
        events
    }
}

/// What a step makes of it, and the pieces that were passed on.
async fn step(protocol: &Protocol, sent: &Sent<'_>) -> (Result<AssistantMessage, ModelFault>, Pieces) {
    let reply = Reply::events().send(sent.stream(protocol));
    let server = Server::start([reply]).await;
    let pieces = Pieces::default();
    let model = (protocol.model)(&server.url());
    let result = bounded(protocol.name, model.step_boxed(hello(), &pieces)).await;
    (result, pieces)
}

#[tokio::test]
async fn fault_26_characters_cut_in_two_are_whole_in_texts_thoughts_and_arguments() {
    for protocol in PROTOCOLS {
        let sent = Sent {
            thoughts: &[r"hm \ud83d", r"\ude80."],
            texts: &[r"go \ud83d", r"\ude80!", r"\uD83D", r"\uDE80"],
            call: Some(("a", "pay")),
            arguments: &[r#"{\"t\":\"\ud83d"#, r#"\ude80\"}"#],
            ..Sent::default()
        };
        let (message, pieces) = step(protocol, &sent).await;
        let message = message.unwrap_or_else(|fault| panic!("{}: {fault}", protocol.name));
        assert_eq!(message.joined_text(), "go \u{1f680}!\u{1f680}", "{}", protocol.name);
        let arguments: Vec<&str> = message.tool_calls().map(|call| call.arguments.text()).collect();
        assert_eq!(arguments, ["{\"t\":\"\u{1f680}\"}"], "{}", protocol.name);
        let content = serde_json::to_string(&message.content).unwrap();
        assert!(content.contains("hm \u{1f680}."), "{}: {content}", protocol.name);

        let mut thought = String::new();
        let mut written = String::new();
        for piece in pieces.all() {
            if let DeltaPart::Thinking(text) = &piece {
                thought.push_str(text);
            } else if let DeltaPart::CallArguments { text, .. } = &piece {
                written.push_str(text);
            }
        }
        let streamed = (thought.as_str(), pieces.text(), written.as_str());
        let expected = ("hm \u{1f680}.", "go \u{1f680}!\u{1f680}".to_owned(), "{\"t\":\"\u{1f680}\"}");
        assert_eq!(streamed, expected, "{}", protocol.name);
    }
}

#[tokio::test]
async fn fault_26_half_a_character_is_marked() {
    for protocol in PROTOCOLS {
        for (texts, expected) in [
            (&[r"go \ud83d"][..], "go \u{fffd}"),
            (&[r"\ud83d", "on"], "\u{fffd}on"),
            (&["go", r"\ude80on"], "go\u{fffd}on"),
        ] {
            let (message, _) = step(protocol, &Sent { texts, ..Sent::default() }).await;
            assert_eq!(message.unwrap().joined_text(), expected, "{} {texts:?}", protocol.name);
        }
    }
}

#[tokio::test]
async fn fault_26_an_event_that_cannot_be_read_fails_the_step_and_is_quoted() {
    for protocol in PROTOCOLS {
        let strange = format!("{{not json \u{1b}]0;x\u{7} {KEY} {}", "z".repeat(10_000));
        let (result, _) = step(protocol, &Sent { strange: &strange, ..Sent::default() }).await;
        let fault = result.expect_err(protocol.name);
        assert_eq!(fault.code, Code::Protocol, "{}", protocol.name);
        assert!(fault.message.contains("`{not json"), "{}: {}", protocol.name, fault.message);
        assert!(!fault.message.contains(KEY) && !fault.message.contains('\u{1b}'), "{}", fault.message);
        assert!(fault.message.len() < 1_000, "{}", fault.message.len());
        let partial = fault.partial.expect("what had arrived");
        assert_eq!(partial.joined_text(), "ok", "{}", protocol.name);
    }
}

#[tokio::test]
async fn fault_26_events_without_data_are_no_fault() {
    for protocol in PROTOCOLS {
        let (result, _) = step(protocol, &Sent { strange: " ", ..Sent::default() }).await;
        assert_eq!(result.unwrap().joined_text(), "ok", "{}", protocol.name);
    }
}

#[tokio::test]
async fn fault_14_a_call_with_an_endless_id_or_name_fails_the_step() {
    let (within, beyond) = ("x".repeat(MAX_LABEL_BYTES), "x".repeat(1 << 15));
    for protocol in PROTOCOLS {
        let sent = |call| Sent { call: Some(call), arguments: &["{}"], ..Sent::default() };
        let (message, _) = step(protocol, &sent((within.as_str(), within.as_str()))).await;
        assert_eq!(message.unwrap().tool_calls().count(), 1, "{}", protocol.name);
        for (call, what) in [
            ((beyond.as_str(), "pay"), "id of a tool call"),
            (("a", beyond.as_str()), "name of a called tool"),
        ] {
            let fault = step(protocol, &sent(call)).await.0.expect_err(protocol.name);
            assert_eq!(fault.code, Code::Protocol, "{}", protocol.name);
            let expected = format!("the {what} is larger than the bound of 256 bytes");
            assert!(fault.message.contains(&expected), "{}: {}", protocol.name, fault.message);
            assert!(fault.message.len() < 1_000, "{}", protocol.name);
        }
    }
}

#[tokio::test]
async fn fault_14_other_ids_are_left_out_and_reasons_are_cut() {
    let beyond = "x".repeat(1 << 15);
    for protocol in PROTOCOLS {
        let sent = Sent { reason: &beyond, id: &beyond, ..Sent::default() };
        let message = step(protocol, &sent).await.0.unwrap();
        assert_eq!(message.response_id, None, "{}", protocol.name);
        let FinishReason::Other(reason) = &message.stop_reason else {
            panic!("{}: {:?}", protocol.name, message.stop_reason)
        };
        assert!(reason.len() <= MAX_LABEL_BYTES && reason.starts_with("xxx"), "{}: {reason}", protocol.name);
        let metadata = message.provider_metadata.as_ref().map(|json| json.text().len());
        assert!(metadata.is_none_or(|bytes| bytes < 1_000), "{}: {metadata:?}", protocol.name);
    }
}
