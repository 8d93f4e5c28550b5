//! Many threads on one session share syncs and their failures; entries that are only collected.

use std::collections::BTreeSet;
use std::thread;

use harness_core::outcome::TotalUsage;
use harness_core::port::{Durability, Entry, SessionError};
use harness_core::{Stop, StopReason};
use harness_session::testing::{Change, Fault, Faults};
use harness_session::{FileSession, SyncPolicy};

use crate::support::{Place, append, head, load, options, say, texts, user};

/// The changes of the first append to a new file: it is opened, written, synced, and so is its folder.
const FIRST: [Change; 4] = [Change::Open, Change::Write { bytes: 0 }, Change::Sync, Change::SyncFolder];
const FIRST_SYNC: usize = 2;

/// Eight threads append at once while the first sync lasts until the seven others wait; gives what each
/// append returned, the first thread's at the beginning.
fn eight_at_once(place: &Place, faults: &Faults) -> (FileSession, Vec<Result<(), SessionError>>) {
    let session = FileSession::open(place.path(), options().faults(faults)).unwrap();
    let outcomes = thread::scope(|scope| {
        let first = scope.spawn(|| safely(&session, "0"));
        while faults.steps() <= FIRST_SYNC {
            thread::yield_now();
        }
        let others: Vec<_> = (1..8)
            .map(|number: u8| {
                let session = session.clone();
                scope.spawn(move || safely(&session, &number.to_string()))
            })
            .collect();
        [first].into_iter().chain(others).map(|thread| thread.join().unwrap()).collect()
    });
    (session, outcomes)
}

fn safely(session: &FileSession, text: &str) -> Result<(), SessionError> {
    session.append_blocking(&head(), &[Entry::Message(&user(text))], Durability::Sync)
}

fn kinds(faults: &Faults) -> Vec<Change> {
    let size_matters_not = |change| if let Change::Write { .. } = change { FIRST[1] } else { change };
    faults.changes().into_iter().map(size_matters_not).collect()
}

#[track_caller]
fn check_holds(place: &Place, expected: &[u8]) {
    let found = texts(&place.read().loaded);
    assert_eq!(found.len(), expected.len(), "each once: {found:?}");
    let found: BTreeSet<_> = found.into_iter().collect();
    assert_eq!(found, expected.iter().map(u8::to_string).collect());
}

#[test]
fn appends_of_many_threads_share_one_write_and_one_sync() {
    let place = Place::new();
    let faults = Faults::none().lasting(FIRST_SYNC, 7);
    let (_, outcomes) = eight_at_once(&place, &faults);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(kinds(&faults), [&FIRST[..], &FIRST[1..3]].concat(), "seven appends, one write, one sync");
    check_holds(&place, &[0, 1, 2, 3, 4, 5, 6, 7]);
}

