//! Records of consecutive runs, with and without a memory of recent runs.

use std::sync::Arc;

use harness_core::Redactor;
use harness_core::event::EventKind;
use harness_core::event::Fold as _;
use harness_core::message::Message;
use harness_core::port::Secret;
use harness_record::{RecentRuns, Recording, Redaction, RunRecord, RunStart};

use crate::usual;

/// Records of three runs of a thread. A secret becomes known before the third one.
async fn recorded(recent: Option<RecentRuns>) -> Vec<RunRecord> {
    let events = std::thread::spawn(|| usual().run().events).join().unwrap();
    let redactor = Redactor::default();
    let recording = Recording::new().redact(Redaction::none().secrets(redactor.clone()));
    let recording = recent.into_iter().fold(recording, Recording::recent);
    let (mut history, mut records) = (Vec::<Arc<Message>>::new(), Vec::new());
    for run in 0..3 {
        if run == 2 {
            redactor.add(&Secret::new("It is on its way."));
        }
        let recorder = recording.clone().recorder();
        recorder.start(RunStart::new(None, history.clone()));
        for event in &events {
            recorder.fold().lock().apply(event);
            if let EventKind::MessageAppended { message, .. } = &event.kind {
                history.push(Arc::clone(message));
            }
        }
        records.push(RunRecord::clone(&*recorder.finish().await.record.unwrap()));
    }
    records
}

#[tokio::test]
async fn memory_of_recent_runs_changes_no_record() {
    let alone = recorded(None).await;
    assert_eq!(recorded(Some(RecentRuns::new())).await, alone);
    let texts = |record: &RunRecord| record.to_json().unwrap().text().matches("It is on its way.").count();
    assert!(texts(&alone[1]) > 0, "nothing is secret yet");
    assert_eq!(texts(&alone[2]), 0, "messages of earlier runs are redacted anew");
    assert_eq!(alone[2].earlier_item_count, 2 * alone[0].items.len() as u64);
}
