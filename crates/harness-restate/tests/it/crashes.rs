//! Laws (a) to (d) and (f) of durable threads, under a crash at every point of every script, against an outside ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::core::event::EventKind;
use harness::core::message::Message;
use harness::core::port::Clock as _;
use harness::core::testing::event_line;
use harness::core::{Fault, FaultSource, Millis, ThreadId, Time};
use harness_restate::durable::sim::{SimFaults, SimReport};
use harness_restate::durable::{
    Agent, AgentHost, DriveOptions, HostAsk, LogEntry, LogItem, SimEngine, ThreadReply, ThreadStatus, fold,
};

use super::kept::{events, kept, laws_kept};
use super::scripts;
use super::world::{FOLLOW_UP, Host, INSTRUCTIONS, PROMPT, SECRET, Script, client, redactor, say, thread};

/// What is left of a conversation.
pub(crate) struct Left {
    pub(crate) report: SimReport,
    pub(crate) log: Vec<LogEntry>,
    /// The logs of sub-agents.
    pub(crate) children: Vec<(String, Vec<LogEntry>)>,
    pub(crate) ledger: Vec<String>,
    pub(crate) messages: Vec<Arc<Message>>,
}

/// Plays a script on an engine with these faults, and checks the laws.
pub(crate) fn play(script: &Script, faults: SimFaults, options: DriveOptions) -> Left {
    let about = format!("{} under {faults:?}", script.name);
    let secret = script.is_secret.then_some(SECRET);
    let faults = SimFaults { secret, private: Some(INSTRUCTIONS), ..faults };
    let is_frozen = faults.freeze;
    let mut engine = SimEngine::new(faults).with_options(options);
    if script.is_secret {
        engine = engine.with_redactor(redactor());
    }
    let clock = Arc::new(engine.clock());
    let host = Arc::new(Host::new(script, clock, client(engine.client(), engine.clock())));
    engine.client().send("first", Time(0), &thread(), say("first", script.said[0], PROMPT));
    let report = engine.run(&host);
    assert_eq!(report.violations, [""; 0], "{about}");
    // (f)
    assert_eq!(report.stuck, [""; 0], "{about}");
    assert!(engine.clock().now() < Time(30 * 24 * 3_600_000), "{about}");
    assert!(matches!(engine.client().reply("first"), Some(ThreadReply::Accepted(_))), "{about}");
    let state = engine.thread(&thread()).unwrap();
    assert_eq!((state.status(), state.queue().count()), (&ThreadStatus::Idle, 0), "{about}");
    // The agent, and the state of the last invocation that continued another.
    let texts = engine.texts(&thread()).len();
    assert!(texts <= 2 || is_frozen, "{about}: {texts} texts are kept");
    let (log, ledger) = (engine.log(&thread()), host.ledger.lock().clone());
    assert_eq!(state.log(), log.len() as u64, "{about}");
    let messages: Vec<_> = fold(&log).messages().cloned().collect();
    let children = engine.threads().into_iter().filter(|other| *other != thread());
    let children = children.map(|child| (child.to_string(), child_kept(&engine, &child, &about))).collect();
    let left = Left { report, log, children, ledger, messages };
    let last = state.last().unwrap().as_ref().unwrap_or_else(|why| panic!("{about}: {why}"));
    kept(&left.log, &left.ledger, last, script, &about);
    left
}

/// Checks the laws of a sub-agent, and gives its log.
fn child_kept(engine: &SimEngine, child: &ThreadId, about: &str) -> Vec<LogEntry> {
    let about = format!("{child}: {about}");
    let (state, log) = (engine.thread(child).unwrap(), engine.log(child));
    assert_eq!((state.status(), state.log()), (&ThreadStatus::Idle, log.len() as u64), "{about}");
    let last = state.last().unwrap().as_ref().unwrap_or_else(|why| panic!("{about}: {why}"));
    laws_kept(&log, last, &about);
    log
}

/// Settings under which runs roll over after so many entries. With 1 they roll over before each iteration.
pub(crate) fn rolling(entries: u64) -> DriveOptions {
    let mut options = DriveOptions::default();
    options.entries = entries;
    options
}

fn texts(left: &Left) -> Vec<String> {
    left.messages.iter().map(|message| format!("{}: {}", message.role(), message.joined_text())).collect()
}

/// Whether a model of a script hangs.
fn hangs(script: &Script) -> bool {
    script.hangs.is_some() || script.child.as_deref().is_some_and(hangs)
}

