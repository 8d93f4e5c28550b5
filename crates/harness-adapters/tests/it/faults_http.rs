//! What a server may do with HTTP, in every protocol: each status, hostile bytes, wrong kinds of content. The
//! result is always typed and says what happened; nothing hangs and nothing is followed anywhere.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_adapters::chat::ChatModel;
use harness_core::port::{DynModel, ModelFault, ModelFaultCode as Code};

use crate::support::{KEY, PROTOCOLS, Pieces, Protocol, Reply, Server, bounded, hello};

/// The fault that a model gives, after the checks that hold for all of them.
async fn fault_of(model: &dyn DynModel, context: &str) -> ModelFault {
    let pieces = Pieces::default();
    let fault = bounded(context, model.step_boxed(hello(), &pieces)).await.expect_err(context);
    let written = format!("{fault:?} {fault} {pieces:?}");
    assert!(!written.contains(KEY), "{context}: the key is in {written}");
    assert!(!fault.message.is_empty() && !fault.message.contains('\n'), "{context}: {:?}", fault.message);
    assert!(fault.message.contains("127.0.0.1"), "{context}: no place is named: {}", fault.message);
    fault
}

/// One line for each run of statuses with the same fault.
async fn statuses(protocol: &Protocol, reply: impl Fn(u16) -> Reply) -> String {
    let all = 200..=599;
    let server = Server::start(all.clone().map(reply)).await;
    let model = (protocol.model)(&server.url());
    let mut runs: Vec<(u16, u16, String)> = Vec::new();
    for status in all {
        let fault = fault_of(&*model, &format!("{}, status {status}", protocol.name)).await;
        let told = if status < 300 { None } else { Some(status) };
        assert_eq!(fault.http_status, told, "{}, status {status}", protocol.name);
        let kind = format!("{}{}", fault.code.as_str(), if fault.transient { ", passing" } else { "" });
        match runs.last_mut() {
            Some((_, last, known)) if *known == kind => *last = status,
            _ => runs.push((status, status, kind)),
        }
    }
    runs.iter().fold(String::new(), |mut out, (first, last, kind)| {
        let _ = writeln!(out, "{first}..={last} {kind}");
        out
    })
}

