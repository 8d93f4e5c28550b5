//! The user of threads: plays the part of the user in scripts, and reads what came of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use harness::core::machine::CallDecision;
use harness::core::{End, Millis, ThreadId};
use harness_restate::durable::{LogEntry, ThreadStatus};
use harness_restate::engine::restate::{Delivery, DurableThreads, EngineError};

use crate::kept::kept;
use crate::processes::{Cluster, PAUSE, until};
use crate::worker::{PARK_AFTER, script_of};
use crate::world::{Act, FOLLOW_UP, INTERRUPT, STEER, Way};

/// Plays the acts of scripts while models ask for them, until dropped.
pub(crate) async fn play_acts(cluster: &Cluster) {
    let mut done = HashSet::new();
    loop {
        for line in cluster.ledger("act ") {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [_, answer, at, thread] = words[..] else { continue };
            if done.insert(line.clone()) {
                let name = format!("act-{answer}-{at}");
                let act = script_of(thread).unwrap().acts[at.parse::<usize>().unwrap()].1.clone();
                let (threads, thread) = (cluster.threads(), ThreadId::from(thread));
                tokio::spawn(async move { act_once(&threads, &thread, &name, &act).await.unwrap() });
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn act_once(
    threads: &DurableThreads,
    thread: &ThreadId,
    name: &str,
    act: &Act,
) -> Result<(), EngineError> {
    match act {
        Act::Say(way, said) => say(threads, thread, *way, Delivery::new(name, *said)).await,
        Act::SayLater(said, later) => {
            tokio::time::sleep(pause(*later)).await;
            threads.prompt(thread, Delivery::new(name, *said)).await.map(drop)
        }
        Act::Abort(later) => {
            tokio::time::sleep(pause(*later)).await;
            threads.abort(thread).await.map(drop)
        }
        Act::Grant(call, later) => decide(threads, thread, CallDecision::granted(*call), *later).await,
        Act::Deny(call, later) => decide(threads, thread, CallDecision::denied(*call, "no"), *later).await,
    }
}

async fn say(
    threads: &DurableThreads,
    thread: &ThreadId,
    way: Way,
    message: Delivery,
) -> Result<(), EngineError> {
    let done = match way {
        STEER => threads.steer(thread, message).await,
        FOLLOW_UP => threads.follow_up(thread, message).await,
        INTERRUPT => threads.interrupt(thread, message).await,
        _ => threads.prompt(thread, message).await,
    };
    done.map(drop)
}

/// Decides when the call waits, and the run is parked if the script waits so long.
async fn decide(
    threads: &DurableThreads,
    thread: &ThreadId,
    decision: CallDecision,
    later: Millis,
) -> Result<(), EngineError> {
    until("a call that waits", || async {
        threads
            .approvals(thread)
            .await
            .is_ok_and(|held| held.iter().any(|held| *held.call() == decision.call))
    })
    .await;
    tokio::time::sleep(pause(later)).await;
    threads.decide(thread, decision).await.map(drop)
}

/// The time of a script, in the shorter time of these checks: what parks a run there, does so here.
fn pause(later: Millis) -> Duration {
    if later > Millis(60_000) { PARK_AFTER.duration() * 2 } else { later.duration() / 20 }
}

/// Waits until a thread has nothing to do, and reads its log.
pub(crate) async fn finished(cluster: &Cluster, thread: &ThreadId) -> (Vec<LogEntry>, Arc<End>) {
    let threads = cluster.threads();
    let what = format!("the end of thread {thread}");
    until(&what, || async {
        threads.snapshot(thread).await.is_ok_and(|state| {
            *state.status() == ThreadStatus::Idle && state.queue().count() == 0 && state.last().is_some()
        })
    })
    .await;
    let state = threads.snapshot(thread).await.unwrap();
    let last = state.last().unwrap().clone();
    let last = last.unwrap_or_else(|why| panic!("thread {thread}: {why}"));
    (log(&threads, thread).await, last)
}

/// The log of a thread.
pub(crate) async fn log(threads: &DurableThreads, thread: &ThreadId) -> Vec<LogEntry> {
    let mut all = Vec::new();
    loop {
        let (entries, len) = threads.read(thread, all.len() as u64).await.unwrap();
        all.extend(entries);
        if all.len() as u64 >= len {
            return all;
        }
    }
}

/// Waits for the end of a thread, and checks its laws.
pub(crate) async fn check_laws(cluster: &Cluster, thread: &ThreadId) -> Vec<LogEntry> {
    let (log, last) = finished(cluster, thread).await;
    let ledger = cluster.ledger(thread.as_str());
    kept(&log, &ledger, &last, &script_of(thread.as_str()).unwrap(), thread.as_str());
    log
}
