//! What a recording of traffic over HTTP holds.

use harness_core::port::Model as _;
use harness_record::traffic::{Recorder, Replay};

use crate::support::{KEY, Pieces, Reply, Server, hello, model};

#[tokio::test]
async fn traffic_over_http_is_recorded_without_the_key_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let server = Server::start([
        Reply::json(401, &format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#)),
        Reply::events().delta(r#"{"content":"Hel"}"#).delta(r#"{"content":"lo"}"#).finish("stop"),
    ])
    .await;
    let recorder = Recorder::create(model(&server), &path).unwrap();
    let live = (Pieces::default(), Pieces::default());
    let mut fault = recorder.step(hello(), &live.0).await.unwrap_err();
    let answer = recorder.step(hello(), &live.1).await.unwrap();
    assert!(!format!("{recorder:?}").contains(KEY));
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "the key is in the recording");
    let replay = Replay::open(&path).unwrap();
    let pieces = Pieces::default();
    assert!(fault.reply.take().is_some());
    assert_eq!(replay.step(hello(), &pieces).await.unwrap_err(), fault);
    assert_eq!(replay.step(hello(), &pieces).await.unwrap(), answer);
    assert_eq!(pieces.all(), live.1.all());
    replay.finish().unwrap();
}
