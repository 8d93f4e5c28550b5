//! Calls that wait for a decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::core::message::{ApprovalRequest, ToolCall};
use harness::core::port::{ApprovalAsk, Decision, ProposedCall};
use harness::core::tool::{ToolDef, ToolOutcome, tool_fn};
use harness::core::{Cancel, Json, Origin};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Desk, Server, within};

/// A thread whose call of `pay` is held, and its approval.
async fn held() -> (Server, Value) {
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
    assert_eq!(call["reason"], "`pay` needs approval");
    (server, call.clone())
}

fn path(approval: &Value) -> String {
    format!("/v1/threads/a/approvals/{}", approval["id"].as_str().unwrap())
}

/// The decision about what the approval shows.
fn about(approval: &Value, mut decision: Value) -> Value {
    decision["digest"] = approval["digest"].clone();
    decision
}

/// The approvals of the thread, once there are so many.
async fn listed(server: &Server, count: usize) -> Vec<Value> {
    loop {
        let changed = server.desk.approvals.changed();
        if server.desk.approvals.all().len() == count {
            break;
        }
        within("the approvals", changed).await;
    }
    server.client.get("/v1/threads/a/approvals").await.body["approvals"].as_array().unwrap().clone()
}

async fn check(decision: Value, expected: &str) {
    let (server, approval) = held().await;
    let (path, decision) = (path(&approval), about(&approval, decision));
    assert_eq!(server.client.post(&path, decision.clone()).await.status, 204, "{decision}");
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert!(report["text"].as_str().unwrap().contains(expected), "{decision}: {report}");
    assert_eq!(server.client.post(&path, decision).await.status, 204, "a repeat is no other decision");
    let other = server.client.post(&path, about(&approval, json!({ "decision": "later" }))).await;
    assert_eq!((other.status, other.kind()), (409, "runtime.decided"));
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
    let (server, approval) = held().await;
    let path = path(&approval);
    for (body, at) in [
        (json!({}), None),
        (json!({ "decision": "perhaps" }), Some("decision")),
        (json!({ "decision": "edited" }), Some("arguments")),
        (json!({ "decision": "edited", "arguments": 7 }), Some("arguments")),
        (json!({ "decision": "granted", "arguments": {} }), Some("arguments")),
        (json!({ "decision": "granted", "reason": "why not" }), Some("reason")),
    ] {
        let refused = server.client.post(&path, about(&approval, body.clone())).await;
        assert_eq!((refused.status, refused.body["error"]["path"].as_str()), (422, at), "{body}");
    }
    assert_eq!(server.client.get("/v1/approvals").await.body["approvals"][0]["id"], approval["id"]);
    let other = about(&approval, json!({ "decision": "granted" }));
    let other = server.client.post("/v1/threads/a/approvals/other", other).await;
    assert_eq!((other.status, other.kind()), (404, "runtime.not_held"));
    server.end().await;
}

#[tokio::test]
async fn a_call_that_was_put_off_is_decided_later() {
    let (server, approval) = held().await;
    server.client.post(&path(&approval), about(&approval, json!({ "decision": "later" }))).await;
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert_eq!(report["outcome"], "awaiting_approval");
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    let parked = &listed["approvals"][0];
    assert_eq!((&parked["callId"], &parked["state"]), (&approval["callId"], &json!("parked")));
    assert_ne!(parked["id"], approval["id"], "it is another question");

    let mut frames = server.client.follow("/v1/threads/a/events?until=run_end", None).await;
    let granted = about(parked, json!({ "decision": "granted" }));
    assert_eq!(server.client.post(&path(parked), granted.clone()).await.status, 204);
    frames.rest().await;
    assert_eq!(server.client.post(&path(parked), granted).await.status, 204, "a repeat changes nothing");
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "paid 5");
    server.end().await;
}

#[tokio::test]
async fn an_abort_ends_a_call_that_was_put_off() {
    let (server, approval) = held().await;
    server.client.post(&path(&approval), about(&approval, json!({ "decision": "later" }))).await;
    server.client.get("/v1/threads/a/response").await;
    let abort = || server.client.post("/v1/threads/a/abort?wait=true", json!({ "reason": "too late" }));
    assert_eq!(abort().await.body["stopped"], true);
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert_eq!(
        (&report["stopReason"], &report["aborted"]),
        (&json!("cancelled"), &json!("too late")),
        "{report}"
    );
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    assert_eq!(listed["approvals"], json!([]));
    let messages = server.client.get("/v1/threads/a/messages").await.body;
    let result = "This call did not run: the turn that asked for it ended before the call started.";
    assert_eq!(messages["messages"][2]["content"][0]["text"], result, "{messages}");
    assert_eq!(abort().await.body["stopped"], false);
    server.end().await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    amount: u64,
}