/// Crashes at each point, one after the other.
fn enumerate(scripts: Vec<Script>, faults: &SimFaults, options: DriveOptions) {
    for script in scripts {
        // Completions come in another order than their steps were started in.
        let faults = SimFaults { seed: faults.seed.max(1), ..faults.clone() };
        let calm = play(&script, faults.clone(), options);
        for point in 1..=calm.report.points {
            let crashing = SimFaults { crash_at: BTreeSet::from([point]), ..faults.clone() };
            let left = play(&script, crashing, options);
            let was_cut = texts(&left) != texts(&calm);
            // A call that delegates is never cut off: its child goes on.
            let is_unsafe = |line: &String| {
                ["pay", "sign"].iter().any(|tool| line.starts_with(&format!("begun {tool} t1/t1/")))
            };
            let may_be_cut = calm.ledger.iter().any(is_unsafe) || hangs(&script);
            assert!(!was_cut || may_be_cut, "{}: point {point}", script.name);
        }
    }
}

#[test]
fn a_crash_at_every_point_loses_nothing_and_repeats_no_unsafe_call() {
    enumerate(scripts::all(), &SimFaults::default(), DriveOptions::default());
}

#[test]
fn nothing_is_lost_when_runs_roll_over() {
    enumerate(scripts::all(), &SimFaults::default(), rolling(1));
}

#[test]
fn a_run_that_rolls_over_gives_the_same_records_and_events() {
    let mut most = 0;
    for script in scripts::all() {
        let whole = play(&script, SimFaults::default(), DriveOptions::default());
        for entries in 1..=whole.report.entries {
            let rolled = play(&script, SimFaults::default(), rolling(entries));
            most = most.max(rolled.report.drives - whole.report.drives);
            assert_eq!(rolled.log, whole.log, "{} after {entries} entries", script.name);
            assert_eq!(rolled.children, whole.children, "{} after {entries} entries", script.name);
        }
    }
    assert_eq!(most, 8, "each iteration of the longest script is one invocation");
}

