//! A conversation that is forgotten leaves nothing, whatever dies, and the next one of the thread begins anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use harness::core::Time;
use harness::core::port::Clock as _;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{LogEntry, LogItem, LogPages, SimEngine, ThreadAsk, ThreadStatus, fold};

use super::crashes::rolling;
use super::kept::events;
use super::scripts;
use super::world::{Host, PROMPT, Script, client, say, thread};

/// While a model or a tool is at work, and after the end of all scripts.
const MOMENTS: [Time; 3] = [Time(50), Time(105), Time(24 * 3_600_000)];

/// Plays a script, forgets its conversation at a time, and begins another: the points at which the process may die.
fn play(script: &Script, faults: SimFaults, at: Time) -> u64 {
    let about = format!("{} forgotten at {} under {faults:?}", script.name, at.0);
    let engine = SimEngine::new(faults).with_options(rolling(1));
    let clock = Arc::new(engine.clock());
    let host = Arc::new(Host::new(script, clock, client(engine.client(), engine.clock())));
    engine.client().send("first", Time(0), &thread(), say("first", script.said[0], PROMPT));
    engine.client().send("forget", at, &thread(), ThreadAsk::Forget);
    let report = engine.run(&host);
    assert_eq!((report.violations, report.stuck), (Vec::new(), Vec::new()), "{about}");
    let state = engine.thread(&thread()).unwrap();
    assert_eq!((engine.log(&thread()), engine.texts(&thread())), (Vec::new(), Vec::new()), "{about}");
    assert_eq!((state.status(), state.last()), (&ThreadStatus::Idle, None), "{about}");
    assert_eq!((state.queue().count(), state.approvals().count()), (0, 0), "{about}");
    let left = serde_json::to_string(&state).unwrap();
    assert!(left.len() < 512 && !left.contains("tea"), "{about}: {left}");

    // The name of a message may be used again.
    engine.client().send("again", engine.clock().now(), &thread(), say("first", "Again.", PROMPT));
    let report = engine.run(&host);
    assert_eq!((report.violations, report.stuck), (Vec::new(), Vec::new()), "{about}");
    let log = engine.log(&thread());
    let seqs: Vec<_> = log.iter().map(|entry| entry.seq).collect();
    let first = state.first();
    assert_eq!(seqs, (first..first + log.len() as u64).collect::<Vec<_>>(), "{about}");
    let said = fold(&log).messages().next().map(|message| message.joined_text());
    assert_eq!(said.as_deref(), Some("Again."), "{about}");
    let runs = events(&log).into_iter().filter_map(|event| event.origin.run.clone());
    assert!(runs.into_iter().all(|run| run != "t1-1"), "{about}: the id of a run is given again");
    let ledger = host.ledger.lock();
    let begun: Vec<_> = ledger.iter().filter(|line| line.starts_with("begun pay")).collect();
    let once: BTreeSet<_> = begun.iter().collect();
    assert_eq!(once.len(), begun.len(), "{about}: two calls have one key: {begun:?}");
    report.points
}

#[test]
fn a_forgotten_conversation_leaves_nothing_after_a_crash_at_every_point() {
    let names = ["plain", "each class of tools", "approval of a parked run", "a silent model"];
    let all = scripts::all().into_iter().chain(scripts::poisoned());
    for script in all.filter(|script| names.contains(&script.name)) {
        for at in MOMENTS {
            let points = play(&script, SimFaults::default(), at);
            for point in 1..=points {
                play(&script, SimFaults { crash_at: BTreeSet::from([point]), ..SimFaults::default() }, at);
            }
        }
    }
}

#[test]
fn a_log_without_its_first_entries_keeps_the_numbers_of_the_others() {
    let record = || {
        let messages = vec![Arc::new(harness::core::message::Message::user("Hi"))];
        LogItem::Record(Box::new(harness::core::machine::Record::Messages { from: 0, messages }))
    };
    let entry = |seq| LogEntry::new(seq, record());
    let mut log = LogPages::default();
    log.append((0..40).map(entry).collect()).unwrap();
    log.forget(20);
    let seqs = |log: &LogPages| log.read(0, 100).map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!((seqs(&log), log.len()), ((20..40).collect(), 40));
    assert_eq!(log.append(vec![entry(40)]), Ok(41));
    log.forget(41);
    assert_eq!((seqs(&log), log.append(vec![entry(41)])), (Vec::new(), Ok(42)));
    assert!(log.append(vec![entry(50)]).is_err());
}
