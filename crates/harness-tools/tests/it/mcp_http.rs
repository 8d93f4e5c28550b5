//! MCP servers over streamable HTTP, on the loopback interface.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use harness_tools::mcp::{McpServer, McpSpec};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::mcp_peer::{read, read_file};
use crate::support::{LONG, block_on, told};

/// What a server does with a call of a tool.
#[derive(Clone, Copy)]
enum Answer {
    Json,
    Events,
    Status(u16),
    /// A stream of events that ends without an answer.
    Broken,
}

#[derive(Clone)]
struct Seen {
    answer: Answer,
    /// `METHOD token what` of each request.
    requests: Arc<Mutex<Vec<String>>>,
}

async fn serve(State(seen): State<Seen>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("-").to_owned();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let what = message["method"].as_str().unwrap_or("-").to_owned();
    let line = format!("{method} {} {what}", text("authorization"));
    seen.requests.lock().push(line);
    let events = [(header::CONTENT_TYPE, "text/event-stream")];
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let found = || result(json!({"content": [{"type": "text", "text": "found"}]}));
    match (what.as_str(), seen.answer) {
        ("initialize", _) => {
            let hello = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            });
            ([("mcp-session-id", "session-1")], axum::Json(result(hello))).into_response()
        }
        ("tools/list", _) => axum::Json(result(json!({"tools": read_file()}))).into_response(),
        ("tools/call", Answer::Json) => axum::Json(found()).into_response(),
        ("tools/call", Answer::Events) => (events, format!("data: {}\n\n", found())).into_response(),
        ("tools/call", Answer::Broken) => (events, ": working\n\n").into_response(),
        ("tools/call", Answer::Status(code)) => StatusCode::from_u16(code).unwrap().into_response(),
        ("-", _) if method == Method::GET => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// A server and what it sees.
async fn start(answer: Answer) -> (McpServer, Arc<Mutex<Vec<String>>>) {
    let seen = Seen { answer, requests: Arc::default() };
    let requests = Arc::clone(&seen.requests);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=url-secret", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(serve).with_state(seen)).await });
    let mut spec = McpSpec::http(url).header("Authorization", "Bearer header-secret");
    spec.timeout = LONG;
    (McpServer::new("files", spec), requests)
}

/// The outcome of a call, with the address replaced.
fn outcome(answer: Answer) -> String {
    block_on(async {
        let (server, _) = start(answer).await;
        let text = told(&read(&server).await);
        server.close().await;
        without_port(&text)
    })
}

fn without_port(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "ADDRESS" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn answers_come_as_json_or_as_events() {
    assert_eq!(outcome(Answer::Json), "success\nfound");
    assert_eq!(outcome(Answer::Events), "success\nfound");
}

#[test]
fn headers_go_with_every_request_and_the_session_is_ended() {
    block_on(async {
        let (server, requests) = start(Answer::Json).await;
        server.tools().await.unwrap();
        server.close().await;
        let requests = requests.lock();
        assert!(requests.iter().all(|line| line.contains(" Bearer header-secret ")), "{requests:?}");
        assert_eq!(requests.first().unwrap(), "POST Bearer header-secret initialize");
        assert!(requests.iter().any(|line| line.starts_with("DELETE ")), "{requests:?}");
    });
}

#[test]
fn a_failed_request_is_told_without_secrets() {
    let text = outcome(Answer::Status(500));
    assert!(!text.contains("secret"), "{text}");
    insta::assert_snapshot!(text, @"
    failed mcp_server_lost
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; the request to http://ADDRESS/mcp failed: HTTP 500
    ");
    insta::assert_snapshot!(outcome(Answer::Status(404)), @"
    failed mcp_server_lost
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; the request to http://ADDRESS/mcp failed: Session expired (HTTP 404)
    ");
    insta::assert_snapshot!(outcome(Answer::Status(307)), @"
    failed mcp_server_lost
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; the request to http://ADDRESS/mcp failed: unexpected server response: HTTP 307 Temporary Redirect
    ");
}

#[test]
fn a_stream_that_breaks_off_is_told() {
    insta::assert_snapshot!(outcome(Answer::Broken), @"
    failed mcp_server_lost
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; the connection to it ended
    ");
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let fault = block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?key=url-secret", listener.local_addr().unwrap());
        drop(listener);
        let mut spec = McpSpec::http(url);
        spec.connect_timeout = Duration::from_secs(20);
        McpServer::new("files", spec).tools().await.unwrap_err()
    });
    assert!(!fault.to_string().contains("secret"), "{fault}");
    insta::assert_snapshot!(without_port(&fault.to_string()), @r"
    cannot use MCP server `files`: the request to http://ADDRESS/mcp failed: Client error: error sending request for url (http://ADDRESS/mcp): client error (Connect): tcp connect error: Connection refused (os error 111)
    ");
}

#[test]
fn a_call_that_never_reached_the_server_is_told_as_such() {
    let text = block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        told(&read(&McpServer::new("files", McpSpec::http(gone))).await)
    });
    assert!(text.starts_with("failed mcp_unavailable\n") && text.contains("refused"), "{text}");
}

#[test]
fn settings_that_cannot_be_used_are_told() {
    let fault = |spec: McpSpec| block_on(McpServer::new("files", spec).tools()).unwrap_err().to_string();
    insta::assert_snapshot!(fault(McpSpec::http("files")), @r"
    cannot use MCP server `files`: invalid `url`: relative URL without a base
    ");
    let password = fault(McpSpec::http("https://user:PASSWORD@example.com/"));
    insta::assert_snapshot!(password, @r"
    cannot use MCP server `files`: its `url` holds a user name or password; send them in a header
    ");
    insta::assert_snapshot!(fault(McpSpec::http("ftp://example.com/")), @r"
    cannot use MCP server `files`: its `url` begins with `ftp:`, not with `https:`
    ");
    insta::assert_snapshot!(fault(McpSpec::http("http://127.0.0.1/").header("a b", "x")), @r"
    cannot use MCP server `files`: invalid header name `a b`
    ");
    let value = fault(McpSpec::http("http://127.0.0.1/").header("X-Token", "line\nbreak"));
    assert!(!value.contains("break"), "{value}");
    insta::assert_snapshot!(value, @r"
    cannot use MCP server `files`: the value of the header `X-Token` is not allowed in one
    ");
}
