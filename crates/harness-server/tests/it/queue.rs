//! Messages for threads at work.

use serde_json::{Value, json};

use crate::support::{Desk, within};

fn texts(queue: &Value) -> Vec<&str> {
    let entries = queue["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["message"]["content"][0]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn steering_reaches_the_run_during_a_call() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call slow" })).await;
    within("the call", server.desk.began.notified()).await;
    let steered = client.post("/v1/threads/a/steer", json!({ "text": "and be quick" })).await;
    assert_eq!(steered.status, 202);
    server.desk.go.add_permits(1);
    let report = client.get("/v1/threads/a/response").await.body;
    assert_eq!(report["text"], "and be quick", "the model saw it behind the result");
    let roles: Vec<String> = client.get("/v1/threads/a/messages").await.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "user", "assistant"]);
    server.end().await;
}

#[tokio::test]
async fn what_waits_can_be_seen_edited_moved_and_removed() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call slow" })).await;
    within("the call", server.desk.began.notified()).await;
    for (entry, text) in [("e1", "one"), ("e2", "two"), ("e3", "three")] {
        let sent = client.post("/v1/threads/a/messages", json!({ "text": text, "entry": entry })).await;
        assert_eq!((sent.status, &sent.body["entry"]), (202, &json!(entry)));
    }
    let taken = client.post("/v1/threads/a/messages", json!({ "text": "x", "entry": "e1" })).await;
    assert_eq!((taken.status, taken.kind()), (409, "runtime.entry_exists"));

    let queue = client.get("/v1/threads/a/queue").await.body;
    assert_eq!(texts(&queue), ["one", "two", "three"]);
    let first = &queue["entries"][0];
    assert_eq!(
        (&first["id"], &first["delivery"], &first["state"]),
        (&json!("e1"), &json!("next_turn"), &json!("waiting"))
    );

    let edited = client.patch("/v1/threads/a/queue/e3", json!({ "text": "THREE", "place": 0 })).await;
    assert_eq!(texts(&edited.body), ["THREE", "one", "two"]);
    let removed = client.delete("/v1/threads/a/queue/e1").await;
    assert_eq!((removed.status, &removed.body["id"]), (200, &json!("e1")));
    let again = client.delete("/v1/threads/a/queue/e1").await;
    assert_eq!((again.status, again.kind()), (404, "runtime.not_waiting"));

    server.desk.go.add_permits(1);
    let report = client.get("/v1/threads/a/response").await.body;
    assert_eq!((&report["text"], &report["messages"]), (&json!("two"), &json!(8)));
    server.end().await;
}

#[tokio::test]
async fn an_interruption_ends_the_run_and_begins_the_next() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.post("/v1/threads/a/prompt", json!({ "text": "hang" })).await;
    let sent = client.post("/v1/threads/a/interrupt", json!({ "text": "stop that" })).await;
    assert_eq!(sent.status, 202);
    assert_eq!(client.get("/v1/threads/a/response").await.body["text"], "stop that");

    // A quiet message waits for the next completed run.
    client.post("/v1/threads/a/follow-up", json!({ "text": "and then" })).await;
    assert_eq!(client.get("/v1/threads/a/status").await.body["state"], "queued");
    assert_eq!(client.ask("a", "go").await, "and then");
    server.end().await;
}

#[tokio::test]
async fn a_full_queue_refuses_and_takes_again() {
    let desk = Desk::with(|builder| builder.thread_limits(|limits| limits.queue = 2));
    let server = desk.serve().await;
    let client = &server.client;
    client.create("a").await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call slow" })).await;
    within("the call", server.desk.began.notified()).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(client.post("/v1/threads/a/messages", json!({ "text": "more" })).await);
    }
    let statuses: Vec<u16> = sent.iter().map(|reply| reply.status).collect();
    assert_eq!((statuses, sent[2].kind()), (vec![202, 202, 429], "runtime.queue_full"));
    client.delete("/v1/threads/a/queue/msg-1").await;
    assert_eq!(client.post("/v1/threads/a/messages", json!({ "text": "more" })).await.status, 202);
    server.desk.go.add_permits(1);
    server.end().await;
}

#[tokio::test]
async fn an_idle_thread_with_queued_messages_is_queued() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.post("/v1/threads/a/steer", json!({ "text": "later" })).await;
    for path in ["/v1/threads/a", "/v1/threads"] {
        let body = client.get(path).await.body;
        let view = body.get("threads").map_or(&body, |threads| &threads[0]);
        assert_eq!(view["status"], json!({ "state": "queued" }), "{path}");
    }
    assert_eq!(client.get("/v1/threads/a/status").await.body["state"], "queued");
    client.ask("a", "now").await;
    assert_eq!(client.get("/v1/threads/a/status").await.body["state"], "idle");
    server.end().await;
}
