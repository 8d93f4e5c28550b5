//! Budgets of more than a run, as clients of OpenAI see them.

use std::sync::Arc;

use expect_test::{Expect, expect};
use harness::adapters::SpendLimit;
use harness::core::Time;
use harness::core::limits::{Payer, SpendBudget};
use harness::core::testing::VirtualClock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Desk, Echo, Server, redacted, within};

/// A server whose users have used up their budget with the first answer.
async fn server() -> Server {
    let mut users = SpendBudget::new("users", Payer::User);
    users.tokens = Some(1);
    let clock = Arc::new(VirtualClock::still(Time(0)));
    let server = Desk::of(SpendLimit::new(Echo, [users], clock)).serve().await;
    let first = server.client.post("/v1/responses", asked("/v1/responses")).await;
    assert_eq!((first.status, &first.body["status"]), (200, &json!("completed")));
    server
}

fn asked(path: &str) -> Value {
    let key = if path == "/v1/responses" { "input" } else { "messages" };
    json!({ "model": "harness", "user": "ada", key: [{ "role": "user", "content": "hello" }] })
}

async fn check(path: &str, expected: Expect) {
    let server = server().await;
    let threads = server.client.get("/v1/threads").await.body;
    let reply =
        within("the reply", server.client.request(Method::POST, path).json(&asked(path)).send()).await;
    let reply = reply.unwrap();
    assert_eq!(reply.headers()["x-should-retry"], "false");
    let (status, body) = (reply.status(), reply.text().await.unwrap());
    assert_eq!(server.client.get("/v1/threads").await.body, threads, "no thread is left");
    let mut streamed = asked(path);
    streamed["stream"] = json!(true);
    let stream = within("the stream", server.client.request(Method::POST, path).json(&streamed).send()).await;
    let stream = within("the whole stream", stream.unwrap().text()).await.unwrap();
    let events = stream.split("\n\n").filter_map(|event| event.split_once("data: "));
    let last = events.map(|(_, data)| data).filter(|data| !data.starts_with("[DONE]")).last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    let last = if last["error"].is_null() { &last["response"] } else { &last };
    let last = json!({ "status": last["status"], "error": last["error"] });
    expected.assert_eq(&format!("{status}\n{}\n{}\n", redacted(&body), redacted(&last.to_string())));
    let mut other = asked(path);
    other["user"] = json!("grace");
    assert_eq!(server.client.post(path, other).await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_chat_completion_is_rejected_when_the_budget_is_used_up() {
    check("/v1/chat/completions", expect![[r#"
        429 Too Many Requests
        {"error":{"message":"the budget `users` of user `ada` is used up: 69 of 1 tokens; it is renewed at 1970-01-02T00:00:00.000Z","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
        {"status":null,"error":{"message":"the budget `users` of user `ada` is used up: 69 of 1 tokens; it is renewed at 1970-01-02T00:00:00.000Z","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
    "#]]).await;
}

#[tokio::test]
async fn a_response_is_rejected_when_the_budget_is_used_up() {
    check("/v1/responses", expect![[r#"
        429 Too Many Requests
        {"error":{"message":"the budget `users` of user `ada` is used up: 69 of 1 tokens; it is renewed at 1970-01-02T00:00:00.000Z","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
        {"status":"failed","error":{"code":"insufficient_quota","message":"the budget `users` of user `ada` is used up: 69 of 1 tokens; it is renewed at 1970-01-02T00:00:00.000Z"}}
    "#]]).await;
}
