//! Paused answers of the Messages API, and what an hour in the cache costs.

use harness_adapters::messages::MessagesModel;
use harness_core::message::FinishReason;
use serde_json::Value;

use crate::support::{KEY, Reply, Server, hello, step};

const CALL: &str = r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"Oslo"}}"#;

/// One part of an answer, as a document.
fn part(reason: &str, content: &str) -> Reply {
    Reply::json(
        200,
        &format!(
            r#"{{"type":"message","id":"msg_1","model":"claude-sonnet-4-5","content":[{content}],"stop_reason":"{reason}",
                "usage":{{"input_tokens":100,"output_tokens":10,"cache_creation_input_tokens":1000,
                "cache_creation":{{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":1000}}}}}}"#
        ),
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn model(server: &Server) -> MessagesModel {
    MessagesModel::anthropic("claude-sonnet-4-5", KEY).base_url(server.url()).build().unwrap()
}

#[tokio::test]
async fn paused_answers_are_continued_with_what_came_before() {
    let first = part("pause_turn", &format!("{},{CALL}", text("Looking. ")));
    let server = Server::start([first, part("end_turn", &text("It is mild."))]).await;
    let message = step(&model(&server), hello()).await.unwrap();
    assert_eq!(
        (message.joined_text().as_str(), &message.stop_reason),
        ("Looking. It is mild.", &FinishReason::Stop)
    );
    assert_eq!(message.content.len(), 3);
    let usage = message.usage.as_ref().unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cache_write, usage.requests),
        (Some(200), Some(20), Some(2_000), Some(2))
    );
    let second: Value = serde_json::from_str(&server.seen()[1].body).unwrap();
    let last = second["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant");
    assert_eq!(last["content"][1]["id"], "srv_1", "{last}");
}

#[tokio::test]
async fn continuations_are_bounded() {
    let paused = (0..20).map(|_| part("pause_turn", CALL));
    let server = Server::start(paused).await;
    let message = step(&model(&server), hello()).await.unwrap();
    assert_eq!((message.stop_reason, server.seen().len()), (FinishReason::Paused, 9));
}

#[tokio::test]
async fn errors_of_a_continuation_keep_what_came_before() {
    let first = part("pause_turn", &text("Looking."));
    let server =
        Server::start([first, Reply::json(529, r#"{"error":{"type":"overloaded_error","message":"x"}}"#)])
            .await;
    let fault = step(&model(&server), hello()).await.unwrap_err();
    assert_eq!(fault.partial.unwrap().joined_text(), "Looking.");
}

#[tokio::test]
async fn cache_writes_for_an_hour_are_charged_as_such() {
    let server = Server::start([part("end_turn", &text("Hi."))]).await;
    let message = step(&model(&server), hello()).await.unwrap();
    // 100 input tokens at 3, 10 output tokens at 15, 1,000 tokens for an hour at 6 dollars a million.
    assert_eq!(message.usage.as_ref().unwrap().total_cost().unwrap().to_string(), "0.00645");
}
