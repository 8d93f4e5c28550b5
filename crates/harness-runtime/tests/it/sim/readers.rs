//! Who follows a thread, quickly or slowly.

use std::sync::Arc;

use harness_runtime::{StartAt, Stream, StreamItem, Thread, ThreadEvent};

use super::tricks::Trick;
use super::world::World;

/// What a reader remembers of an event: enough to see that all readers were told the same.
fn mark(event: &ThreadEvent) -> String {
    match event {
        ThreadEvent::Status(status) => format!("{status:?}"),
        ThreadEvent::Queue { entry, change } => format!("{entry} {change:?}"),
        ThreadEvent::RunStarted { run, entries } => format!("{run} began with {entries:?}"),
        ThreadEvent::Event(event) => format!("{} {:?}", event.kind.name(), event.seq),
        ThreadEvent::Delta(part) => format!("{part:?}"),
        ThreadEvent::ToolUpdate { call, .. } => format!("update {}", call.id),
        ThreadEvent::RunEnded(report) => format!("{} ended", report.run),
        ThreadEvent::RunFailed { run, .. } => format!("{run} failed"),
        other => format!("{other:?}"),
    }
}

/// A reader in a task of its own, which must come to its end.
pub(super) fn spawn(
    world: &Arc<World>,
    name: &str,
    thread: &Thread,
    from: StartAt,
    pace: u64,
    one_run: bool,
) {
    let stream = thread.events(from);
    let stream = if one_run { stream.of_one_run() } else { stream };
    let what = format!("{name}: a reader from {from:?}, one run: {one_run}");
    let instance = world.instance(name);
    let waits = world.waits(what.clone());
    let world = Arc::clone(world);
    let event_log = (name.to_owned(), instance);
    tokio::spawn(async move {
        let expected = matches!(from, StartAt::Replay).then_some(0);
        read(&world, stream, &event_log, &what, expected, pace, one_run).await;
        world.is_answered(waits);
    });
}

async fn read(
    world: &World,
    mut stream: Stream,
    event_log: &(String, u32),
    what: &str,
    mut expected: Option<u64>,
    pace: u64,
    one_run: bool,
) {
    let mut over = false;
    while let Some(told) = stream.next().await {
        world.expect(!over, || format!("{what} goes on behind the end of the run"));
        match told {
            StreamItem::Lagged { missed } => {
                world.expect(missed > 0, || format!("{what} missed nothing"));
                let told = missed + u64::from(world.plays(Trick::Miscounts));
                expected = expected.map(|at| at + told);
            }
            StreamItem::Event { .. } if world.strikes(Trick::SkipsEvent) => {}
            StreamItem::Event { seq, event } => {
                let at = expected.unwrap_or(seq);
                world.expect(seq == at, || format!("{what}: event {seq} came in the place of {at}"));
                expected = Some(seq + 1);
                let ends = matches!(event, ThreadEvent::RunEnded(_) | ThreadEvent::RunFailed { .. });
                over = one_run && ends;
                let mark = if world.strikes(Trick::TellsAnother) { String::new() } else { mark(&event) };
                let known = {
                    let mut inner = world.lock();
                    let event_log = inner.tapes.entry(event_log.clone()).or_default();
                    event_log.entry(seq).or_insert_with(|| mark.clone()).clone()
                };
                world.expect(known == mark, || format!("{what}: {seq} is {mark}, another was told {known}"));
            }
            other => world.fault(format!("{what}: {other:?}")),
        }
        if pace > 0 && !world.is_calm() {
            world.sleep(pace).await;
        }
    }
}