#[tokio::test]
async fn a_call_whose_work_waits_is_listed_and_goes_on_when_it_is_granted() {
    let has_asked = Arc::new(AtomicBool::new(false));
    let order = tool_fn("order", "Orders", move |order: Order, _| {
        let has_asked = has_asked.swap(true, Ordering::Relaxed);
        async move {
            let outcome = ToolOutcome::text(format!("ordered {}", order.amount));
            if has_asked {
                return outcome;
            }
            outcome.waiting_for([ApprovalRequest::new("o-1", "order", "Order it for 5?")])
        }
    });
    let server = Desk::with(|builder| builder.tool(order)).serve().await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "call order" })).await;
    let report = server.client.get("/v1/threads/a/response").await.body;
    assert_eq!(report["outcome"], "awaiting_approval");
    let listed = server.client.get("/v1/threads/a/approvals").await.body;
    let parked = &listed["approvals"][0];
    assert_eq!(
        (&parked["tool"], &parked["reason"], &parked["state"]),
        (&json!("order"), &json!("Order it for 5?"), &json!("parked"))
    );
    let mut frames = server.client.follow("/v1/threads/a/events?until=run_end", None).await;
    let granted = about(parked, json!({ "decision": "granted" }));
    assert_eq!(server.client.post(&path(parked), granted.clone()).await.status, 204);
    frames.rest().await;
    assert_eq!(server.client.post(&path(parked), granted).await.status, 204, "a repeat changes nothing");
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "ordered 5");
    server.end().await;
}

#[tokio::test]
async fn fault_03_a_repeated_decision_decides_no_other_call() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "pay 5 1000000" })).await;
    let first = listed(&server, 1).await.remove(0);
    let granted = about(&first, json!({ "decision": "granted" }));
    // The first response was lost: the client repeats itself while the second call is held.
    assert_eq!(server.client.post(&path(&first), granted.clone()).await.status, 204);
    let second = listed(&server, 1).await.remove(0);
    assert_eq!(
        (&first["callId"], &second["callId"], &second["arguments"]),
        (&json!("c1"), &json!("c1-2"), &json!({ "amount": 1_000_000 }))
    );
    assert_eq!(server.client.post(&path(&first), granted.clone()).await.status, 204);
    assert_eq!(listed(&server, 1).await[0]["id"], second["id"], "it is not decided");
    // Nor does its digest decide the second call.
    let mixed = server.client.post(&path(&second), granted).await;
    assert_eq!((mixed.status, mixed.kind()), (409, "runtime.other_call"));
    let denied = about(&second, json!({ "decision": "denied", "reason": "too much" }));
    assert_eq!(server.client.post(&path(&second), denied).await.status, 204);
    server.client.get("/v1/threads/a/response").await;
    let messages = server.client.get("/v1/threads/a/messages").await.body;
    let results: Vec<&Value> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "toolResult")
        .collect();
    assert_eq!(results.len(), 2, "{messages}");
    assert_eq!(results[0]["content"][0]["text"], "paid 5");
    assert!(results[1]["content"][0]["text"].as_str().unwrap().contains("too much"), "{messages}");
    server.end().await;
}

#[tokio::test]
async fn fault_03_a_decision_for_an_aborted_run_approves_nothing_later() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "pay 5" })).await;
    let first = listed(&server, 1).await.remove(0);
    server.client.post("/v1/threads/a/abort?wait", json!({})).await;
    server.client.post("/v1/threads/a/prompt", json!({ "text": "pay 5" })).await;
    let second = listed(&server, 1).await.remove(0);
    assert_ne!(
        (&first["id"], &first["digest"], &first["run"]),
        (&second["id"], &second["digest"], &second["run"])
    );
    let late = server.client.post(&path(&first), about(&first, json!({ "decision": "granted" }))).await;
    assert_eq!((late.status, late.kind()), (409, "runtime.decided"));
    let crossed = server.client.post(&path(&second), about(&first, json!({ "decision": "granted" }))).await;
    assert_eq!((crossed.status, crossed.kind()), (409, "runtime.other_call"));
    assert_eq!(listed(&server, 1).await[0]["id"], second["id"], "it still waits");
    server.end().await;
}

#[tokio::test]
async fn fault_03_a_decision_names_the_digest_that_was_shown() {
    let (server, approval) = held().await;
    let path = path(&approval);
    let decide = |tag: Option<String>, body: Value| {
        let request = server.client.request(reqwest::Method::POST, &path).json(&body);
        let request = tag.into_iter().fold(request, |request, tag| request.header("If-Match", tag));
        server.client.send(request)
    };
    let granted = json!({ "decision": "granted" });
    let digest = approval["digest"].as_str().unwrap();
    let missing = decide(None, granted.clone()).await;
    assert_eq!((missing.status, missing.kind()), (409, "request.no_digest"));
    let other = decide(Some("\"other\"".to_owned()), granted.clone()).await;
    assert_eq!((other.status, other.kind()), (412, "runtime.other_call"));
    for tag in [digest.to_owned(), "*".to_owned(), format!("W/\"{digest}\"")] {
        let unreadable = decide(Some(tag), granted.clone()).await;
        assert_eq!((unreadable.status, unreadable.kind()), (400, "request.if_match"));
    }
    let differs = decide(Some("\"other\"".to_owned()), about(&approval, granted.clone())).await;
    assert_eq!(differs.status, 422);
    assert_eq!(listed(&server, 1).await[0]["id"], approval["id"], "nothing was decided");
    assert_eq!(decide(Some(format!("\"{digest}\"")), granted).await.status, 204);
    assert_eq!(server.client.get("/v1/threads/a/response").await.body["text"], "paid 5");
    server.end().await;
}

