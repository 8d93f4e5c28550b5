//! Requests that say nothing.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;

use crate::support::Desk;

/// What is sent to a route, as what, and the status, kind and place that come back.
type Case = (&'static str, &'static str, &'static str, (u16, &'static str, Option<&'static str>));

const JSON: &str = "application/json";

const CASES: &[Case] = &[
    ("prompt", "text/plain", r#"{"text":"x"}"#, (415, "request.media_type", None)),
    ("prompt", "", r#"{"text":"x"}"#, (415, "request.media_type", None)),
    ("prompt", JSON, "", (400, "request.no_json", None)),
    ("prompt", JSON, "{", (400, "request.no_json", None)),
    ("prompt", JSON, r#"{"text":"x"} y"#, (400, "request.no_json", None)),
    ("prompt", JSON, "\u{feff}{}", (400, "request.no_json", None)),
    ("prompt", JSON, r#"["x", null]"#, (422, "request.invalid", None)),
    ("prompt", JSON, "null", (422, "request.invalid", None)),
    ("prompt", JSON, "{}", (422, "request.invalid", Some("text"))),
    ("prompt", JSON, r#"{"text":7}"#, (422, "request.invalid", Some("text"))),
    ("prompt", JSON, r#"{"txet":"x"}"#, (422, "request.invalid", Some("txet"))),
    ("prompt", JSON, r#"{"text":"x","content":[]}"#, (422, "request.invalid", Some("content"))),
    ("prompt", JSON, r#"{"content":[]}"#, (422, "request.invalid", Some("content"))),
    ("prompt", JSON, r#"{"content":[{"text":"x"}]}"#, (422, "request.invalid", Some("content[0]"))),
    ("prompt", JSON, r#"{"content":[{"type":"smell"}]}"#, (422, "request.invalid", Some("content[0].type"))),
    ("messages", JSON, r#"{"text":"x","delivery":"soon"}"#, (422, "request.invalid", Some("delivery"))),
    ("messages", JSON, r#"{"text":"x","entry":""}"#, (422, "request.invalid", Some("entry"))),
    ("abort", JSON, r#"{"reason":[]}"#, (422, "request.invalid", Some("reason"))),
    ("compact", "text/plain", "short", (415, "request.media_type", None)),
    ("prompt?wait=maybe", JSON, r#"{"text":"x"}"#, (400, "request.query", None)),
];

#[tokio::test]
async fn every_fault_has_a_kind_and_a_place() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    for (route, media_type, body, expected) in CASES {
        let mut request = client.request(Method::POST, &format!("/v1/threads/a/{route}")).body(*body);
        if !media_type.is_empty() {
            request = request.header(CONTENT_TYPE, *media_type);
        }
        let reply = client.send(request).await;
        let place = reply.body["error"]["path"].as_str();
        assert_eq!((reply.status, reply.kind(), place), *expected, "{route} {body}: {}", reply.body);
        assert!(reply.body["error"]["message"].is_string());
    }
    assert_eq!(client.get("/v1/threads/a").await.body["messages"], 0, "nothing was started");
    server.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_told_as_json() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    for (method, path, expected) in [
        (Method::GET, "/v1/threads/b", (404, "server.no_thread")),
        (Method::GET, "/v1/threads/%2Ehidden", (404, "server.no_thread")),
        (Method::GET, "/v1/threads/%ff", (400, "request.path")),
        (Method::GET, "/v1/threads/a/b", (404, "server.no_route")),
        (Method::GET, "/none", (404, "server.no_route")),
        (Method::PUT, "/v1/threads/a", (405, "server.no_method")),
        (Method::DELETE, "/v1/threads/a/queue/msg-1", (404, "runtime.not_waiting")),
    ] {
        let reply = client.send(client.request(method.clone(), path)).await;
        assert_eq!((reply.status, reply.kind()), expected, "{method} {path}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_body_has_a_bound() {
    let server = Desk::new().serve_with(|options| options.bounds(|bounds| bounds.body = 100)).await;
    let client = &server.client;
    client.create("a").await;
    let within = format!(r#"{{"text":"{}"}}"#, "x".repeat(89));
    for (body, status) in [(within.clone(), 202), (within + " ", 413)] {
        let request =
            client.request(Method::POST, "/v1/threads/a/steer").header(CONTENT_TYPE, JSON).body(body);
        assert_eq!(client.send(request).await.status, status);
    }
    // One that does not say how long it is.
    let pieces = futures_util::stream::iter((0..9).map(|_| Ok::<_, std::io::Error>("x".repeat(30))));
    let request = client.request(Method::POST, "/v1/threads/a/steer").header(CONTENT_TYPE, JSON);
    let refused = client.send(request.body(reqwest::Body::wrap_stream(pieces))).await;
    assert_eq!((refused.status, refused.kind()), (413, "request.too_large"));
    server.end().await;
}
