//! Sub-agents in the record of their caller.

use harness_core::ParentCall;
use harness_core::event::EventKind;
use harness_record::{Recording, RunStatus, render_html};

use super::*;

/// Applies the events of a run as those of a sub-agent with this number, on behalf of the call `c1`; without its end if
/// it is still at work.
fn work(recording: &Recording, events: &[Event], caller: &Origin, number: usize, is_done: bool) {
    let mut origin = caller.child(ParentCall::new("c1", "desk", caller));
    origin.run = Some(RunId::from(format!("child-{number}")));
    let origin = Arc::new(origin);
    let mut fold = recording.subagents();
    for event in events {
        if is_done || !matches!(event.kind, EventKind::RunFinished { .. }) {
            let mut event = event.clone();
            event.origin = Arc::clone(&origin);
            fold.apply(&event);
        }
    }
}

/// Checks the sub-agents in the record of a run: `run status`, and the number of those that are left out.
#[track_caller]
fn check(done: &[bool], expected: &[&str], omitted: u64) {
    let events = usual().run().events;
    let caller = &*events[0].origin;
    let recording = Recording::new();
    let recorder = recording.clone().recorder();
    let fold = recorder.fold();
    let (end, before) = events.split_last().unwrap();
    for event in before {
        fold.lock().apply(event);
    }
    for (number, is_done) in done.iter().enumerate() {
        work(&recording, &events, caller, number, *is_done);
    }
    let mut other = caller.clone();
    other.run = Some("other".into());
    work(&recording, &events, &other, 99, true);
    fold.lock().apply(end);
    let record = fold.lock().record().unwrap();
    let status = |status| if status == RunStatus::Running { "running" } else { "done" };
    let found = record.sub_agents.iter().map(|run| &run.record);
    let found: Vec<String> =
        found.map(|record| format!("{} {}", record.run_id, status(record.status))).collect();
    assert_eq!(
        (found.iter().map(String::as_str).collect::<Vec<_>>(), record.omitted_sub_agents),
        (expected.to_vec(), omitted)
    );
    let page = render_html(&record);
    for (at, run) in (1..).zip(&record.sub_agents) {
        let call = run.record.model_calls[0].seq;
        assert_eq!(
            page.matches(&format!("id=\"sub-{at}-span-{call}\"")).count(),
            1,
            "a link leads to each step"
        );
    }

    drop(recorder);
    let again = recording.recorder();
    for event in &events {
        again.fold().lock().apply(event);
    }
    let record = again.fold().lock().record().unwrap();
    assert!(record.sub_agents.is_empty(), "the sub-agents of a run that is over are forgotten");
}

#[test]
fn sub_agents_are_in_the_record_of_their_caller_within_a_limit() {
    check(&[], &[], 0);
    check(&[true, false], &["child-0 done", "child-1 running"], 0);
    let many: Vec<String> = (0..64).map(|number| format!("child-{number} done")).collect();
    check(&[true; 66], &many.iter().map(String::as_str).collect::<Vec<_>>(), 2);
}
