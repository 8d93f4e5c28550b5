//! Twelve scenarios, every change to the disk, broken in every way.
//!
//! What must come of it is told by a session in memory that takes the same steps on a disk that never breaks.

use std::sync::Arc;

use harness_core::EntryId;
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, Loaded, Session};
use harness_session::testing::{Change, Fault, Faults};
use harness_session::{FileSession, MemorySession, SyncPolicy};

use crate::scenarios::{Own, Scenario, Step, scenarios};
use crate::support::{Place, append, going_on, head, load, now, options, say};

/// The session in memory.
pub(crate) struct Model(MemorySession);

impl Model {
    /// What the file of a scenario holds before it begins.
    pub(crate) fn before(scenario: &Scenario) -> Self {
        let place = Place::with(&scenario.before);
        let model = Self(MemorySession::new());
        let Loaded { messages, open_calls, .. } = place.read().loaded;
        for message in &messages {
            model.append(&[Entry::Message(message)]);
        }
        for open in &open_calls {
            let (call, attempt, class) = (&open.call, open.attempt, &open.class);
            model.append(&[Entry::CallStarted { call, attempt, class }]);
        }
        model
    }

    fn append(&self, entries: &[Entry<'_>]) {
        now(self.0.append(&head(), entries, Durability::Flush)).unwrap();
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Append(entries, _) => entries.iter().for_each(|entry| self.append(&[entry.entry()])),
            Step::Replace(messages) => self.0 = self.replaced(messages),
            Step::Note(_) => {}
            Step::GoBack(_, entry) => {
                self.0.branch(Some(&EntryId::from("e1"))).unwrap();
                self.append(&[entry.entry()]);
            }
        }
    }

    /// A session of these messages, with the last states.
    fn replaced(&self, messages: &[Arc<Message>]) -> MemorySession {
        let replaced = of(messages);
        for (name, state) in &self.loaded().states {
            replaced.append_blocking(&head(), &[Entry::State { name, state }]).unwrap();
        }
        replaced
    }

    pub(crate) fn loaded(&self) -> Loaded {
        load(&self.0).unwrap()
    }

    /// What may be there when a crash comes during `step`: from nothing of it on to all of it.
    fn during(mut self, step: Option<&Step>) -> Vec<Loaded> {
        let mut possible = vec![self.loaded()];
        match step {
            Some(Step::Append(entries, _)) => possible.extend(entries.iter().map(|entry| {
                self.append(&[Own::entry(entry)]);
                self.loaded()
            })),
            Some(whole) => {
                self.take(whole);
                possible.push(self.loaded());
            }
            None => {}
        }
        possible
    }
}

fn of(messages: &[Arc<Message>]) -> MemorySession {
    let session = MemorySession::new();
    let entries: Vec<_> = messages.iter().map(Entry::Message).collect();
    now(session.append(&head(), &entries, Durability::Flush)).unwrap();
    session
}

/// What the run of a scenario without faults changes on the disk.
fn changes(scenario: &Scenario, sync: SyncPolicy) -> Vec<Change> {
    let place = Place::with(&scenario.before);
    let faults = Faults::none();
    let session = FileSession::open(place.path(), options().sync(sync).faults(&faults)).unwrap();
    let mut model = Model::before(scenario);
    for step in &scenario.steps {
        step.take(&session).unwrap();
        model.take(step);
        assert_eq!(load(&session).unwrap(), model.loaded(), "{}, without faults", scenario.name);
    }
    faults.changes()
}

/// Three places in a write: in its first byte, in the middle, before its last one.
fn offsets(change: Change) -> Vec<usize> {
    if let Change::Write { bytes } = change { vec![1, bytes / 2, bytes - 1] } else { Vec::new() }
}

#[test]
fn law_4_twelve_scenarios_survive_a_crash_at_every_change() {
    let all = scenarios();
    assert_eq!(all.len(), 12);
    let mut crashes = 0;
    for scenario in &all {
        for sync in [SyncPolicy::Never, SyncPolicy::WhenAsked] {
            for (at, change) in changes(scenario, sync).into_iter().enumerate() {
                let torn = offsets(change).into_iter().map(Fault::CrashTorn);
                for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
                    check_crash(scenario, sync, at, fault);
                    crashes += 1;
                }
            }
        }
    }
    assert!(crashes > 500, "{crashes}");
}

