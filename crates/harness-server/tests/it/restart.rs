//! Servers that come back with their sessions.

use serde_json::json;

use crate::support::{Desk, Server};

async fn serve(folder: &tempfile::TempDir) -> Server {
    Desk::with_sessions(folder.path()).serve().await
}

#[tokio::test]
async fn threads_come_back_and_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder).await;
    server.client.create("a").await;
    server.client.ask("a", "one").await;
    server.end().await;

    let server = serve(&folder).await;
    let listed = server.client.get("/v1/threads").await.body;
    let line = &listed["threads"][0];
    assert_eq!((&line["id"], &line["title"], &line["messages"]), (&json!("a"), &json!("one"), &json!(2)));
    let again = server.client.post("/v1/threads", json!({ "id": "a" })).await;
    assert_eq!((again.status, again.kind()), (409, "server.thread_exists"));
    assert_eq!(server.client.ask("a", "two").await, "two");
    assert_eq!(server.client.get("/v1/threads/a").await.body["messages"], 4);

    assert_eq!(server.client.delete("/v1/threads/a").await.status, 204);
    assert_eq!(server.client.get("/v1/threads/a").await.status, 404);
    server.end().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the session is gone, too");
}

#[tokio::test]
async fn a_call_that_waits_is_decided_after_the_server_came_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder).await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "call pay" })).await;
    while server.desk.approvals.all().is_empty() {
        tokio::task::yield_now().await;
    }
    server.end().await;

    let server = serve(&folder).await;
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    let call = &listed["approvals"][0];
    assert_eq!((&call["tool"], &call["state"]), (&json!("pay"), &json!("parked")));
    assert_eq!(server.client.get("/v1/threads/a").await.body["approvals"], 1);
    let path = format!("/v1/threads/a/approvals/{}", call["id"].as_str().unwrap());
    let edited = json!({ "decision": "edited", "arguments": { "amount": 3 }, "digest": call["digest"] });
    let answered = server.client.post(&path, edited).await;
    assert_eq!(answered.status, 204, "{}", answered.body);
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "paid 3");
    server.end().await;
}

#[tokio::test]
async fn calls_that_were_listed_together_are_decided_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder).await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "pay 3 4" })).await;
    while server.desk.approvals.all().is_empty() {
        tokio::task::yield_now().await;
    }
    server.end().await;

    let server = serve(&folder).await;
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    let decide = |at: usize, mut decision: serde_json::Value| {
        let (client, call) = (&server.client, &listed["approvals"][at]);
        let path = format!("/v1/threads/a/approvals/{}", call["id"].as_str().unwrap());
        decision["digest"] = call["digest"].clone();
        async move { client.post(&path, decision).await.status }
    };
    // The run that one decision resumes holds the calls one after the other, under other ids.
    let (granted, denied) =
        (json!({ "decision": "granted" }), json!({ "decision": "denied", "reason": "no" }));
    let given = tokio::join!(decide(1, denied), decide(0, granted.clone()));
    assert_eq!(given, (204, 204));
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "Denied: no");
    // Each may be repeated, and not changed.
    assert_eq!((decide(0, granted.clone()).await, decide(1, granted).await), (204, 409));
    server.end().await;
}

#[tokio::test]
async fn attributes_of_a_thread_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder).await;
    let attributes = json!({ "user": "ada", "context": { "shop": 7 }, "metadata": { "order": 12_345_678_901_234_567_890_u64 } });
    let mut body = attributes.clone();
    body["id"] = json!("a");
    let created = server.client.post("/v1/threads", body).await;
    let of = |view: &serde_json::Value| json!({ "user": view["user"], "context": view["context"], "metadata": view["metadata"] });
    assert_eq!((created.status, of(&created.body)), (201, attributes.clone()));
    server.client.ask("a", "one").await;
    let line = server.client.get("/v1/threads").await.body["threads"][0].take();
    assert_eq!((&line["user"], &line["metadata"]), (&attributes["user"], &attributes["metadata"]));
    server.end().await;

    let server = serve(&folder).await;
    let again = server.client.get("/v1/threads").await.body["threads"][0].take();
    assert_eq!(again, line, "the list needs no thread to be open");
    assert_eq!(of(&server.client.get("/v1/threads/a").await.body), attributes);
    server.client.ask("a", "two").await;
    let events =
        server.client.follow("/v1/threads/a/events?from=turn&until=run_end", None).await.rest().await;
    let origin = &events.iter().find(|frame| frame.event == "event").unwrap().data["event"]["origin"];
    assert_eq!((&origin["user"], &origin["metadata"]), (&attributes["user"], &attributes["metadata"]));
    server.end().await;
}

#[tokio::test]
async fn conversations_keep_their_metadata_and_the_time_of_their_creation() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder).await;
    let created = server.client.post("/v1/conversations", json!({ "metadata": { "topic": "tents" } })).await;
    let path = format!("/v1/conversations/{}", created.body["id"].as_str().unwrap());
    assert_eq!((created.status, &created.body["metadata"]), (200, &json!({ "topic": "tents" })));
    server.end().await;

    let server = serve(&folder).await;
    assert_eq!(server.client.get(&path).await.body, created.body);
    assert_eq!(server.client.get("/v1/threads").await.body["threads"].as_array().unwrap().len(), 1);
    server.end().await;
}
