//! Calls that wait for a decision.

use serde_json::{Value, json};

use crate::support::{Desk, Server};

/// A thread whose call of `pay` is held, and the id of the call.
async fn held() -> (Server, String) {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let mut frames = client.follow("/v1/threads/a/events", None).await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call pay" })).await;
    while frames.next().await.unwrap().data["event"]["type"] != "approval_requested" {}
    // The event is told before the call is held.
    while server.desk.approvals.all().is_empty() {
        tokio::task::yield_now().await;
    }
    let listed = client.get("/v1/threads/a/approvals").await.body;
    let call = &listed["approvals"][0];
    assert_eq!(
        (&call["thread"], &call["tool"], &call["arguments"], &call["state"]),
        (&json!("a"), &json!("pay"), &json!({ "amount": 5 }), &json!("held"))
    );
    assert_eq!(client.get("/v1/approvals").await.body, listed);
    assert_eq!(client.get("/v1/threads/a").await.body["approvals"], 1);
    let id = call["callId"].as_str().unwrap().to_owned();
    (server, id)
}

async fn check(decision: Value, expected: &str) {
    let (server, call) = held().await;
    let path = format!("/v1/threads/a/approvals/{call}");
    assert_eq!(server.client.post(&path, decision.clone()).await.status, 204, "{decision}");
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert!(report["text"].as_str().unwrap().contains(expected), "{decision}: {report}");
    let again = server.client.post(&path, decision).await;
    assert_eq!((again.status, again.kind()), (404, "runtime.not_held"));
    assert_eq!(server.client.get("/v1/approvals").await.body, json!({ "approvals": [] }));
    server.end().await;
}

#[tokio::test]
async fn a_call_is_granted_edited_or_denied() {
    check(json!({ "decision": "granted" }), "paid 5").await;
    check(json!({ "decision": "edited", "arguments": { "amount": 7 } }), "paid 7").await;
    check(json!({ "decision": "denied", "reason": "too much" }), "too much").await;
}

#[tokio::test]
async fn a_decision_that_is_not_whole_decides_nothing() {
    let (server, call) = held().await;
    let path = format!("/v1/threads/a/approvals/{call}");
    for (body, at) in [
        (json!({}), None),
        (json!({ "decision": "perhaps" }), Some("decision")),
        (json!({ "decision": "edited" }), Some("arguments")),
        (json!({ "decision": "edited", "arguments": 7 }), Some("arguments")),
        (json!({ "decision": "granted", "arguments": {} }), Some("arguments")),
        (json!({ "decision": "granted", "reason": "why not" }), Some("reason")),
    ] {
        let refused = server.client.post(&path, body.clone()).await;
        assert_eq!((refused.status, refused.body["error"]["path"].as_str()), (422, at), "{body}");
    }
    assert_eq!(server.client.get("/v1/approvals").await.body["approvals"][0]["callId"], json!(call));
    let other = server.client.post("/v1/threads/a/approvals/other", json!({ "decision": "granted" })).await;
    assert_eq!(other.status, 404);
    server.end().await;
}

#[tokio::test]
async fn a_call_that_was_put_off_is_decided_later() {
    let (server, call) = held().await;
    let path = format!("/v1/threads/a/approvals/{call}");
    server.client.post(&path, json!({ "decision": "later" })).await;
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert_eq!(report["outcome"], "awaiting_approval");
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    assert_eq!(
        (&listed["approvals"][0]["callId"], &listed["approvals"][0]["state"]),
        (&json!(call), &json!("parked"))
    );

    let mut frames = server.client.follow("/v1/threads/a/events?until=run_end", None).await;
    assert_eq!(server.client.post(&path, json!({ "decision": "granted" })).await.status, 204);
    frames.rest().await;
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "paid 5");
    server.end().await;
}
