//! The trace page of a thread.

use std::path::Path;

use harness::record::{FolderSink, FolderSource, RecentRuns, Recording};
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

/// A server with stored sessions, which keeps its runs and, with `records`, writes them to files.
async fn stored(folder: &Path, records: bool) -> Server {
    let (runs, files) = (RecentRuns::new(), folder.join("records"));
    let mut recording = Recording::new().recent(runs.clone());
    if records {
        recording = recording.sink(FolderSink::new(&files));
    }
    let desk = Desk::with_sessions_and(&folder.join("threads"), |builder| builder.record(recording));
    desk.serve_with(|options| {
        let options = options.recent_runs(runs);
        if records { options.recorded_runs(FolderSource::new(files)) } else { options }
    })
    .await
}

#[tokio::test]
async fn trace_shows_runs_before_a_restart_from_their_records() {
    let folder = tempfile::tempdir().unwrap();
    let server = stored(folder.path(), true).await;
    server.client.create("a").await;
    server.client.create("b").await;
    server.client.ask("a", "first").await;
    server.client.ask("b", "of another thread").await;
    server.end().await;

    let server = stored(folder.path(), true).await;
    check(&trace(&server, "a").await, &["<h1>1 run</h1>", "first", "!of another thread", "!Earlier runs"]);
    server.client.ask("a", "second").await;
    check(&trace(&server, "a").await, &["<h1>2 runs</h1>", "first", "second", "!Earlier runs"]);
    server.end().await;
}

/// Changes the text of all records.
fn change_records(folder: &Path, change: impl Fn(&str) -> String) {
    for file in std::fs::read_dir(folder.join("records")).unwrap() {
        let path = file.unwrap().path();
        std::fs::write(&path, change(&std::fs::read_to_string(&path).unwrap())).unwrap();
    }
}

#[tokio::test]
async fn trace_has_no_records_of_a_deleted_thread_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = stored(folder.path(), true).await;
    server.client.create("a").await;
    server.client.ask("a", "forgotten").await;
    assert_eq!(server.client.delete("/v1/threads/a").await.status, 204);
    server.client.create("a").await;
    check(&trace(&server, "a").await, &["<h1>No runs</h1>"]);
    server.client.ask("a", "second").await;
    server.end().await;

    // Times have milliseconds, and all of this may happen in one.
    change_records(folder.path(), |text| {
        let is_old = text.contains("forgotten");
        if is_old { text.replace("\"completedAt\": \"2", "\"completedAt\": \"1") } else { text.to_owned() }
    });
    let server = stored(folder.path(), true).await;
    check(&trace(&server, "a").await, &["<h1>1 run</h1>", "second", "!forgotten"]);
    server.end().await;
}

/// Checks what the page says about a run before a restart.
async fn check_missing(records: bool, change: impl Fn(&Path), texts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let server = stored(folder.path(), records).await;
    server.client.create("a").await;
    server.client.ask("a", "first").await;
    server.end().await;
    change(folder.path());
    let server = stored(folder.path(), records).await;
    check(&trace(&server, "a").await, texts);
    server.client.ask("a", "second").await;
    check(&trace(&server, "a").await, &[&["<h1>1 run</h1>"], &texts[1..]].concat());
    server.end().await;
}

#[tokio::test]
async fn trace_says_why_earlier_runs_are_missing() {
    let without =
        ["<h1>No runs</h1>", "the server has no run records", "<code>harness serve --run-record DIR</code>"];
    check_missing(false, |_| {}, &without).await;
    let removed = |folder: &Path| std::fs::remove_dir_all(folder.join("records")).unwrap();
    check_missing(true, removed, &["<h1>No runs</h1>", "have no run record"]).await;
    let damaged = |folder: &Path| change_records(folder, |text| text.replace("usage", "Usage"));
    let texts = ["<h1>No runs</h1>", "1 run records of this thread are invalid or cannot be read."];
    check_missing(true, damaged, &texts).await;
}

#[tokio::test]
async fn trace_has_no_runs_unless_the_server_keeps_them() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    server.client.ask("a", "first").await;
    check(&trace(&server, "a").await, &["<h1>No runs</h1>", "the server does not keep them"]);
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
