//! The hosted protocols side by side, so that one test can hold all of them to one rule.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::chat::{ChatModel, ChatTimeouts, ReplyLimits};
use harness_adapters::messages::MessagesModel;
use harness_adapters::responses::ResponsesModel;
use harness_core::port::DynModel;

use super::KEY;

/// A protocol: how its model is made and what an endpoint would send in it.
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    /// A model of that base URL with the key of the tests and small limits.
    pub(crate) model: fn(url: &str) -> Arc<dyn DynModel>,
    /// A streamed answer: a thought, text in pieces, usage.
    pub(crate) answer: fn() -> Recorded,
    /// A streamed answer that asks for two calls of `pay`, which differ in their arguments.
    pub(crate) calls: fn() -> Recorded,
    /// The start of a stream that goes on with text.
    pub(crate) begun: &'static str,
    /// An error as this protocol writes it, with a message to fill in for `MESSAGE`.
    pub(crate) error: &'static str,
}

/// All of them.
pub(crate) const PROTOCOLS: &[Protocol] = &[CHAT, MESSAGES, RESPONSES];

/// A recorded stream, event by event.
pub(crate) struct Recorded {
    events: Vec<Event>,
    /// The number of events after which the answer is whole.
    whole: usize,
}

struct Event {
    bytes: String,
    /// The text that it adds to the answer.
    text: &'static str,
}

impl Recorded {
    /// Events with the text that each adds; the answer is whole after the first `whole`.
    fn new<const N: usize>(whole: usize, events: [(&str, &'static str); N]) -> Self {
        let event = |(bytes, text): (&str, _)| Event { bytes: format!("{bytes}\n\n"), text };
        Self { events: events.map(event).into(), whole }
    }

    /// The bytes of the stream.
    pub(crate) fn bytes(&self) -> String {
        self.events.iter().map(|event| event.bytes.as_str()).collect()
    }

    /// The events as they are on the wire.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.iter().map(|event| event.bytes.clone()).collect()
    }

    /// The text of the first `length` bytes, and whether the answer is whole then.
    pub(crate) fn after(&self, length: usize) -> (String, bool) {
        let mut end = 0;
        let ends = self.events.iter().map(|event| {
            end += event.bytes.len();
            end
        });
        let arrived = ends.filter(|end| *end <= length).count();
        (self.events[..arrived].iter().map(|event| event.text).collect(), arrived >= self.whole)
    }
}

/// Bounds that a test reaches quickly.
fn limits() -> ReplyLimits {
    let mut limits = ReplyLimits::default();
    (limits.body, limits.line, limits.event) = (1 << 20, 64 << 10, 64 << 10);
    limits
}

/// Time that no test waits for.
fn timeouts() -> ChatTimeouts {
    let mut timeouts = ChatTimeouts::default();
    (timeouts.connect, timeouts.idle) = (Duration::from_mins(1), Duration::from_mins(1));
    timeouts
}

const CHAT: Protocol = Protocol {
    name: "chat completions",
    model: |url| {
        let builder = ChatModel::openrouter("example/model", KEY).base_url(url);
        Arc::new(builder.limits(limits()).timeouts(timeouts()).build().unwrap())
    },
    answer: || {
        Recorded::new(
            5,
            [
                (": OPENROUTER PROCESSING", ""),
                (r#"data: {"id":"g","choices":[{"index":0,"delta":{"reasoning":"Hm."}}]}"#, ""),
                (r#"data: {"id":"g","choices":[{"index":0,"delta":{"content":"4 °C"}}]}"#, "4 °C"),
                (r#"data: {"id":"g","choices":[{"index":0,"delta":{"content":" now"}}]}"#, " now"),
                (r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, ""),
                (r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#, ""),
                ("data: [DONE]", ""),
            ],
        )
    },
    calls: || {
        Recorded::new(
            6,
            [
                (r#"data: {"choices":[{"delta":{"content":"Paying."}}]}"#, "Paying."),
                (
                    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"pay","arguments":"{\"cents\""}}]}}]}"#,
                    "",
                ),
                (
                    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":10}"}}]}}]}"#,
                    "",
                ),
                (
                    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"pay","arguments":"{\"cents\""}}]}}]}"#,
                    "",
                ),
                (
                    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":20}"}}]}}]}"#,
                    "",
                ),
                (r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#, ""),
                ("data: [DONE]", ""),
            ],
        )
    },
    begun: "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n",
    error: r#"{"error":{"code":400,"message":"MESSAGE","metadata":{"raw":"MESSAGE","provider_name":"MESSAGE"}}}"#,
};