#[test]
fn layers_have_one_state_wherever_their_run_is_at_work() {
    let script = scripts::all().into_iter().find(|script| script.name == "layers").unwrap();
    for options in [DriveOptions::default(), rolling(1)] {
        let left = play(&script, SimFaults::default(), options);
        let counted = texts(&left).into_iter().filter(|text| text.starts_with("toolResult: ["));
        // Views, calls and answers: two calls of one answer, and one in the next turn.
        let expected = ["toolResult: [1, 1, 1]", "toolResult: [1, 2, 1]", "toolResult: [3, 3, 3]"];
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_mode_and_a_list_are_those_of_the_thread_wherever_it_is_at_work() {
    let script = scripts::all().into_iter().find(|script| script.name == "a mode and a list").unwrap();
    for options in [DriveOptions::default(), rolling(1)] {
        let left = play(&script, SimFaults::default(), options);
        let texts = texts(&left);
        let has = |text: &str| texts.iter().any(|known| known.contains(text));
        assert!(has("`pay` may change something, which the mode `plan` does not allow"), "{texts:?}");
        assert!(has(r#"{"mode":"execute","modes""#) && has("[00000001] tea\nIn all: 1 pending"), "{texts:?}");
        // Only the sub-agent pays, which begins in the mode of its caller.
        let paid: Vec<_> = left.ledger.iter().filter(|line| line.starts_with("begun pay")).collect();
        assert!(matches!(&paid[..], [line] if line.contains("t1/c-task")), "{paid:?}");
    }
}

#[test]
fn a_worker_reads_each_entry_of_a_log_once() {
    for script in scripts::all() {
        for options in [DriveOptions::default(), rolling(1)] {
            let left = play(&script, SimFaults::default(), options);
            let of_children: usize = left.children.iter().map(|(_, log)| log.len()).sum();
            let (reads, entries) = (left.report.reads, (left.log.len() + of_children) as u64);
            assert!(reads <= entries, "{}: {reads} reads of {entries} entries", script.name);
        }
    }
}

#[test]
fn a_process_that_is_cut_off_and_goes_on_does_no_harm() {
    enumerate(scripts::fewer(), &SimFaults { freeze: true, ..SimFaults::default() }, DriveOptions::default());
}

#[test]
fn requests_that_arrive_twice_count_once() {
    enumerate(
        scripts::fewer(),
        &SimFaults { duplicate: true, seed: 3, ..SimFaults::default() },
        DriveOptions::default(),
    );
}

#[test]
fn a_model_call_that_was_lost_counts_as_used() {
    let script = scripts::all().into_iter().next().unwrap();
    let calls = |left: &Left| {
        let last = events(&left.log).pop().map(|event| event.kind);
        let Some(EventKind::RunFinished { end }) = last else { panic!("the run has no end") };
        end.usage.model_calls
    };
    let points = play(&script, SimFaults::default(), DriveOptions::default()).report.points;
    let crash = |point| SimFaults { crash_at: BTreeSet::from([point]), ..SimFaults::default() };
    let counted: BTreeSet<_> =
        (1..=points).map(|point| calls(&play(&script, crash(point), DriveOptions::default()))).collect();
    assert_eq!(counted, BTreeSet::from([1, 2]));
}

#[test]
fn threads_do_not_disturb_each_other() {
    let script = scripts::all().into_iter().find(|script| script.name == "one call after the other").unwrap();
    for seed in 1..20 {
        let crash_at = (1..300).filter(|point| point % 13 == seed % 13).collect();
        let engine = SimEngine::new(SimFaults { crash_at, seed, ..SimFaults::default() });
        let clock = Arc::new(engine.clock());
        let host = Arc::new(Host::new(&script, clock, client(engine.client(), engine.clock())));
        for thread in ["a", "b", "c"] {
            engine.client().send(thread, Time(0), &thread.into(), say(thread, thread, PROMPT));
        }
        let report = engine.run(&host);
        assert_eq!((report.stuck, report.violations), (Vec::new(), Vec::new()), "seed {seed}");
        for thread in ["a", "b", "c"] {
            let log = engine.log(&thread.into());
            let messages: Vec<_> = fold(&log).messages().map(|message| message.joined_text()).collect();
            assert_eq!((messages.len(), &*messages[0], &*messages[5]), (6, thread, "Done."), "seed {seed}");
        }
        let ledger = host.ledger.lock();
        let once: BTreeSet<_> = ledger.iter().collect();
        assert_eq!(once.len(), ledger.len(), "seed {seed}: begun twice");
    }
}

#[test]
fn a_part_that_misbehaves_is_a_result_and_no_loop() {
    let ends = scripts::poisoned().into_iter().map(|script| {
        let left = play(&script, SimFaults::default(), DriveOptions::default());
        let result = left.messages.iter().find(|message| message.as_tool_result().is_some());
        let text = result.map(|result| result.joined_text()).unwrap_or_default();
        let end = events(&left.log).pop().map(|event| event_line(&event.kind)).unwrap();
        format!("{end}: {}", text.chars().take(60).collect::<String>())
    });
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [
            "run_finished answer_finalized: the tool panicked: out of tea",
            "run_finished answer_finalized: the result has 3145879 bytes, 1048576 are permitted; ask for",
            "run_finished timeout_reached: ",
        ]
    );
}

/// A worker that does not have the agents of a thread, the first time.
struct Late(Host, AtomicBool);

impl AgentHost for Late {
    async fn agent(&self, ask: HostAsk<'_>) -> Result<Agent, Fault> {
        if self.1.swap(true, Ordering::Relaxed) {
            return self.0.agent(ask).await;
        }
        Err(Fault::new(FaultSource::Agent, "descriptor.unbound", "tool `look` is not bound"))
    }
}

#[test]
fn a_run_that_cannot_begin_ends_and_its_message_waits() {
    let script = scripts::all().into_iter().next().unwrap();
    let engine = SimEngine::new(SimFaults::default());
    let host = Host::new(&script, Arc::new(engine.clock()), client(engine.client(), engine.clock()));
    let host = Arc::new(Late(host, AtomicBool::new(false)));
    engine.client().send("1", Time(0), &thread(), say("m1", "Hi", PROMPT));
    assert_eq!(engine.run(&host).stuck, [""; 0]);
    let state = engine.thread(&thread()).unwrap();
    assert_eq!(state.last().unwrap().as_ref().unwrap_err(), "tool `look` is not bound");
    assert_eq!((state.queue().count(), state.status()), (1, &ThreadStatus::Idle));
    engine.client().send("2", Time(0), &thread(), say("m2", "Again", FOLLOW_UP));
    engine.client().send("3", Time(0), &thread(), say("m3", "Now", PROMPT));
    assert_eq!(engine.run(&host).stuck, [""; 0]);
    let log = engine.log(&thread());
    let said: Vec<_> = fold(&log).messages().map(|message| message.joined_text()).collect();
    assert_eq!(said[..2], ["Hi", "Hello."]);
}

#[test]
fn clocks_of_workers_may_differ() {
    for script in scripts::all() {
        for seed in 1..10 {
            play(
                &script,
                SimFaults { skew: Millis(1_000), seed, ..SimFaults::default() },
                DriveOptions::default(),
            );
        }
    }
}

#[test]
fn a_secret_that_nobody_takes_out_is_noticed() {
    let script = scripts::all().into_iter().find(|script| script.name == "secrets").unwrap();
    let engine = SimEngine::new(SimFaults { secret: Some(SECRET), ..SimFaults::default() });
    let host =
        Arc::new(Host::new(&script, Arc::new(engine.clock()), client(engine.client(), engine.clock())));
    engine.client().send("first", Time(0), &thread(), say("first", script.said[0], PROMPT));
    let report = engine.run(&host);
    assert!(report.violations.iter().all(|broken| broken.starts_with("a secret is kept")));
    // The request, the state of the thread, the input of the run, and the entries of its journal.
    assert!(report.violations.len() > 10, "{:#?}", report.violations);
}

#[test]
fn the_log_has_the_agents_of_events_for_those_who_read_it() {
    let script = scripts::all().into_iter().next().unwrap();
    let left = play(&script, SimFaults::default(), DriveOptions::default());
    let prepared = events(&left.log).into_iter().filter_map(|event| {
        let EventKind::AgentPrepared { prepared } = event.kind else { return None };
        Some((prepared.instructions.to_string(), prepared.tools.len()))
    });
    assert_eq!(prepared.collect::<Vec<_>>(), [(INSTRUCTIONS.to_owned(), 8)]);
}

#[test]
fn rings_may_be_lost() {
    for script in scripts::all().into_iter().filter(|script| !hangs(script)) {
        play(&script, SimFaults { lose_rings: true, ..SimFaults::default() }, DriveOptions::default());
    }
}

#[test]
fn many_crashes_in_any_order_of_completions() {
    for script in scripts::all() {
        for seed in 1..20 {
            let crash_at = (1..400).filter(|point| (point * seed) % 11 == seed % 7).collect();
            play(
                &script,
                SimFaults { crash_at, seed, freeze: seed % 2 == 0, ..SimFaults::default() },
                rolling(1),
            );
        }
    }
}

#[test]
fn an_iteration_with_one_tool_has_at_most_fourteen_entries() {
    let mut scripts = scripts::all().into_iter();
    let entries =
        |script: &Script| play(script, SimFaults::default(), DriveOptions::default()).report.entries;
    let plain = entries(&scripts.next().unwrap());
    let two = entries(&scripts.find(|script| script.name == "one call after the other").unwrap());
    assert!(two - plain <= 2 * 14, "{plain} entries without tools, {two} with two iterations more");
}

#[test]
fn a_parked_run_holds_no_key() {
    let late = Millis(3 * 24 * 3_600_000);
    let script = scripts::all().into_iter().find(|script| script.name == "approval of a parked run").unwrap();
    let left = play(&script, SimFaults::default(), DriveOptions::default());
    assert_eq!(left.report.drives, 2);
    let last = left.log.iter().filter_map(|entry| match &entry.item {
        LogItem::Event(event) => Some(event.at),
        LogItem::Record(_) => None,
    });
    assert!(last.max().unwrap() >= Time(0).after(late));
}

#[test]
fn an_approval_in_a_sub_agent_may_take_days() {
    for (name, drives, result) in [
        ("an approval in a sub-agent", 2, r#""output": "Signed.""#),
        ("an approval in a sub-agent parked two levels down", 6, r#""output": "Done.""#),
        ("nobody decides in a sub-agent", 4, r#""output": "Not signed.""#),
        ("a message instead of a decision in a sub-agent", 3, "This call was cut off before it answered."),
    ] {
        let script = scripts::all().into_iter().find(|script| script.name == name).unwrap();
        let left = play(&script, SimFaults::default(), DriveOptions::default());
        let results = left.messages.iter().filter(|message| message.as_tool_result().is_some());
        let results: Vec<_> = results.map(|result| result.joined_text()).collect();
        assert!(results.len() == 1 && results[0].contains(result), "{name}: {results:?}");
        assert_eq!(left.report.drives, drives, "{name}");
    }
}
