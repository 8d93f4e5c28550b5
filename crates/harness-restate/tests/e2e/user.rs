//! The user of threads: plays the part of the user in scripts, and reads what came of it.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use harness::core::message::{AssistantMessage, Message};
use harness::core::port::Decision;
use harness::core::{End, Millis, ThreadId};
use harness::runtime::{ApprovalDecision, RuntimeError, ThreadMessage, ThreadService as _};
use harness_restate::durable::{LogEntry, ThreadStatus};
use harness_restate::engine::restate::DurableThreads;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::kept::{kept, laws_kept};
use crate::processes::{Cluster, PAUSE, becomes, until, until_every};
use crate::worker::{PARK_AFTER, script_of};
use crate::world::{Act, LEVEL, PROMPT, Script, Way, edited};

/// Plays the acts of scripts while models ask for them, until dropped.
pub(crate) async fn play_acts(cluster: &Cluster) {
    let (mut done, mut read, mut acts) = (HashSet::new(), 0, JoinSet::new());
    loop {
        while let Some(played) = acts.try_join_next() {
            let played: Result<(), RuntimeError> = played.unwrap();
            played.unwrap();
        }
        let lines = cluster.ledger_from(read);
        read += lines.len();
        for line in lines.into_iter().filter(|line| line.starts_with("act ")) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [_, answer, at, thread] = words[..] else { continue };
            if done.insert(line.clone()) {
                let name = format!("act-{answer}-{at}");
                let (of, number) = (answer.parse().unwrap(), at.parse().unwrap());
                let act = act_of(&script_of(thread).unwrap(), of, number).clone();
                let (threads, thread) = (cluster.threads(), ThreadId::from(thread));
                acts.spawn(async move { act_once(&threads, &thread, &name, &act).await });
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The act that the model asks for with an answer, in a script or in that of its sub-agent.
fn act_of(script: &Script, answer: usize, at: usize) -> &Act {
    match &script.child {
        Some(child) if answer >= LEVEL => act_of(child, answer - LEVEL, at),
        _ => &script.acts[at].1,
    }
}

/// The threads of the sub-agents of a script, inside of a thread.
fn children(script: &Script, thread: &ThreadId) -> Vec<ThreadId> {
    let Some(child) = &script.child else { return Vec::new() };
    let calls = script.answers.iter().flat_map(AssistantMessage::tool_calls);
    let mut all: Vec<_> = calls.map(|call| ThreadId::from(format!("{thread}/{}", call.id))).collect();
    all.dedup();
    let inside: Vec<_> = all.iter().flat_map(|thread| children(child, thread)).collect();
    all.into_iter().chain(inside).collect()
}

async fn act_once(
    threads: &DurableThreads,
    thread: &ThreadId,
    name: &str,
    act: &Act,
) -> Result<(), RuntimeError> {
    match act {
        Act::Say(way, said) => threads.deliver(thread, message(name, said, *way)).await.map(drop),
        Act::SayLater(said, later) => {
            tokio::time::sleep(pause(*later)).await;
            threads.deliver(thread, message(name, said, PROMPT)).await.map(drop)
        }
        Act::Abort(later) => {
            tokio::time::sleep(pause(*later)).await;
            threads.abort(thread, "caller".into(), false).await.map(drop)
        }
        Act::Grant(call, later) => decide(threads, thread, call, Decision::Granted, *later).await,
        Act::Edit(call, later) => decide(threads, thread, call, Decision::Edited(edited()), *later).await,
        Act::Deny(call, later) => {
            decide(threads, thread, call, Decision::Denied { reason: "no".to_owned() }, *later).await
        }
    }
}

/// A message of the user with a name.
pub(crate) fn message(name: &str, said: &str, (mode, wakes): Way) -> ThreadMessage {
    let message = ThreadMessage::new(Message::user(said), mode).named(name);
    if wakes { message } else { message.quiet() }
}

/// Decides when the call waits, and the run is parked if the script waits so long.
async fn decide(
    threads: &DurableThreads,
    thread: &ThreadId,
    call: &str,
    decision: Decision,
    later: Millis,
) -> Result<(), RuntimeError> {
    let shown = &Mutex::new(None);
    until("a call that waits", || async {
        let found = pending(threads, thread, call).await;
        let is_there = found.is_some();
        *shown.lock() = found;
        is_there
    })
    .await;
    tokio::time::sleep(pause(later)).await;
    let shown = shown.lock().take().unwrap();
    match threads.decide(thread, ApprovalDecision { decision, ..shown }).await {
        // A request whose response was lost is sent again, and may find that the run went on with the decision. One that
        // was lost itself leaves the run waiting, which fails the check.
        Err(RuntimeError::NotHeld { .. }) => Ok(()),
        decided => decided,
    }
}

/// The digest of a call that waits.
async fn pending(threads: &DurableThreads, thread: &ThreadId, call: &str) -> Option<ApprovalDecision> {
    let pending = threads.approvals(thread).await.ok()?;
    let held = pending.into_iter().find(|held| held.proposed.call.id.as_str() == call)?.proposed;
    Some(ApprovalDecision { approval: held.id(), digest: held.digest(), decision: Decision::Granted })
}

/// Decides about a call that waits.
pub(crate) async fn decide_now(
    threads: &DurableThreads,
    thread: &ThreadId,
    call: &str,
    decision: Decision,
) -> Result<(), RuntimeError> {
    let Some(shown) = pending(threads, thread, call).await else {
        panic!("call {call} of thread {thread} does not wait")
    };
    threads.decide(thread, ApprovalDecision { decision, ..shown }).await
}

/// The time of a script, in the shorter time of these checks: what parks a run there, does so here.
fn pause(later: Millis) -> Duration {
    if later > Millis(60_000) { PARK_AFTER.duration() * 2 } else { later.duration() / 20 }
}

/// Waits until a thread has nothing to do, with a pause between two looks, each of which is a request, too.
pub(crate) async fn idle(cluster: &Cluster, thread: &ThreadId, pause: Duration) {
    let (threads, seen) = (cluster.threads(), &Mutex::new(None));
    let is_idle = becomes(pause, || async {
        let state = threads.state(thread).await;
        let is_idle = state.as_ref().is_ok_and(|state| {
            *state.status() == ThreadStatus::Idle && state.queue().count() == 0 && state.last().is_some()
        });
        *seen.lock() = Some(state);
        is_idle
    })
    .await;
    if !is_idle {
        let done = cluster.ledger(thread.as_str());
        panic!("thread {thread} did not end: {:#?}\nwhat it did: {done:#?}", seen.lock());
    }
}

/// Waits until a thread has nothing to do, and reads its log.
pub(crate) async fn finished(cluster: &Cluster, thread: &ThreadId) -> (Vec<LogEntry>, Arc<End>) {
    idle(cluster, thread, PAUSE).await;
    let threads = cluster.threads();
    let state = until_ok("the state", || threads.state(thread)).await;
    let last = state.last().unwrap().clone();
    let last = last.unwrap_or_else(|why| panic!("thread {thread}: {why}"));
    (log(&threads, thread).await, last)
}

/// What a request gives, which is repeated while servers are away.
async fn until_ok<T, F: Future<Output = Result<T, RuntimeError>>>(
    what: &str,
    mut request: impl FnMut() -> F,
) -> T {
    let given = &Cell::new(None);
    until_every(Duration::from_millis(50), what, || {
        let asked = request();
        async move { asked.await.is_ok_and(|value| given.replace(Some(value)).is_none()) }
    })
    .await;
    given.take().unwrap()
}

/// The log of a thread.
pub(crate) async fn log(threads: &DurableThreads, thread: &ThreadId) -> Vec<LogEntry> {
    let mut all = Vec::new();
    loop {
        let from = all.len() as u64;
        let (entries, len) = until_ok("a log", || threads.read(thread, from)).await;
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
    let script = script_of(thread.as_str()).unwrap();
    kept(&log, &ledger, &last, &script, thread.as_str());
    for child in children(&script, thread) {
        child_log(cluster, &child).await;
    }
    log
}

/// Checks the laws of a sub-agent, whose caller has ended. Its log is empty if it did not begin.
pub(crate) async fn child_log(cluster: &Cluster, child: &ThreadId) -> Vec<LogEntry> {
    let state = cluster.threads().state(child).await.unwrap();
    let Some(last) = state.last() else { return Vec::new() };
    let last = last.as_ref().unwrap_or_else(|why| panic!("thread {child}: {why}"));
    let log = log(&cluster.threads(), child).await;
    assert_eq!((state.status(), state.log()), (&ThreadStatus::Idle, log.len() as u64), "{child}");
    laws_kept(&log, last, child.as_str());
    log
}