const MESSAGES: Protocol = Protocol {
    name: "messages",
    model: |url| {
        let builder = MessagesModel::anthropic("example-model", KEY).base_url(url);
        Arc::new(builder.limits(limits()).timeouts(timeouts()).build().unwrap())
    },
    answer: || {
        Recorded::new(
            9,
            [
                (": hello", ""),
                (
                    r#"event: message_start
data: {"type":"message_start","message":{"id":"m","model":"example-model","usage":{"input_tokens":9}}}"#,
                    "",
                ),
                (r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}"#, ""),
                (
                    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}"#,
                    "",
                ),
                ("event: ping\ndata: {\"type\":\"ping\"}", ""),
                (
                    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"4 °C"}}"#,
                    "4 °C",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" now"}}"#,
                    " now",
                ),
                (
                    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
                    "",
                ),
                (r#"data: {"type":"message_stop"}"#, ""),
            ],
        )
    },
    calls: || {
        Recorded::new(
            11,
            [
                (r#"data: {"type":"message_start","message":{"id":"m","model":"example-model"}}"#, ""),
                (
                    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Paying."}}"#,
                    "Paying.",
                ),
                (r#"data: {"type":"content_block_stop","index":0}"#, ""),
                (
                    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"pay","input":{}}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"cents\""}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":10}"}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"pay","input":{}}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"cents\""}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":20}"}}"#,
                    "",
                ),
                (r#"data: {"type":"content_block_stop","index":2}"#, ""),
                (r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#, ""),
                (r#"data: {"type":"message_stop"}"#, ""),
            ],
        )
    },
    begun: "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Half\"}}\n\n",
    error: r#"{"type":"error","error":{"type":"invalid_request_error","message":"MESSAGE"},"request_id":"MESSAGE"}"#,
};

const RESPONSES: Protocol = Protocol {
    name: "responses",
    model: |url| {
        let builder = ResponsesModel::openai("example-model", KEY).base_url(url);
        Arc::new(builder.limits(limits()).timeouts(timeouts()).build().unwrap())
    },
    answer: || {
        Recorded::new(
            9,
            [
                (": hello", ""),
                (
                    r#"data: {"type":"response.created","response":{"id":"r","model":"example-model","status":"in_progress"}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"i0","summary":[]}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Hm."}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"i1","role":"assistant","content":[]}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"4 °C"}"#,
                    "4 °C",
                ),
                (
                    r#"data: {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":" now"}"#,
                    " now",
                ),
                (
                    r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"i1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"4 °C now"}]}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":9,"output_tokens":3}}}"#,
                    "",
                ),
            ],
        )
    },
    calls: || {
        Recorded::new(
            10,
            [
                (r#"data: {"type":"response.created","response":{"id":"r","model":"example-model"}}"#, ""),
                (
                    r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Paying."}"#,
                    "Paying.",
                ),
                (
                    r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"i1","call_id":"a","name":"pay","arguments":""}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"cents\""}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":":10}"}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"i1","call_id":"a","name":"pay","arguments":"{\"cents\":10}"}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"i2","call_id":"b","name":"pay","arguments":""}}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"cents\""}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":":20}"}"#,
                    "",
                ),
                (
                    r#"data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Paying."}]},{"type":"function_call","id":"i1","call_id":"a","name":"pay","arguments":"{\"cents\":10}"},{"type":"function_call","id":"i2","call_id":"b","name":"pay","arguments":"{\"cents\":20}"}]}}"#,
                    "",
                ),
            ],
        )
    },
    begun: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"Half\"}\n\n",
    error: r#"{"type":"error","error":{"type":"invalid_request_error","code":"bad","message":"MESSAGE","param":"MESSAGE"}}"#,
};