/// All who share a sync share its failure, and nothing of theirs counts.
#[test]
fn a_shared_sync_that_fails_fails_for_all_of_them() {
    for step in [FIRST.len(), FIRST.len() + 1] {
        let place = Place::new();
        let faults = Faults::at(step, Fault::Broken(100)).lasting(FIRST_SYNC, 7);
        let (session, outcomes) = eight_at_once(&place, &faults);
        assert_eq!(outcomes[0], Ok(()));
        assert!(outcomes[1..].iter().all(|outcome| *outcome == outcomes[1]), "{outcomes:?}");
        assert!(outcomes[1].is_err());
        assert_eq!(texts(&load(&session).unwrap()), ["0"]);
        for number in 1..8 {
            safely(&session, &number.to_string()).unwrap();
        }
        check_holds(&place, &[0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

/// Those who wait behind a batch that fails are not part of it: they are stored without it.
#[test]
fn appends_behind_a_batch_that_fails_are_stored_without_it() {
    let place = Place::new();
    let faults = Faults::at(FIRST_SYNC, Fault::Broken(0)).lasting(FIRST_SYNC, 7);
    let (session, outcomes) = eight_at_once(&place, &faults);
    assert_eq!(outcomes[0].as_ref().unwrap_err().kind.as_ref(), "session.sync_failed");
    assert!(outcomes[1..].iter().all(Result::is_ok), "{outcomes:?}");
    check_holds(&place, &[1, 2, 3, 4, 5, 6, 7]);
    assert!(session.header().is_some(), "the header that failed with the first is written by the others");
}

#[test]
fn a_refused_entry_leaves_the_others_of_its_batch_alone() {
    let place = Place::new();
    let mut limits = harness_session::Limits::default();
    limits.line_bytes = 1_000;
    let faults = Faults::none().lasting(FIRST_SYNC, 1);
    let session = FileSession::open(place.path(), options().limits(limits).faults(&faults)).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| safely(&session, "0"));
        while faults.steps() <= FIRST_SYNC {
            thread::yield_now();
        }
        assert_eq!(&*safely(&session, &"x".repeat(2_000)).unwrap_err().kind, "session.line_too_long");
        safely(&session, "1").unwrap();
        first.join().unwrap().unwrap();
    });
    check_holds(&place, &[0, 1]);
}

/// Everything that threads do at once is there once, each thread's entries in their order.
#[test]
fn threads_that_append_and_load_at_will_lose_nothing() {
    for sync in SyncPolicy::ALL {
        let place = Place::new();
        let session = FileSession::open(place.path(), options().sync(sync)).unwrap();
        thread::scope(|scope| {
            for writer in 0..4 {
                let session = session.clone();
                scope.spawn(move || {
                    for number in 0..25 {
                        safely(&session, &format!("{writer} {number}")).unwrap();
                        let seen = texts(&load(&session).unwrap());
                        assert!(seen.contains(&format!("{writer} {number}")), "{sync:?}");
                    }
                });
            }
        });
        let stored = texts(&load(&session).unwrap());
        for writer in 0..4 {
            let of_writer = stored.iter().filter(|text| text.starts_with(&format!("{writer} ")));
            let expected = (0..25).map(|number| format!("{writer} {number}"));
            assert!(of_writer.cloned().eq(expected), "{sync:?}: {stored:?}");
        }
    }
}

#[test]
fn collected_entries_are_written_when_they_are_many_or_the_run_ends() {
    let place = Place::new();
    let session = FileSession::open(place.path(), options().sync(SyncPolicy::Buffered)).unwrap();
    say(&session, "one").unwrap();
    assert!(!place.path().exists(), "an entry is only collected");
    say(&session, &"x".repeat(64 * 1024)).unwrap();
    assert_eq!(texts(&place.read().loaded).len(), 2, "64 KiB are written");
    say(&session, "three").unwrap();
    assert_eq!(texts(&place.read().loaded).len(), 2);
    let (stop, usage) = (Stop::from(StopReason::AnswerFinalized), TotalUsage::default());
    append(&session, &[Entry::RunEnd { stop: &stop, usage: &usage }]).unwrap();
    assert_eq!(texts(&place.read().loaded).len(), 3, "the end of a run is written");
    say(&session, "four").unwrap();
    safely(&session, "five").unwrap();
    assert_eq!(texts(&place.read().loaded).len(), 5, "what asks to be safe is written");
    say(&session, "six").unwrap();
    assert_eq!(load(&session).unwrap().messages.len(), 6, "a load sees all");
    say(&session, "seven").unwrap();
    drop(session);
    assert_eq!(texts(&place.read().loaded).len(), 7, "dropping writes");
}

#[test]
fn collected_entries_stay_when_their_write_fails() {
    let place = Place::new();
    let faults = Faults::at(1, Fault::StaysFull(30));
    let session =
        FileSession::open(place.path(), options().sync(SyncPolicy::Buffered).faults(&faults)).unwrap();
    say(&session, "one").unwrap();
    say(&session, "two").unwrap();
    assert_eq!(&*safely(&session, "three").unwrap_err().kind, "session.write_failed");
    assert_eq!(&*load(&session).unwrap_err().kind, "session.write_failed");
    faults.mend();
    safely(&session, "three").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three"]);
}

#[test]
fn names_of_policies_are_read_back() {
    for policy in SyncPolicy::ALL {
        assert_eq!(SyncPolicy::named(policy.as_str()), Some(policy));
    }
}
