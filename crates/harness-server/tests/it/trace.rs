//! The trace page of a thread.

use harness::record::{RecentRuns, Recording};
use reqwest::Method;
use serde_json::json;

use crate::support::{Desk, Server, within};

/// A server that keeps the runs of its threads.
async fn recorded() -> Server {
    let runs = RecentRuns::new();
    let recording = Recording::new().recent(runs.clone());
    Desk::with(|builder| builder.record(recording)).serve_with(|options| options.recent_runs(runs)).await
}

/// The page of a thread.
async fn trace(server: &Server, thread: &str) -> String {
    let request = server.client.request(Method::GET, &format!("/v1/threads/{thread}/trace"));
    let response = within("the page", request.send()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["cache-control"]),
        (200, &"no-store".parse().unwrap())
    );
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    response.text().await.unwrap()
}

/// Checks which texts a page has; those with a leading `!` must not be there.
#[track_caller]
fn check(page: &str, texts: &[&str]) {
    for text in texts {
        match text.strip_prefix('!') {
            Some(absent) => assert!(!page.contains(absent), "{absent} is in {page}"),
            None => assert!(page.contains(text), "{text} is not in {page}"),
        }
    }
}

#[tokio::test]
async fn trace_shows_runs_from_their_start_until_the_thread_is_deleted() {
    let server = recorded().await;
    let client = &server.client;
    client.create("a").await;
    client.create("b").await;
    check(&trace(&server, "a").await, &["<h1>No runs</h1>"]);
    assert_eq!(client.ask("a", "first").await, "first");
    client.ask("b", "of another thread").await;

    client.post("/v1/threads/a/prompt", json!({ "text": "call slow" })).await;
    within("the start of the call", server.desk.began.notified()).await;
    let running = ["<h1>2 runs</h1>", "plain\">running<", "<b class=\"mono\">slow</b>", "call slow", "first"];
    check(&trace(&server, "a").await, &running);
    check(&trace(&server, "a").await, &["!of another thread", "!no result", "!cancelled"]);

    server.desk.go.add_permits(1);
    assert_eq!(client.get("/v1/threads/a/response").await.body["text"], "slowly done");
    check(&trace(&server, "a").await, &["<h1>2 runs</h1>", "slowly done", "!running"]);

    assert_eq!(client.delete("/v1/threads/a").await.status, 204);
    client.create("a").await;
    check(&trace(&server, "a").await, &["<h1>No runs</h1>"]);
    check(&trace(&server, "b").await, &["<h1>1 run</h1>"]);
    server.end().await;
}

#[tokio::test]
async fn trace_has_no_runs_unless_the_server_keeps_them() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    server.client.ask("a", "first").await;
    check(&trace(&server, "a").await, &["<h1>No runs</h1>"]);
    assert_eq!(server.client.get("/v1/threads/none/trace").await.kind(), "server.no_thread");
    server.end().await;
}

#[tokio::test]
async fn trace_requires_the_token_and_its_frame_has_no_data() {
    let token = "0123456789abcdef";
    let server = Desk::new().serve_with(|options| options.token(token).unwrap()).await;
    assert_eq!(server.client.get("/v1/threads/a/trace").await.status, 401);
    let request = server.client.request(Method::GET, "/trace?thread=a");
    let response = within("the frame", request.send()).await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    check(
        &policy,
        &[
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self';",
            "frame-ancestors 'none'",
            "!unsafe",
        ],
    );
    check(&response.text().await.unwrap(), &["ui/trace.js", "ui/live.js", "!<style", "!<script>", "!style="]);
    server.end().await;
}