#[tokio::test]
async fn every_status_without_an_explanation_is_told_by_its_number() {
    let mut tables = Vec::new();
    for protocol in PROTOCOLS {
        let page = |status| Reply::full(status, "content-type: text/html\r\n", "<html>oops</html>");
        tables.push(statuses(protocol, page).await);
    }
    for table in tables {
        insta::allow_duplicates! { insta::assert_snapshot!(table, @"
        200..=299 protocol
        300..=399 configuration
        400..=400 invalid_request
        401..=401 auth_failed
        402..=402 credits_exhausted
        403..=403 auth_failed
        404..=405 configuration
        406..=407 unknown
        408..=408 timeout, passing
        409..=409 provider, passing
        410..=412 unknown
        413..=413 invalid_request
        414..=421 unknown
        422..=422 invalid_request
        423..=424 unknown
        425..=425 provider, passing
        426..=428 unknown
        429..=429 rate_limited, passing
        430..=499 unknown
        500..=523 provider, passing
        524..=524 timeout, passing
        525..=599 provider, passing
        ") };
    }
}

#[tokio::test]
async fn a_status_of_failure_is_believed_even_over_a_good_answer() {
    for protocol in PROTOCOLS {
        let stream = (protocol.answer)().bytes();
        let all =
            (300..=599).map(|status| Reply::full(status, "content-type: text/event-stream\r\n", &stream));
        let server = Server::start(all).await;
        let model = (protocol.model)(&server.url());
        for status in 300..=599 {
            let fault = fault_of(&*model, &format!("{}, status {status}", protocol.name)).await;
            assert_eq!(fault.http_status, Some(status), "{}", protocol.name);
            assert_eq!(fault.partial, None, "{}, status {status}", protocol.name);
        }
    }
}

/// A reply that no well-behaved server sends, and how it is told.
struct Hostile(&'static str, Reply, Code, bool);

/// Bytes in place of a reply.
fn raw(bytes: impl AsRef<[u8]>) -> Reply {
    Reply::default().send(bytes)
}

fn chunked(body: &str) -> Reply {
    Reply::default().head("transfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n").send(body)
}

/// A reply with status 200 and this content.
fn page(kind: &str, body: impl AsRef<[u8]>) -> Reply {
    Reply::full(200, &format!("content-type: {kind}\r\n"), body)
}

/// What is wrong with the bytes of HTTP itself.
fn broken_http() -> Vec<Hostile> {
    let head = "HTTP/1.1 200 OK\r\n";
    vec![
        Hostile("no reply", Reply::close(), Code::Network, true),
        Hostile("another protocol", raw("220 mail.example ESMTP\r\n"), Code::Network, true),
        Hostile("a TLS alert", raw([0x15, 3, 1, 0, 2, 2, 80]), Code::Network, true),
        Hostile("half a head", raw("HTTP/1.1 200 OK\r\ncontent-ty"), Code::Network, true),
        Hostile("a header without a colon", raw(format!("{head}oops\r\n\r\n")), Code::Network, true),
        Hostile("a header of zero bytes", raw(format!("{head}a: \0\r\n\r\n")), Code::Network, true),
        Hostile("headers for ever", raw(head).repeat("x-a: b\r\n", 1 << 20), Code::Network, true),
        Hostile(
            "one header for ever",
            raw(head).send("x-a: ").repeat("b".repeat(4_096), 4_096),
            Code::Network,
            true,
        ),
        Hostile(
            "a length that is none",
            raw(format!("{head}content-length: many\r\n\r\n")),
            Code::Network,
            true,
        ),
        Hostile(
            "two lengths",
            raw(format!("{head}content-length: 1\r\ncontent-length: 2\r\n\r\nab")),
            Code::Network,
            true,
        ),
        Hostile("a chunk without a size", chunked("zz\r\n"), Code::Network, true),
        Hostile("a chunk of all the world", chunked("fffffffffffffff\r\ndata: x\n\n"), Code::Network, true),
        Hostile("a chunk past all numbers", chunked("fffffffffffffffff\r\ndata: x\n\n"), Code::Network, true),
        Hostile("interim replies only", raw("HTTP/1.1 100 Continue\r\n\r\n".repeat(50)), Code::Network, true),
        Hostile(
            "another protocol to switch to",
            raw("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"),
            Code::Unknown,
            false,
        ),
    ]
}

/// What is wrong with the content, in any protocol.
fn broken_content() -> Vec<Hostile> {
    let events = "text/event-stream";
    let deep = format!("data: {}\n\n", "[".repeat(60_000));
    vec![
        Hostile("a page", page("text/html", "<html>Welcome</html>"), Code::Protocol, false),
        Hostile("a picture", page("image/png", b"\x89PNG\r\n\x1a\n\0\0"), Code::Protocol, false),
        Hostile("nothing", page("application/json", ""), Code::Protocol, false),
        Hostile("no content", raw("HTTP/1.1 204 No Content\r\n\r\n"), Code::Protocol, false),
        Hostile("an empty stream", page(events, ""), Code::Network, true),
        Hostile("half a document", page("application/json", r#"{"id":"x","#), Code::Network, true),
        Hostile(
            "half a document that is none",
            page("application/json", r#"{"id":"x"]"#),
            Code::Protocol,
            false,
        ),
        Hostile("a list", page("application/json", "[]"), Code::Protocol, false),
        Hostile("no UTF-8", page("application/json", [0xff; 64]), Code::Protocol, false),
        Hostile("an event that is no UTF-8", page(events, b"data: \xff\xfe\xff\n\n"), Code::Protocol, false),
        Hostile("zero bytes", page(events, [0; 4_096]), Code::Network, true),
        Hostile("deep nesting", page(events, &deep), Code::Protocol, false),
        Hostile("a deep document", page("application/json", "[".repeat(60_000)), Code::Protocol, false),
        Hostile("garbage in events", page(events, "data: {oops\n\ndata: <html>\n\n"), Code::Protocol, false),
        Hostile(
            "comments for ever",
            Reply::events().repeat(": still there\n\n".repeat(64), 4_096),
            Code::Protocol,
            false,
        ),
        Hostile(
            "empty events for ever",
            Reply::events().repeat("data: \n\n".repeat(64), 8_192),
            Code::Protocol,
            false,
        ),
        Hostile(
            "a line for ever",
            Reply::events().send("data: ").repeat("x".repeat(4_096), 4_096),
            Code::Protocol,
            false,
        ),
        Hostile(
            "an event for ever",
            Reply::events().repeat("data: x\n".repeat(64), 4_096),
            Code::Protocol,
            false,
        ),
        Hostile(
            "a document for ever",
            Reply::default()
                .head("content-type: application/json\r\n")
                .send("{")
                .repeat(" ".repeat(4_096), 4_096),
            Code::Protocol,
            false,
        ),
    ]
}

async fn check_hostile(cases: fn() -> Vec<Hostile>) {
    for protocol in PROTOCOLS {
        for Hostile(name, reply, code, passing) in cases() {
            let context = format!("{}, {name}", protocol.name);
            let server = Server::start([reply]).await;
            let fault = fault_of(&*(protocol.model)(&server.url()), &context).await;
            assert_eq!((fault.code, fault.transient), (code, passing), "{context}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn broken_http_is_a_fault_of_the_connection() {
    check_hostile(broken_http).await;
}

#[tokio::test]
async fn broken_content_is_a_fault_of_the_protocol() {
    check_hostile(broken_content).await;
}

#[tokio::test]
async fn content_under_a_wrong_name_is_still_understood() {
    for protocol in PROTOCOLS {
        let stream = (protocol.answer)().bytes();
        for kind in
            ["application/json", "text/plain", "application/octet-stream", "TEXT/EVENT-STREAM; charset=x"]
        {
            let context = format!("{}, as {kind}", protocol.name);
            let server = Server::start([page(kind, &stream)]).await;
            let model = (protocol.model)(&server.url());
            let message =
                bounded(&context, model.step_boxed(hello(), &Pieces::default())).await.expect(&context);
            assert_eq!(message.joined_text(), "4 °C now", "{context}");
        }
    }
}

#[tokio::test]
async fn damaged_text_is_marked_where_it_is_damaged_and_the_rest_is_kept() {
    for protocol in PROTOCOLS {
        let mut bytes = (protocol.answer)().bytes().into_bytes();
        while let Some(at) = bytes.windows(2).position(|window| window == "°".as_bytes()) {
            bytes[at + 1] = b'?';
        }
        let server = Server::start([page("text/event-stream", bytes)]).await;
        let message = (protocol.model)(&server.url()).step_boxed(hello(), &Pieces::default()).await.unwrap();
        assert_eq!(message.joined_text(), "4 \u{fffd}?C now", "{}", protocol.name);
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    for protocol in PROTOCOLS {
        let elsewhere = Server::start([Reply::events().send((protocol.answer)().bytes())]).await;
        for status in [300, 301, 302, 303, 307, 308] {
            let context = format!("{}, status {status}", protocol.name);
            let to = format!("location: {}?key={KEY}\r\n", elsewhere.url());
            let server = Server::start([Reply::full(status, &to, "")]).await;
            let fault = fault_of(&*(protocol.model)(&server.url()), &context).await;
            assert_eq!((fault.code, server.seen().len()), (Code::Configuration, 1), "{context}");
        }
        assert!(elsewhere.seen().is_empty(), "{}: the key travelled", protocol.name);
    }
}

#[tokio::test]
async fn a_compressed_reply_is_named() {
    // What `printf 'data: [DONE]\n\n' | gzip` writes begins like this.
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x49\x2c\x49\xb4\x52\x88\x76\xf1\xf7\x73\x8d\xe5\xe2\x02\0";
    for protocol in PROTOCOLS {
        for kind in ["text/event-stream", "application/json"] {
            let context = format!("{}, {kind}", protocol.name);
            let headers = format!("content-encoding: gzip\r\ncontent-type: {kind}\r\n");
            let server = Server::start([Reply::full(200, &headers, gzip)]).await;
            let fault = fault_of(&*(protocol.model)(&server.url()), &context).await;
            assert_eq!((fault.code, fault.transient), (Code::Protocol, false), "{context}: {fault:?}");
            assert!(
                fault.message.contains("a compressed reply, which was not asked for"),
                "{context}: {fault}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_asked_over_it() {
    let server = Server::start([Reply::close()]).await;
    let built = ChatModel::openrouter("example/model", KEY).base_url(server.url_with_tls()).build();
    // A system without certificates refuses earlier, in its own words.
    let model: Arc<dyn DynModel> = match built {
        Ok(model) => Arc::new(model),
        Err(problem) => return assert_eq!(problem.kind(), "adapter.client"),
    };
    let fault = fault_of(&*model, "TLS to a plain port").await;
    assert_eq!((fault.code, fault.transient), (Code::Network, true), "{fault:?}");
    assert!(server.seen().is_empty(), "nothing was sent in the clear");
}
