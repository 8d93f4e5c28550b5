//! Contract of checkpoint stores.

use std::sync::Arc;

use harness_core::port::{Checkpoint, CheckpointStore};
use harness_core::{Json, RunId, Time};

/// Checks a store against the rules of the [`CheckpointStore`] port.
///
/// `make` gives a new, empty store each time. Call it in a test of your store, on any executor:
///
/// ```
/// # async fn test() {
/// use harness_session::checkpoint::MemoryCheckpoints;
/// use harness_session::testing::checkpoint_contract;
///
/// checkpoint_contract(MemoryCheckpoints::new).await;
/// # }
/// ```
///
/// # Panics
/// When a rule is broken; the text names it.
pub async fn checkpoint_contract<S: CheckpointStore>(mut make: impl FnMut() -> S) {
    the_last_one_counts_exactly(&make()).await;
    every_run_has_its_own(&make()).await;
    a_cleared_run_has_none(&make()).await;
}

async fn the_last_one_counts_exactly(store: &impl CheckpointStore) {
    let run = RunId::from("r1");
    assert_eq!(store.latest(&run).await, Ok(None), "a run has no checkpoint at first");
    for count in 1..=12 {
        let mut checkpoint = checkpoint(&run, count);
        assert_eq!(store.save(checkpoint.clone()).await, Ok(count), "checkpoints are numbered from 1");
        checkpoint.number = count;
        assert_eq!(store.latest(&run).await, Ok(Some(checkpoint)), "the last one counts, exactly");
    }
}

async fn every_run_has_its_own(store: &impl CheckpointStore) {
    let names = ["r1", "R1", "r1.run", "a/b", "..", "", "\u{e4} \u{0}", &"long ".repeat(190)];
    let mut runs: Vec<_> = names.into_iter().map(RunId::from).collect();
    for (run, messages) in runs.iter().zip(1..) {
        assert_eq!(store.save(checkpoint(run, messages)).await, Ok(1), "the run {run:?} can be saved");
    }
    for (run, messages) in runs.iter().zip(1..) {
        let last = store.latest(run).await.ok().flatten();
        assert_eq!(last.map(|last| last.messages), Some(messages), "the run {run:?} has its own");
    }
    runs.sort();
    assert_eq!(store.runs().await, Ok(runs), "all runs are listed, sorted");
}

async fn a_cleared_run_has_none(store: &impl CheckpointStore) {
    let (kept, cleared) = (RunId::from("kept"), RunId::from("cleared"));
    for run in [&kept, &cleared] {
        for count in 1..=3 {
            assert_eq!(store.save(checkpoint(run, count)).await, Ok(count), "a checkpoint is saved");
        }
    }
    assert_eq!(store.clear(&cleared).await, Ok(()), "a run is cleared");
    assert_eq!(store.clear(&cleared).await, Ok(()), "clearing a run without checkpoints succeeds");
    assert_eq!(store.latest(&cleared).await, Ok(None), "a cleared run has no checkpoint");
    assert_eq!(store.runs().await, Ok(vec![kept.clone()]), "and is not listed");
    let last = store.latest(&kept).await.ok().flatten();
    assert_eq!(last.map(|last| last.number), Some(3), "another run keeps its own");
    assert_eq!(store.save(checkpoint(&cleared, 1)).await, Ok(1), "a cleared run begins anew");
}

fn checkpoint(run: &RunId, messages: u64) -> Checkpoint {
    let state = format!(r#"{{"turn":{messages},"n":9007199254740993,"spent":1.10,"text":"a\nb\u2028"}}"#);
    let state = Json::parse(&state).unwrap_or_default();
    let at = Time(1_767_225_600_123);
    Checkpoint::new(run.clone(), at, 1, messages, Arc::new(state))
}
