//! Where the key may go: into the header of a request to its endpoint. An endpoint that repeats it in every
//! place of a reply brings it into nothing that is written: faults, logs, recordings, what `Debug` shows.

use std::cell::RefCell;
use std::io::Write;
use std::sync::{Arc, Once};

use harness_adapters::{ApiKey, CachePolicy, ResponseCache, Retry, RetryPolicy};
use harness_core::port::{DynModel, Model as _};
use harness_record::traffic::{Recorder, Replay};

use crate::support::{KEY, PROTOCOLS, Pieces, Protocol, Reply, Server, hello};

thread_local! {
    /// What this thread logs, at every level, while a test listens.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to the log of the thread. One subscriber serves all tests: whether a place logs at all is kept
/// for the whole process.
struct ThisThread;

impl Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to listen to what this thread logs.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
        let subscriber = everything.with_writer(|| ThisThread).finish();
        tracing::subscriber::set_global_default(subscriber).expect("only this test logs");
    });
    LOG.set(Some(Vec::new()));
}

/// What was logged since, and no more.
pub(crate) fn heard() -> String {
    String::from_utf8(LOG.take().unwrap_or_default()).expect("a log is text")
}

/// Replies that are faults and repeat a key wherever a reply has room for it.
pub(crate) fn telltales(protocol: &Protocol, key: &str) -> Vec<Reply> {
    let error = protocol.error.replace("MESSAGE", &format!("bad key {key}"));
    let headers =
        format!("retry-after: {key}\r\nx-request-id: {key}\r\nlocation: https://{key}@host/{key}\r\n");
    let statuses = [301, 400, 401, 404, 418, 429, 500].map(|status| Reply::full(status, &headers, &error));
    let page = format!("<html>{key}</html>");
    let kinds =
        [format!("content-type: text/html; key={key}\r\n"), "content-type: application/json\r\n".into()];
    let pages = kinds.map(|kind| Reply::full(200, &kind, &page));
    let other = [
        Reply::full(200, "content-type: application/json\r\n", &error),
        Reply::events().send(protocol.begun).send(format!("event: error\ndata: {error}\n\n")),
        Reply::events().send(format!("data: {key}\n\nevent: {key}\ndata: [\"{key}\"]\n\n: {key}\n\n")),
        Reply::default().send(format!("HTTP/1.1 500 {key}\r\ncontent-length: 0\r\n\r\n")),
        Reply::default().send(format!("{key}\r\n\r\n")),
        Reply::default().send(format!("HTTP/1.1 200 OK\r\n{key}: {key}\r\n{key}\r\n\r\n")),
    ];
    statuses.into_iter().chain(pages).chain(other).collect()
}

#[tokio::test]
async fn a_key_that_an_endpoint_repeats_in_its_faults_is_written_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    for protocol in PROTOCOLS {
        for (at, reply) in telltales(protocol, KEY).into_iter().enumerate() {
            let context = format!("{}, reply {at}", protocol.name);
            let server = Server::start([reply]).await;
            let pieces = Pieces::default();
            listen();
            let mut policy = RetryPolicy::default();
            policy.attempts = 1;
            let cached = ResponseCache::new((protocol.model)(&server.url()), CachePolicy::default());
            let model = Recorder::create(Retry::new(cached, policy), &path).unwrap();
            let fault = model.step(hello(), &pieces).await.expect_err(&context);
            let log = heard();
            let recording = std::fs::read_to_string(&path).unwrap();
            assert_eq!(recording.lines().count(), 2, "{context}: the fault is recorded");
            assert!(log.contains("model call failed"), "{context}: the fault is logged: {log}");
            let written = format!("{fault} {fault:?} {pieces:?} {model:?} {recording} {log}");
            assert!(!written.contains(KEY), "{context}: the key is in {written}");
            assert!(server.seen().iter().all(|seen| !seen.body.contains(KEY)), "{context}: the body has it");
        }
    }
}

/// Records one request that holds the key, and an answer that repeats it in pieces.
async fn record_a_repetition(path: &std::path::Path) {
    let (start, end) = KEY.split_at(7);
    let answer = Reply::events()
        .delta(&format!(r#"{{"content":"Your key is {start}"}}"#))
        .delta(&format!(r#"{{"content":"{end}, and {KEY}."}}"#))
        .finish("stop");
    let server = Server::start([answer]).await;
    let model: Arc<dyn DynModel> = Arc::new(crate::support::model(&server));
    let recorder = Recorder::create(model, path).unwrap().without([ApiKey::new(KEY)]);
    let answer = recorder.step(telling(), &Pieces::default()).await.unwrap();
    assert!(answer.joined_text().contains(KEY), "the run sees what the model said");
    assert!(!format!("{recorder:?}").contains(KEY));
}

/// A request with the key in it.
fn telling() -> harness_core::port::ModelRequest {
    crate::support::request([harness_core::message::Message::user(format!("Mine is {KEY}. What is it?"))])
}

#[tokio::test]
async fn a_recording_holds_no_key_that_its_recorder_knows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    record_a_repetition(&path).await;
    let recording = std::fs::read_to_string(&path).unwrap();
    assert!(!recording.contains(KEY) && !recording.contains(&KEY[7..]), "{recording}");

    let replay = Replay::open(&path).unwrap().without([ApiKey::new(KEY)]);
    let pieces = Pieces::default();
    let answer = replay.step(telling(), &pieces).await.unwrap();
    assert_eq!(answer.joined_text(), "Your key is [key], and [key].");
    assert_eq!(pieces.text(), answer.joined_text(), "the pieces make up the answer");

    let stranger = Replay::open(&path).unwrap();
    let fault = stranger.step(telling(), &Pieces::default()).await.unwrap_err();
    assert!(fault.message.contains("\"Mine is [key]. What is it?\" →"), "{}", fault.message);
}
