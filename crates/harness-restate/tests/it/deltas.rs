//! Deltas of answers: whatever is lost, those of the last attempt at an answer are the text of its message.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use harness::core::event::EventKind;
use harness::core::port::DeltaPart;
use harness::core::{Millis, Time};
use harness::runtime::ThreadEvent;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{AnswerId, DeltaReceiver, DeltaSink, LogEntry, SimEngine, ToolProgress};
use parking_lot::Mutex;

use super::kept::events;
use super::world::{Host, PROMPT, Script, calls, client, say, text, thread};

/// The texts of attempts, and whether they ended.
#[derive(Debug, Default)]
struct Attempts(Mutex<BTreeMap<AnswerId, (String, bool)>>);

impl DeltaReceiver for Attempts {
    fn start(&self, answer: &AnswerId) {
        assert!(self.0.lock().insert(answer.clone(), Default::default()).is_none(), "{answer:?}");
    }

    fn delta(&self, answer: &AnswerId, part: DeltaPart) {
        let DeltaPart::Text(text) = part else { panic!("{part:?}") };
        self.0.lock().get_mut(answer).unwrap().0.push_str(&text);
    }

    fn end(&self, answer: &AnswerId) {
        self.0.lock().get_mut(answer).unwrap().1 = true;
    }

    fn progress(&self, progress: ToolProgress) {
        assert_eq!(progress.thread, thread());
    }
}

fn script() -> Script {
    Script {
        answers: vec![calls(&["look"]), text("")],
        stamps: 4,
        said: vec!["Order tea."],
        thinks: Millis(10),
        ..Script::default()
    }
}

/// Plays the script, with a crash at a point, and gives the attempts at its last answer and the points of the run.
fn play(crash_at: BTreeSet<u64>) -> (Vec<(AnswerId, String)>, u64) {
    let attempts = Arc::<Attempts>::default();
    let faults = SimFaults { crash_at: crash_at.clone(), ..SimFaults::default() };
    let engine = SimEngine::new(faults).with_time(Time(1_000)).with_deltas(DeltaSink::new(attempts.clone()));
    let (script, clock) = (script(), Arc::new(engine.clock()));
    let host = Arc::new(Host::new(&script, clock, client(engine.client(), engine.clock())));
    engine.client().send("first", Time(1_000), &thread(), say("first", script.said[0], PROMPT));
    let report = engine.run(&host);
    assert_eq!((report.stuck, report.violations), (Vec::new(), Vec::new()), "{crash_at:?}");
    let attempts = attempts.0.lock();
    assert!(attempts.values().all(|(_, is_over)| *is_over), "{crash_at:?}: {attempts:?}");
    let log = engine.log(&thread());
    for answer in attempts.keys() {
        assert_eq!(starts(&log, answer), 1, "{crash_at:?}: {answer:?}");
    }
    let last = attempts.last_key_value().unwrap().0.clone();
    let of_last = attempts.iter().filter(|(answer, _)| answer.is_same_answer(&last));
    let of_last: Vec<_> = of_last.map(|(answer, (text, _))| (answer.clone(), text.clone())).collect();
    assert_eq!(Some(&of_last.last().unwrap().1), said(&log).last(), "{crash_at:?}");
    (of_last, report.points)
}

/// Starts of answers among the log entries that an attempt names.
fn starts(log: &[LogEntry], answer: &AnswerId) -> usize {
    let named = log.iter().filter(|entry| (answer.log..answer.shown).contains(&entry.seq)).cloned();
    let named = events(&named.collect::<Vec<_>>());
    named.iter().filter(|event| matches!(event.kind, EventKind::ModelStepStarted { .. })).count()
}

/// The texts of the answers of a log.
fn said(log: &[LogEntry]) -> Vec<String> {
    let mut said = Vec::new();
    for event in events(log) {
        if let EventKind::MessageAppended { message, .. } = event.kind
            && message.as_assistant().is_some()
        {
            said.push(message.joined_text());
        }
    }
    said
}

#[test]
fn the_deltas_of_the_last_attempt_are_the_text_of_the_message() {
    let (attempts, points) = play(BTreeSet::new());
    assert_eq!(attempts.len(), 1);
    let mut most = 0;
    for point in 1..=points {
        let (attempts, _) = play(BTreeSet::from([point]));
        assert!(attempts.is_sorted_by(|(one, _), (next, _)| one.attempt < next.attempt));
        most = most.max(attempts.len());
    }
    assert_eq!(most, 2, "some crash loses an attempt");
}

#[test]
fn progress_of_a_tool_is_shown_while_it_is_at_work() {
    let engine = SimEngine::new(SimFaults::default());
    let (script, clock) = (script(), Arc::new(engine.clock()));
    let host = Arc::new(Host::new(&script, clock, client(engine.client(), engine.clock())));
    engine.client().send("first", Time(0), &thread(), say("first", script.said[0], PROMPT));
    let (mut stream, mut told) = (engine.client().events(&thread()), Vec::new());
    let listener = poll_fn(|_| {
        while let Some(event) = stream.try_next() {
            if let ThreadEvent::Event(event) = event {
                told.push(event.kind.name().to_owned());
            } else if let ThreadEvent::ToolUpdate { call, content } = event {
                told.push(format!("{}: {}", call.id, content[0].as_text().unwrap()));
            }
        }
        Poll::<()>::Pending
    });
    engine.play(&host, listener);
    let of_tools = told.iter().filter(|told| told.starts_with("tool_") || told.starts_with("c-"));
    let expected = ["tool_requested", "tool_started", "c-look: half of it", "tool_finished"];
    assert_eq!(of_tools.collect::<Vec<_>>(), expected);
}
