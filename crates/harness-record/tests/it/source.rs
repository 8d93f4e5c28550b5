//! Stored records of a thread.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use harness_core::ThreadId;
use harness_record::{
    FolderSink, FolderSource, RecordSink as _, RecordSource as _, RunRecord, ThreadRecords,
};

use crate::usual;

/// Runs of a source in their order, and the numbers of older and of invalid records.
fn shown(found: &ThreadRecords) -> (Vec<&str>, usize, usize) {
    (found.records.iter().map(|record| record.run_id.as_str()).collect(), found.omitted, found.invalid)
}

/// Writes the record of a run of a thread on a day, which is also its file.
async fn write(folder: &Path, day: usize, run: &str, thread: Option<&str>) {
    static USUAL: LazyLock<RunRecord> =
        LazyLock::new(|| std::thread::spawn(|| usual().run().record).join().unwrap());
    let mut record = USUAL.clone();
    record.run_id = run.to_owned();
    record.started_at = format!("2026-{:02}-{:02}T00:00:00.000Z", day / 28 + 1, day % 28 + 1);
    record.thread_id = thread.map(ThreadId::from);
    FolderSink::new(folder).write(Arc::new(record)).await.unwrap();
}

#[tokio::test]
async fn source_has_the_records_of_one_thread_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("records");
    let source = FolderSource::new(&folder);
    let of_ada = || async { source.of_thread(&"ada".into()).await.unwrap() };
    assert_eq!(shown(&of_ada().await), (vec![], 0, 0), "the directory does not exist yet");
    write(&folder, 2, "late", Some("ada")).await;
    write(&folder, 1, "early", Some("ada")).await;
    write(&folder, 3, "other", Some("bob")).await;
    write(&folder, 4, "alone", None).await;
    fs::write(folder.join("notes.json"), "{\"threadId\": \"ada\"}").unwrap();
    assert_eq!(shown(&of_ada().await), (vec!["early", "late"], 0, 0));

    write(&folder, 5, "new", Some("ada")).await;
    fs::remove_file(folder.join("20260102T000000.000Z-early.json")).unwrap();
    fs::write(folder.join("20260106T000000.000Z-cut.json"), "{\"threadId\": \"ada\", ").unwrap();
    fs::write(folder.join("20260107T000000.000Z-text.json"), "ada").unwrap();
    assert_eq!(shown(&of_ada().await), (vec!["late", "new"], 0, 1));
}

#[tokio::test]
async fn source_has_the_newest_records_within_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    for day in 0..203 {
        write(folder.path(), day, &format!("run-{day}"), Some("ada")).await;
    }
    let found = FolderSource::new(folder.path()).of_thread(&"ada".into()).await.unwrap();
    let (runs, omitted, invalid) = shown(&found);
    assert_eq!((runs.len(), runs[0], runs[199], omitted, invalid), (200, "run-3", "run-202", 3, 0));
}
