//! What one client can make the server keep, and requests that are ambiguous.

use std::fmt::Write as _;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Desk, Server, within};

/// The response to a request with exactly these lines in its head.
async fn response(server: &Server, target: &str, lines: &[&str]) -> String {
    let mut request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n");
    for line in lines {
        write!(request, "{line}\r\n").unwrap();
    }
    request.push_str("\r\n");
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    within("the response", stream.read_to_string(&mut response)).await.unwrap();
    response
}

#[tokio::test]
async fn fault_37_a_header_that_decides_who_may_ask_is_sent_once() {
    let server = Desk::new().serve_with(|options| options.token("0123456789abcdef").unwrap()).await;
    let (host, token) = ("Host: localhost", "Authorization: Bearer 0123456789abcdef");
    let accepted = response(&server, "/v1/threads", &[host, token]).await;
    assert!(accepted.starts_with("HTTP/1.1 200 "), "{accepted}");
    for lines in [
        &[host, "Host: evil.example", token][..],
        &[host, host, token],
        &["Host: evil.example", host, token],
        &[host, token, "Authorization: Bearer another-token-xx"],
        &[host, token, "Origin: http://a.example", "Origin: http://b.example"],
    ] {
        let refused = response(&server, "/v1/threads", lines).await;
        assert!(refused.starts_with("HTTP/1.1 400 "), "{lines:?}: {refused}");
        assert!(refused.contains("request.repeated_header"), "{lines:?}: {refused}");
    }
    server.end().await;
}

#[tokio::test]
async fn fault_37_request_line_and_host_header_name_the_same_host() {
    let server = Desk::new().serve().await;
    let same = response(&server, "http://localhost/v1/health", &["Host: localhost"]).await;
    assert!(same.starts_with("HTTP/1.1 200 "), "{same}");
    let differs = response(&server, "http://evil.example/v1/health", &["Host: localhost"]).await;
    assert!(differs.starts_with("HTTP/1.1 400 ") && differs.contains("request.host"), "{differs}");
    let none = response(&server, "/v1/health", &[]).await;
    assert!(none.starts_with("HTTP/1.1 400 ") && none.contains("request.no_host"), "{none}");
    server.end().await;
}

#[tokio::test]
async fn fault_24_waiting_messages_are_bounded_in_bytes() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.create("b").await;
    let started = client.post("/v1/threads/a/prompt", json!({ "text": "hang" })).await;
    assert_eq!(started.status, 202, "{}", started.body);

    let large = json!({ "text": "x".repeat(4_000_000) });
    let mut statuses = Vec::new();
    let refused = loop {
        let reply = client.post("/v1/threads/a/follow-up", large.clone()).await;
        statuses.push(reply.status);
        if reply.status != 202 {
            break reply;
        }
    };
    assert_eq!(statuses, [202, 202, 202, 202, 429], "16 MiB wait at most");
    assert_eq!(refused.kind(), "runtime.queue_bytes_full");
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("16777216") && message.contains("thread `a`"), "{message}");

    // The bound is the thread's own, and what is taken out makes room.
    assert_eq!(client.post("/v1/threads/b/follow-up", large.clone()).await.status, 202);
    assert_eq!(client.post("/v1/threads/a/follow-up", json!({ "text": "small" })).await.status, 202);
    let entry = client.get("/v1/threads/a/queue").await.body["entries"][0]["id"].clone();
    let path = format!("/v1/threads/a/queue/{}", entry.as_str().unwrap());
    assert_eq!(client.delete(&path).await.status, 200);
    assert_eq!(client.post("/v1/threads/a/follow-up", large).await.status, 202);
    server.end().await;
}

/// Bytes that a reader finds when it reads at last: what the server and the system kept for it alone.
async fn kept_for(mut reader: TcpStream) -> usize {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let count = within("what was kept", reader.read(&mut buffer)).await.unwrap();
        assert_ne!(count, 0, "the stream goes on");
        bytes.extend_from_slice(&buffer[..count]);
        let from = bytes.len().saturating_sub(count + 16);
        let lagged = bytes[from..].windows(13).position(|window| window == b"event: lagged");
        if let Some(at) = lagged {
            return from + at;
        }
    }
}

#[tokio::test]
async fn fault_37_stuck_reader_costs_less_than_half_a_megabyte() {
    let server = Desk::new().serve().await;
    let thread = server.desk.runtime.thread("a");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let address = server.url.trim_start_matches("http://").parse().unwrap();
    let mut reader = socket.connect(address).await.unwrap();
    let request = b"GET /v1/threads/a/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    reader.write_all(request).await.unwrap();
    let mut head = [0; 15];
    within("the head", reader.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");

    // More events than a thread keeps, each of several kilobytes.
    let text = "x".repeat(8 * 1024);
    for _ in 0..400 {
        thread.prompt(text.as_str()).await.unwrap();
    }
    let kept = kept_for(reader).await;
    assert!((1..512 * 1024).contains(&kept), "{kept} bytes were kept");
    server.end().await;
}