#[tokio::test]
async fn fault_37_awaiting_approval_is_a_state_of_its_own() {
    let (server, approval) = held().await;
    for at in ["/v1/threads/a/status", "/v1/threads/a"] {
        let shown = server.client.get(at).await.body;
        let status = if at.ends_with("status") { &shown } else { &shown["status"] };
        assert_eq!(
            (&status["state"], &status["run"]),
            (&json!("awaiting_approval"), &approval["run"]),
            "{at}"
        );
    }
    let listed = server.client.get("/v1/threads").await.body;
    assert_eq!(listed["threads"][0]["status"]["state"], "awaiting_approval");
    assert_eq!(listed["threads"][0]["title"], "call pay", "the start of the first message");
    server.client.post(&path(&approval), about(&approval, json!({ "decision": "granted" }))).await;
    server.client.get("/v1/threads/a/response").await;
    assert_eq!(server.client.get("/v1/threads/a/status").await.body["state"], "idle");
    server.end().await;
}

#[tokio::test]
async fn fault_37_empty_prompts_are_refused() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    let blank = [
        json!({ "text": "" }),
        json!({ "text": " \n" }),
        json!({ "content": [{ "type": "text", "text": "" }] }),
    ];
    for route in ["prompt", "messages", "steer", "follow-up", "interrupt"] {
        for body in &blank {
            let refused = server.client.post(&format!("/v1/threads/a/{route}"), body.clone()).await;
            let at = if body["text"].is_null() { "content" } else { "text" };
            assert_eq!(
                (refused.status, refused.kind(), refused.body["error"]["path"].as_str()),
                (422, "request.invalid", Some(at)),
                "{route} {body}"
            );
        }
    }
    assert_eq!(server.client.get("/v1/threads/a/messages").await.body["total"], 0);
    server.end().await;
}

#[tokio::test]
async fn a_list_after_an_announcement_contains_the_call() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let (of_subagent, cancel) = ask_for_subagent(&server, "a");
    listed(&server, 1).await;
    let mut frames = client.follow("/v1/threads/a/events", None).await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call pay" })).await;
    while frames.next().await.unwrap().data["event"]["type"] != "approval_requested" {}
    let listed = client.get("/v1/threads/a/approvals").await.body;
    let tools: Vec<_> = listed["approvals"].as_array().unwrap().iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["look", "pay"]);
    cancel.cancel();
    assert_eq!(of_subagent.await.unwrap(), Decision::Later);
    server.end().await;
}

#[tokio::test]
async fn streams_report_changes_of_pending_calls() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let mut frames = client.follow("/v1/threads/a/events", None).await;
    client.post("/v1/threads/a/prompt", json!({ "text": "call pay" })).await;
    let pending = frames.until("approvals").await.pop().unwrap();
    assert_eq!((pending.id, &pending.data), (None, &json!({ "pending": 1 })));
    let call = listed(&server, 1).await.remove(0);
    client.post(&path(&call), about(&call, json!({ "decision": "granted" }))).await;
    assert_eq!(frames.until("approvals").await.pop().unwrap().data, json!({ "pending": 0 }));

    // A call of a sub-agent is in no event of the thread.
    let (of_subagent, cancel) = ask_for_subagent(&server, "a");
    assert_eq!(frames.until("approvals").await.pop().unwrap().data, json!({ "pending": 1 }));
    cancel.cancel();
    assert_eq!(of_subagent.await.unwrap(), Decision::Later);
    assert_eq!(frames.until("approvals").await.pop().unwrap().data, json!({ "pending": 0 }));
    server.end().await;
}

/// Holds a call of a sub-agent of a thread until it is cancelled.
fn ask_for_subagent(server: &Server, thread: &str) -> (JoinHandle<Decision>, Cancel) {
    let mut origin = Origin::default();
    origin.thread = Some(thread.into());
    let call = Arc::new(ToolCall::new("s1", "look", Json::empty_object()));
    let proposed = ProposedCall::new(call, ToolDef::new("look", "Looks"), "scout".into(), 1);
    let proposed = ProposedCall { origin: Arc::new(origin), ..proposed };
    let (approvals, cancel) = (server.desk.approvals.clone(), Cancel::new());
    let ask = ApprovalAsk { proposed, cancel: cancel.clone() };
    (tokio::spawn(async move { approvals.decide_call(ask).await }), cancel)
}
