//! Crash points and broken disks: every change to the disk of a scripted session, broken in every way.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Durability, Entry, SessionError};
use harness_core::tool::RetryClass;
use harness_session::testing::{Fault, Faults};
use harness_session::{FileSession, SyncPolicy};

use crate::support::{Place, append, asks, bare, call, going_on, head, load, options, result, user};

/// Appends a whole run entry by entry as far as it goes; gives the messages that were acknowledged, and the
/// ones of the append that was not.
fn script(session: &FileSession) -> (Vec<Arc<Message>>, Vec<Arc<Message>>) {
    let (call, class) = (call("c2"), RetryClass::Unsafe);
    let (first, second) = (result("c1", "1"), result("c2", "2"));
    let (go, asked, end) = (user("go"), asks(&["c1", "c2"]), user(&"long ".repeat(2_000)));
    let batches: [&[Entry<'_>]; 6] = [
        &[Entry::Message(&go)],
        &[Entry::Message(&asked)],
        &[Entry::CallStarted { call: &call.id, attempt: 1, class: &class }],
        &[Entry::CallFinished { call: &call.id, attempt: 1, class: &class, result: &second }],
        &[Entry::Message(&first), Entry::Message(&second)],
        &[Entry::Message(&end)],
    ];
    let mut acknowledged = Vec::new();
    for batch in batches {
        let messages = batch.iter().filter_map(|entry| {
            if let Entry::Message(message) = entry { Some(Arc::clone(message)) } else { None }
        });
        if session.append_blocking(&head(), batch, Durability::Sync).is_err() {
            return (acknowledged, messages.collect());
        }
        acknowledged.extend(messages);
    }
    (acknowledged, Vec::new())
}

/// How many changes to the disk the script makes, and which of them are writes.
fn steps(content: Option<&str>, sync: SyncPolicy) -> Faults {
    let place = content.map_or_else(Place::new, Place::with);
    let faults = Faults::none();
    let session = FileSession::open(place.path(), options().sync(sync).faults(&faults)).unwrap();
    script(&session);
    faults
}

/// Files to begin with: none, one that lacks its last line feed, one with a torn tail.
fn beginnings() -> [Option<String>; 3] {
    let line = bare("before");
    [None, Some(line.trim_end().to_owned()), Some(format!("{line}{{\"role\":\"us"))]
}

/// Law 4: whatever the moment of a crash, what was acknowledged is there, in order; of the append on its way
/// a first part may be; and the session goes on.
#[test]
fn law_4_every_crash_point_leaves_a_durable_prefix() {
    let mut crashes = 0;
    for content in beginnings() {
        for sync in [SyncPolicy::Never, SyncPolicy::WhenAsked] {
            for step in 0..steps(content.as_deref(), sync).steps() {
                for fault in [
                    Fault::CrashBefore,
                    Fault::CrashTorn(1),
                    Fault::CrashTorn(150),
                    Fault::CrashTorn(350),
                    Fault::CrashAfter,
                ] {
                    check_crash(content.as_deref(), sync, step, fault);
                    crashes += 1;
                }
            }
        }
    }
    assert!(crashes > 200, "{crashes}");
}

#[track_caller]
fn check_crash(content: Option<&str>, sync: SyncPolicy, step: usize, fault: Fault) {
    let place = content.map_or_else(Place::new, Place::with);
    let session =
        FileSession::open(place.path(), options().sync(sync).faults(&Faults::at(step, fault))).unwrap();
    let (acknowledged, on_the_way) = script(&session);
    drop(session);

    let session = place.open();
    let before = usize::from(content.is_some());
    let kept = load(&session).unwrap().messages.split_off(before);
    let told = format!("step {step}, {fault:?}, {sync:?}, {content:?}");
    let (sure, perhaps) = kept.split_at_checked(acknowledged.len()).expect(&told);
    assert_eq!(sure, acknowledged, "{told}");
    assert!(on_the_way.starts_with(perhaps), "{told}");

    let added = going_on(&load(&session).unwrap());
    append(&session, &added.iter().map(Entry::Message).collect::<Vec<_>>()).unwrap();
    let after = load(&session).unwrap();
    assert_eq!(after.messages[before..], [kept, added].concat(), "{told}");
    assert_eq!(after.torn_tail, None, "{told}");
}

/// Design 4.5: a failed append leaves nothing behind, and given again it is stored once.
#[test]
fn a_failed_append_counts_as_nothing_and_can_be_given_again() {
    for content in beginnings() {
        for sync in [SyncPolicy::Never, SyncPolicy::WhenAsked] {
            let whole = steps(content.as_deref(), sync);
            for step in 0..whole.steps() {
                for bytes in [0, 1, 150, 350, usize::MAX] {
                    check_failure(content.as_deref(), sync, step, Fault::Full(bytes));
                    check_failure(content.as_deref(), sync, step, Fault::Broken(bytes));
                }
            }
        }
    }
}

#[track_caller]
fn check_failure(content: Option<&str>, sync: SyncPolicy, step: usize, fault: Fault) {
    let place = content.map_or_else(Place::new, Place::with);
    let session =
        FileSession::open(place.path(), options().sync(sync).faults(&Faults::at(step, fault))).unwrap();
    let (acknowledged, failed) = script(&session);
    let told = format!("step {step}, {fault:?}, {sync:?}, {content:?}");
    let before = usize::from(content.is_some());
    let kept = load(&session).unwrap().messages.split_off(before);
    assert_eq!(kept, acknowledged, "{told}");

    let again: Vec<_> = failed.iter().map(Entry::Message).collect();
    session.append_blocking(&head(), &again, Durability::Sync).unwrap();
    let added = going_on(&load(&session).unwrap());
    append(&session, &added.iter().map(Entry::Message).collect::<Vec<_>>()).unwrap();
    drop(session);
    let expected: Vec<_> = acknowledged.into_iter().chain(failed).chain(added).collect();
    assert_eq!(load(&place.open()).unwrap().messages.split_off(before), expected, "{told}");
}

/// After a failed sync the system may believe that it has written what it has not: what was acknowledged
/// since the last good one is written again before the next one counts.
#[test]
fn entries_before_a_failed_sync_are_written_again() {
    let place = Place::new();
    let texts: Vec<_> = (0..40).map(|number| format!("{number} {}", "x".repeat(4_000))).collect();
    let messages: Vec<_> = texts.iter().map(|text| user(text)).collect();
    // The file is opened; one write for each message that is flushed, one for the last, then its sync.
    let faults = Faults::at(messages.len() + 1, Fault::Broken(0));
    let session = FileSession::open(place.path(), options().faults(&faults)).unwrap();
    let (last, flushed) = messages.split_last().unwrap();
    for message in flushed {
        session.append_blocking(&head(), &[Entry::Message(message)], Durability::Flush).unwrap();
    }
    let before = faults.steps();
    let outcome = session.append_blocking(&head(), &[Entry::Message(last)], Durability::Sync);
    assert_eq!(&*outcome.unwrap_err().kind, "session.sync_failed");
    assert_eq!(faults.steps() - before, 2, "a write and a sync");
    let before = faults.steps();
    session.append_blocking(&head(), &[Entry::Message(last)], Durability::Sync).unwrap();
    assert_eq!(faults.steps() - before, 5, "a cut, a write, the writing again, a sync, the folder's");
    assert_eq!(load(&session).unwrap().messages, messages);
    let before = faults.steps();
    session.append_blocking(&head(), &[Entry::Message(last)], Durability::Sync).unwrap();
    assert_eq!(faults.steps() - before, 2, "a write and a sync again");
}

#[test]
fn a_full_disk_is_told_with_what_to_do() {
    let place = Place::new();
    let session = FileSession::open(place.path(), options().faults(&Faults::at(1, Fault::Full(20)))).unwrap();
    let message = user("one");
    let outcome = session.append_blocking(&head(), &[Entry::Message(&message)], Durability::Flush);
    let SessionError { kind, message, .. } = outcome.unwrap_err();
    assert_eq!(&*kind, "session.write_failed");
    insta::assert_snapshot!(message.replace(place.path().to_str().unwrap(), "FILE"), @"cannot write to session `FILE`: no storage space (free some space; what was acknowledged is safe, and the next append tries again)");
}

/// The old transcript or the new one, at every moment of a replacement.
#[test]
fn law_4_every_crash_point_of_a_replacement_leaves_the_old_or_the_new() {
    let faults =
        [Fault::CrashBefore, Fault::CrashTorn(100), Fault::CrashAfter, Fault::Full(100), Fault::Broken(0)];
    let (old, new) = ([user("one"), user("two")], [user("summary"), user("two")]);
    for step in 0..6 {
        for fault in faults {
            let place = Place::new();
            let entries: Vec<_> = old.iter().map(Entry::Message).collect();
            place.open().append_blocking(&head(), &entries, Durability::Flush).unwrap();
            let session =
                FileSession::open(place.path(), options().faults(&Faults::at(step, fault))).unwrap();
            let outcome = session.replace_blocking(&head(), &new);
            drop(session);
            let session = place.open();
            let kept = load(&session).unwrap().messages;
            assert!(kept == new || (outcome.is_err() && kept == old), "step {step}, {fault:?}: {kept:?}");
            let mut files = place.files();
            // A process that ends has no time to remove the file that it has just made.
            files.retain(|name| fault != Fault::CrashAfter || name.starts_with("chat."));
            assert_eq!(files, ["chat.jsonl", "chat.jsonl.lock"], "step {step}, {fault:?}");
        }
    }
}
