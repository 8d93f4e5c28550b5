//! Streams that break off, repeat themselves or come in disorder, in every protocol: what is given is what
//! arrived, and nothing is called whole that is not.

use harness_core::message::{AssistantMessage, FinishReason};
use harness_core::port::{DynModel, Model as _, ModelFault, ModelFaultCode as Code};

use crate::support::{KEY, PROTOCOLS, Pieces, Protocol, Recorded, Reply, Server, bounded, hello, until_text};

/// Asks once and returns what came, with the text that was streamed.
async fn ask(model: &dyn DynModel, context: &str) -> (Result<AssistantMessage, ModelFault>, String) {
    let pieces = Pieces::default();
    let result = bounded(context, model.step_boxed(hello(), &pieces)).await;
    assert!(!format!("{result:?} {pieces:?}").contains(KEY), "{context}: {result:?}");
    (result, pieces.text())
}

/// A stream of which so much arrived: whole, or cut with the text so far; never anything else.
#[track_caller]
fn check_cut(
    context: &str,
    (result, shown): (Result<AssistantMessage, ModelFault>, String),
    (text, whole): (String, bool),
) {
    assert_eq!(shown, text, "{context}: what was streamed");
    match result {
        Ok(message) => {
            assert!(whole, "{context}: called whole: {message:?}");
            assert_eq!((message.joined_text(), message.stop_reason), (text, FinishReason::Stop), "{context}");
        }
        Err(fault) => {
            assert!(!whole, "{context}: called broken: {fault:?}");
            assert_eq!((fault.code, fault.transient), (Code::Network, true), "{context}: {fault:?}");
            let partial = fault.partial.unwrap_or_default();
            assert_eq!((partial.joined_text(), partial.tool_calls().count()), (text, 0), "{context}");
        }
    }
}

/// Replies which break off after each number of bytes, and the bytes of the stream that each delivers.
fn cuts(stream: &Recorded, frame: impl Fn(&[u8]) -> Vec<(u8, bool)>, head: &str) -> Vec<(Reply, usize)> {
    let framed = frame(stream.bytes().as_bytes());
    let cut = |length: usize| {
        let bytes: Vec<u8> = framed[..length].iter().map(|(byte, _)| *byte).collect();
        let delivered = framed[..length].iter().filter(|(_, is_data)| *is_data).count();
        (Reply::default().head(head).send(bytes), delivered)
    };
    (0..=framed.len()).map(cut).collect()
}

async fn check_cuts(protocol: &Protocol, kind: &str, cuts: Vec<(Reply, usize)>) {
    let stream = (protocol.answer)();
    let (replies, delivered): (Vec<Reply>, Vec<usize>) = cuts.into_iter().unzip();
    let server = Server::start(replies).await;
    let model = (protocol.model)(&server.url());
    for (cut, delivered) in delivered.into_iter().enumerate() {
        let context = format!("{}, {kind}, cut after byte {cut}", protocol.name);
        check_cut(&context, ask(&*model, &context).await, stream.after(delivered));
    }
}

#[tokio::test]
async fn a_stream_that_ends_with_its_connection_may_be_cut_at_every_byte() {
    for protocol in PROTOCOLS {
        let plain = |bytes: &[u8]| bytes.iter().map(|byte| (*byte, true)).collect();
        let cuts = cuts(&(protocol.answer)(), plain, "content-type: text/event-stream\r\n");
        check_cuts(protocol, "plain", cuts).await;
    }
}

#[tokio::test]
async fn a_stream_in_chunks_may_be_cut_at_every_byte() {
    let frame = |bytes: &[u8]| {
        let chunk = |chunk: &[u8]| {
            let framing = |text: String| text.into_bytes().into_iter().map(|byte| (byte, false));
            let data = chunk.iter().map(|byte| (*byte, true)).collect::<Vec<_>>();
            let start = framing(format!("{:x}\r\n", chunk.len()));
            start.chain(data).chain(framing("\r\n".to_owned())).collect::<Vec<_>>()
        };
        bytes.chunks(97).flat_map(chunk).collect()
    };
    for protocol in PROTOCOLS {
        let head = "transfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n";
        check_cuts(protocol, "chunked", cuts(&(protocol.answer)(), frame, head)).await;
    }
}

