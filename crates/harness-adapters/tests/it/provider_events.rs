//! Events of a provider as they arrived, on request.

use harness_adapters::chat::ChatModel;
use harness_adapters::messages::MessagesModel;
use harness_adapters::responses::ResponsesModel;
use harness_core::port::{DeltaPart, Model};

use crate::support::{KEY, Pieces, Reply, Server, hello};

/// Asks a model of a server that gives `reply`; gives the events that were passed on, one a line: type, number of the
/// item, number of the block, data.
async fn check<M: Model>(model: impl FnOnce(String) -> M, reply: Reply, expected: &[&str]) {
    let (server, pieces) = (Server::start([reply]).await, Pieces::default());
    model(server.url()).step(hello(), &pieces).await.unwrap();
    let shown = pieces.all().into_iter().filter_map(|part| {
        let DeltaPart::Provider(event) = part else { return None };
        let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let (item, block) = (number(event.output_index), number(event.content_index));
        Some(format!("{} {item} {block} {}", event.kind.as_deref().unwrap_or("-"), event.data))
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

fn chat(url: String) -> ChatModel {
    ChatModel::openrouter("a/b", KEY).base_url(url).provider_events().build().unwrap()
}

#[tokio::test]
async fn each_event_is_passed_on_unchanged() {
    let chunk =
        r#"{"id":"g","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"x":1.50}"#;
    let reply = Reply::events().event(chunk).event("[DONE]");
    check(chat, reply, &[&format!("- - - {chunk}"), r#"- - - "[DONE]""#]).await;

    let events = [
        r#"{"type":"message_start","message":{"id":"m","role":"assistant"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let model =
        |url| MessagesModel::anthropic("claude", KEY).base_url(url).provider_events().build().unwrap();
    check(
        model,
        events.iter().fold(Reply::events(), |reply, event| reply.event(event)),
        &[
            &format!("message_start - - {}", events[0]),
            &format!("content_block_start - 0 {}", events[1]),
            &format!("message_delta - - {}", events[2]),
            &format!("message_stop - - {}", events[3]),
        ],
    )
    .await;

    let events = [
        r#"{"type":"response.output_text.delta","item_id":"i","output_index":1,"content_index":2,"delta":"Hi"}"#,
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#,
    ];
    let model = |url| ResponsesModel::openai("gpt", KEY).base_url(url).provider_events().build().unwrap();
    check(
        model,
        events.iter().fold(Reply::events(), |reply, event| reply.event(event)),
        &[
            &format!("response.output_text.delta 1 2 {}", events[0]),
            &format!("response.completed - - {}", events[1]),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_one_document_is_one_event() {
    let document = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    check(chat, Reply::json(200, document), &[&format!("- - - {document}")]).await;
}

#[tokio::test]
async fn nothing_is_passed_on_that_was_not_asked_for() {
    let model = |url| ChatModel::openrouter("a/b", KEY).base_url(url).build().unwrap();
    let reply = Reply::events().delta(r#"{"content":"Hi"}"#).finish("stop");
    check(model, reply, &[]).await;
}
