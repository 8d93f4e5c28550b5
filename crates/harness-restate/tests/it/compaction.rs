//! Compaction on request, on an engine that loses processes.

use std::sync::Arc;

use harness::core::event::EventKind;
use harness::core::machine::Record;
use harness::core::message::AssistantMessage;
use harness::core::{Millis, ThreadId, Time};
use harness::prelude::*;
use harness::testing::ScriptedModel;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{LogItem, SimEngine, ThreadAsk, ThreadReply, ThreadState, ThreadStatus, fold};

use super::one_line::OneLine;
use super::world::{FOLLOW_UP, INTERRUPT, PROMPT, Way, say};

const MINUTE: i64 = 60_000;

/// What is left of a thread.
struct Left {
    state: ThreadState,
    /// Permanent compactions of the log.
    records: usize,
    events: usize,
    transcript: Vec<String>,
    /// What the model saw last.
    seen: Vec<String>,
    replies: Vec<Option<ThreadReply>>,
    points: u64,
}

impl Left {
    /// What the last compaction did.
    fn did(&self) -> &str {
        let mut ids = (1..9).map(|number| format!("t1-compaction-{number}").into());
        match ids.find_map(|id| self.state.compaction(&id)).unwrap() {
            Ok(Some(_)) => "compacted",
            Ok(None) => "nothing",
            Err(fault) => &fault.code,
        }
    }

    /// Why a request was refused.
    fn refusal(&self, number: usize) -> &str {
        let Some(ThreadReply::Refused(why)) = &self.replies[number] else { panic!("{:?}", self.replies) };
        why.split(':').next().unwrap()
    }
}

fn thread() -> ThreadId {
    "t1".into()
}

fn compact(entry: &str, keep: &str) -> ThreadAsk {
    ThreadAsk::Compact { entry: entry.into(), instructions: Some(keep.to_owned()) }
}

fn saying(entry: &str, way: Way) -> ThreadAsk {
    say(entry, entry, way)
}

/// Plays requests, each at its minute. An assistant says the number of messages that it sees.
fn play(faults: SimFaults, asks: Vec<(i64, ThreadAsk)>) -> Left {
    let about = format!("{faults:?}");
    let answers = ["one", "two", "three", "four"].map(AssistantMessage::text);
    let model = ScriptedModel::new(answers).repeatable();
    let engine = SimEngine::new(faults);
    let runtime = Harness::new(model.clone()).clock(Arc::new(engine.clock())).compactor(OneLine);
    let runtime = runtime.build_runtime().unwrap();
    let count = asks.len();
    for (n, (minute, ask)) in asks.into_iter().enumerate() {
        engine.client().send(n.to_string(), Time(minute * MINUTE), &thread(), ask);
    }
    let report = engine.run(&Arc::new(runtime));
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]), "{about}");
    let log = engine.log(&thread());
    let is_record = |item: &LogItem| matches!(item, LogItem::Record(record) if matches!(**record, Record::Compaction { permanent: true, .. }));
    let is_event = |item: &LogItem| match item {
        LogItem::Event(event) => {
            let is_one = matches!(event.kind, EventKind::CompactionCompleted { permanent: true, .. });
            assert!(!is_one || event.origin.run.is_none(), "{about}: {event:?}");
            is_one
        }
        LogItem::Record(_) => false,
    };
    let mut seen = Vec::new();
    if let Some(request) = model.requests().last() {
        request.view.for_each(|message| seen.push(message.joined_text()));
    }
    Left {
        state: engine.thread(&thread()).unwrap(),
        records: log.iter().filter(|entry| is_record(&entry.item)).count(),
        events: log.iter().filter(|entry| is_event(&entry.item)).count(),
        transcript: fold(&log).messages().map(|message| message.joined_text()).collect(),
        seen,
        replies: (0..count).map(|n| engine.client().reply(&n.to_string())).collect(),
        points: report.points,
    }
}

/// Two runs, a compaction, and a run after it.
fn conversation() -> Vec<(i64, ThreadAsk)> {
    vec![
        (0, saying("a", PROMPT)),
        (1, saying("b", PROMPT)),
        (2, compact("c", "names")),
        (3, saying("d", PROMPT)),
    ]
}

#[test]
fn a_conversation_is_shortened_once_and_goes_on_from_there_whatever_dies() {
    let check = |faults: SimFaults| {
        let about = format!("{faults:?}");
        let left = play(faults, conversation());
        assert_eq!((left.did(), left.records, left.events), ("compacted", 1, 1), "{about}");
        assert_eq!(left.transcript, ["[names]", "b", "two", "d", "two"], "{about}");
        assert_eq!(left.seen, ["[names]", "b", "two", "d"], "{about}");
        assert_eq!(left.state.last_run(), Some("t1-3".into()), "{about}");
        left.points
    };
    let points = check(SimFaults::default());
    for point in 1..=points {
        check(SimFaults { crash_at: [point].into(), ..SimFaults::default() });
        check(SimFaults { crash_at: [point].into(), freeze: true, ..SimFaults::default() });
    }
    check(SimFaults { duplicate: true, ..SimFaults::default() });
    check(SimFaults { lose_rings: true, skew: Millis(5_000), seed: 7, ..SimFaults::default() });
}

#[test]
fn what_a_compaction_does_is_with_its_thread() {
    let check = |keep: &str, more: Vec<(i64, ThreadAsk)>, did: &str, records: usize| {
        let mut asks = vec![(0, saying("a", PROMPT)), (1, saying("b", PROMPT)), (2, compact("c", keep))];
        asks.extend(more);
        let left = play(SimFaults::default(), asks);
        assert_eq!((left.did(), left.state.status()), (did, &ThreadStatus::Idle), "{keep}");
        assert_eq!(left.records, records, "{keep}");
        left
    };
    let abort = |minute| (minute, ThreadAsk::Abort { reason: None });
    let left = check("names", vec![], "compacted", 1);
    assert_eq!(
        (left.state.last_run(), left.state.last_log() < left.state.log()),
        (Some("t1-2".into()), true)
    );
    check("names", vec![(3, compact("again", "more"))], "compacted", 2);
    check("names", vec![(3, compact("c", "names"))], "compacted", 1);
    check("fail", vec![], "no_summary", 0);
    check("stop", vec![abort(3)], "nothing", 0);
    check("wait", vec![abort(3)], "cancelled", 0);
    let left = check(
        "wait",
        vec![(3, saying("d", FOLLOW_UP)), (4, saying("e", INTERRUPT)), abort(5)],
        "cancelled",
        0,
    );
    assert_eq!(
        left.transcript,
        ["a", "one", "b", "two", "e", "three", "d", "four"],
        "what came meanwhile begins, an interruption first"
    );
    let gone = play(
        SimFaults::default(),
        vec![(0, saying("a", PROMPT)), (1, compact("c", "wait")), (2, ThreadAsk::Forget)],
    );
    assert_eq!((gone.state.created(), gone.transcript.len()), (None, 0));
}

#[test]
fn a_thread_at_work_is_not_compacted() {
    let left = play(
        SimFaults::default(),
        vec![
            (0, saying("a", PROMPT)),
            (1, compact("c", "stop")),
            (2, compact("d", "names")),
            (3, ThreadAsk::Abort { reason: None }),
        ],
    );
    assert_eq!((left.refusal(2), left.did(), left.records), ("busy", "nothing", 0));
}