#[tokio::test]
async fn a_stream_shorter_than_it_said_is_not_whole_before_its_last_event() {
    for protocol in PROTOCOLS {
        let plain = |bytes: &[u8]| bytes.iter().map(|byte| (*byte, true)).collect();
        let head = "content-length: 1000000\r\ncontent-type: text/event-stream\r\n";
        let cuts = cuts(&(protocol.answer)(), plain, head).into_iter().step_by(13).collect();
        check_cuts(protocol, "promised", cuts).await;
    }
}

/// What came of a stream in disorder: the calls as they were meant, or something that runs nothing.
#[track_caller]
fn check_calls(context: &str, result: Result<AssistantMessage, ModelFault>) {
    let calls = match &result {
        Ok(message) => message.tool_calls().map(|call| call.arguments.text().to_owned()).collect(),
        Err(fault) => {
            assert!(!fault.message.is_empty(), "{context}");
            let partial = fault.partial.iter().flat_map(|partial| partial.tool_calls());
            assert_eq!(partial.count(), 0, "{context}: calls of a failed answer");
            return;
        }
    };
    let calls: Vec<String> = calls;
    let meant = [r#"{"cents":10}"#, r#"{"cents":20}"#];
    let known = calls.iter().all(|call| meant.contains(&call.as_str()));
    assert!(known && calls.len() <= 2, "{context}: {calls:?}");
}

async fn check_disorder(protocol: &Protocol, kind: &str, streams: Vec<Vec<String>>) {
    let replies = streams.iter().map(|events| Reply::events().send(events.concat()));
    let server = Server::start(replies).await;
    let model = (protocol.model)(&server.url());
    for at in 0..streams.len() {
        let context = format!("{}, event {at} {kind}", protocol.name);
        check_calls(&context, ask(&*model, &context).await.0);
    }
}

/// The recorded events, changed at each place.
fn changed(protocol: &Protocol, change: impl Fn(&mut Vec<String>, usize)) -> Vec<Vec<String>> {
    let events = (protocol.calls)().events();
    let at = |at| {
        let mut events = events.clone();
        change(&mut events, at);
        events
    };
    (0..events.len()).map(at).collect()
}

#[tokio::test]
async fn events_that_come_twice_change_no_call() {
    for protocol in PROTOCOLS {
        let twice = changed(protocol, |events, at| events.insert(at, events[at].clone()));
        check_disorder(protocol, "twice", twice).await;
    }
}

#[tokio::test]
async fn events_that_come_in_another_order_change_no_call() {
    for protocol in PROTOCOLS {
        for distance in 1..=3 {
            let swapped = changed(protocol, |events, at| {
                let with = (at + distance) % events.len();
                events.swap(at, with);
            });
            check_disorder(protocol, &format!("swapped with the {distance}. after it"), swapped).await;
        }
    }
}

#[tokio::test]
async fn events_that_are_lost_change_no_call() {
    for protocol in PROTOCOLS {
        let without = changed(protocol, |events, at| drop(events.remove(at)));
        check_disorder(protocol, "lost", without).await;
    }
}

#[tokio::test]
async fn a_stream_in_order_gives_both_calls() {
    for protocol in PROTOCOLS {
        let server = Server::start([Reply::events().send((protocol.calls)().bytes())]).await;
        let message = (protocol.model)(&server.url()).step(hello(), &Pieces::default()).await.unwrap();
        let calls: Vec<&str> = message.tool_calls().map(|call| call.arguments.text()).collect();
        assert_eq!(calls, [r#"{"cents":10}"#, r#"{"cents":20}"#], "{}", protocol.name);
        assert_eq!(message.joined_text(), "Paying.", "{}", protocol.name);
    }
}

#[tokio::test]
async fn a_cancelled_request_hangs_up_and_keeps_the_text() {
    for protocol in PROTOCOLS {
        let server = Server::start([Reply::events().send(protocol.begun).hold()]).await;
        let (model, pieces, request) = ((protocol.model)(&server.url()), Pieces::default(), hello());
        let cancel = request.cancel.clone();
        let mut answer = Box::pin(model.step(request, &pieces));
        until_text(&mut answer, &pieces).await;
        cancel.cancel();
        let fault = answer.await.unwrap_err();
        assert_eq!((fault.code, fault.transient), (Code::Cancelled, false), "{}", protocol.name);
        assert_eq!(fault.partial.unwrap().joined_text(), "Half", "{}", protocol.name);
        server.hung_up().await;
    }
}