#[track_caller]
fn check_crash(scenario: &Scenario, sync: SyncPolicy, at: usize, fault: Fault) {
    let told = format!("{}, change {at}, {fault:?}, {sync:?}", scenario.name);
    let place = Place::with(&scenario.before);
    let faults = Faults::at(at, fault);
    let session = FileSession::open(place.path(), options().sync(sync).faults(&faults)).unwrap();
    let mut model = Model::before(scenario);
    let mut steps = scenario.steps.iter();
    let on_its_way = steps.by_ref().find(|step| {
        let died = step.take(&session).is_err();
        if !died {
            model.take(step);
        }
        died
    });
    drop(session);

    let mut session = place.open();
    let mut found = load(&session).unwrap();
    found.torn_tail = None;
    check_legal(&found, &told);
    let place_of = model.during(on_its_way).into_iter().position(|possible| possible == found);
    let Some(entries) = place_of else { panic!("{told}: {found:?}") };

    // Whoever goes on gives what was not stored once more.
    match on_its_way {
        Some(Step::Append(all, durability)) => {
            let rest: Vec<_> = all.iter().skip(entries).map(Own::entry).collect();
            session.append_blocking(&head(), &rest, *durability).unwrap();
        }
        Some(Step::GoBack(..)) if entries > 0 => {}
        Some(whole) => whole.take(&session).unwrap(),
        None => {}
    }
    steps.for_each(|step| step.take(&session).unwrap());
    let mut whole = Model::before(scenario);
    scenario.steps.iter().for_each(|step| whole.take(step));
    assert_eq!(load(&session).unwrap(), whole.loaded(), "{told}: the story goes on to its end");
    drop(session);
    session = place.open();
    assert_eq!(load(&session).unwrap(), whole.loaded(), "{told}: and is there when it is opened again");
}

/// Every result answers a call of the batch before it, once, in the order of the calls.
#[track_caller]
fn check_legal(loaded: &Loaded, told: &str) {
    let mut waiting = Vec::new();
    for message in &loaded.messages {
        if let Some(assistant) = message.as_assistant() {
            waiting = assistant.tool_calls().map(|call| call.id.clone()).collect();
        } else if let Some(result) = message.as_tool_result() {
            assert_eq!(waiting.first(), Some(&result.tool_call_id), "{told}");
            waiting.remove(0);
        }
    }
    assert!(loaded.open_calls.iter().all(|open| waiting.contains(&open.call)), "{told}");
}

/// A disk that is full or fails at one change: that step fails and counts as nothing, given again it is
/// stored once, and nothing else is lost.
#[test]
fn twelve_scenarios_survive_a_full_and_a_failing_disk_at_every_change() {
    for scenario in &scenarios() {
        for sync in [SyncPolicy::Never, SyncPolicy::WhenAsked] {
            for (at, change) in changes(scenario, sync).into_iter().enumerate() {
                for bytes in offsets(change).into_iter().chain([0, usize::MAX]) {
                    check_failure(scenario, sync, at, Fault::Full(bytes));
                    check_failure(scenario, sync, at, Fault::Broken(bytes));
                }
                check_lasting(scenario, sync, at, Fault::StaysFull(20));
                check_lasting(scenario, sync, at, Fault::StaysBroken(0));
            }
        }
    }
}

#[track_caller]
fn check_failure(scenario: &Scenario, sync: SyncPolicy, at: usize, fault: Fault) {
    let told = format!("{}, change {at}, {fault:?}, {sync:?}", scenario.name);
    let place = Place::with(&scenario.before);
    let faults = Faults::at(at, fault);
    let session = FileSession::open(place.path(), options().sync(sync).faults(&faults)).unwrap();
    let mut model = Model::before(scenario);
    let mut failures = 0;
    for step in &scenario.steps {
        if step.take(&session).is_err() {
            failures += 1;
            let mut kept = load(&session).unwrap();
            kept.torn_tail = None;
            check_legal(&kept, &told);
            let possible = match step {
                Step::Append(..) | Step::Note(_) => vec![model.loaded()],
                // One whose folder could not be synced is in place all the same.
                Step::Replace(messages) => vec![model.loaded(), load(&model.replaced(messages)).unwrap()],
                // Going back writes nothing, so that much is done.
                Step::GoBack(..) => vec![load(&of(&model.loaded().messages[..1])).unwrap()],
            };
            assert!(possible.contains(&kept), "{told}: {kept:?}");
            step.take(&session).unwrap();
        }
        model.take(step);
    }
    assert_eq!(failures, 1, "{told}: the change belongs to a step");
    drop(session);
    assert_eq!(load(&place.open()).unwrap(), model.loaded(), "{told}");
}

/// The disk goes on failing until it is mended; all steps that failed are given again then.
#[track_caller]
fn check_lasting(scenario: &Scenario, sync: SyncPolicy, at: usize, fault: Fault) {
    let told = format!("{}, change {at}, {fault:?}, {sync:?}", scenario.name);
    let place = Place::with(&scenario.before);
    let faults = Faults::at(at, fault);
    let session = FileSession::open(place.path(), options().sync(sync).faults(&faults)).unwrap();
    let mut model = Model::before(scenario);
    let failed = scenario.steps.iter().position(|step| {
        let failed = step.take(&session).is_err();
        if !failed {
            model.take(step);
        }
        failed
    });
    let failed = failed.expect(&told);
    for _ in 0..2 {
        assert!(say(&session, "no").is_err(), "{told}: the disk is still broken");
    }
    let on_disk = place.read().loaded;
    check_legal(&on_disk, &told);
    faults.mend();
    for step in &scenario.steps[failed..] {
        step.take(&session).unwrap();
        model.take(step);
    }
    for message in going_on(&model.loaded()) {
        append(&session, &[Entry::Message(&message)]).unwrap();
        model.append(&[Entry::Message(&message)]);
    }
    drop(session);
    assert_eq!(load(&place.open()).unwrap(), model.loaded(), "{told}");
}
