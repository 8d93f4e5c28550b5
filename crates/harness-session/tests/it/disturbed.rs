//! What other programs do to a session file and its lock while it is in use.

use std::fs::{self, TryLockError};
use std::os::unix::fs::MetadataExt as _;

use harness_core::port::{Durability, Entry, Session as _};
use harness_session::testing::{Fault, Faults};
use harness_session::{Disturbance, Error, FileSession};

use crate::support::{Place, append, head, load, options, say, texts, user};

#[track_caller]
fn check_refused(session: &FileSession, kind: &str, text: &str) {
    let error = say(session, "refused").unwrap_err();
    assert_eq!(&*error.kind, kind, "{error}");
    assert!(error.message.contains(text), "{error}");
}

#[test]
fn fault_29_a_hard_link_is_no_way_to_a_second_writer() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    let link = place.folder().join("other.jsonl");
    fs::hard_link(place.path(), &link).unwrap();
    let error = FileSession::open(&link, options()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    say(&session, "two").unwrap();
    drop(session);
    let other = FileSession::open(&link, options()).unwrap();
    assert_eq!(texts(&load(&other).unwrap()), ["one", "two"]);
    assert!(FileSession::open(place.path(), options()).is_err(), "the link's owner is the owner of both");
}

/// The lock is that of the file from its first byte on, not only of one that was there before.
#[test]
fn fault_29_a_removed_lock_file_is_no_way_to_a_second_writer() {
    let place = Place::new();
    let session = place.open();
    for text in ["one", "two"] {
        say(&session, text).unwrap();
        fs::remove_file(place.beside(".lock")).unwrap();
        let error = FileSession::open(place.path(), options()).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    }
    say(&session, "three").unwrap();
    assert!(place.beside(".lock").exists(), "an append makes the lock file again");
    assert_eq!(texts(&place.read().loaded), ["one", "two", "three"]);
    drop(session);
    assert_eq!(place.files(), ["chat.jsonl"]);
}

#[test]
fn fault_29_who_lost_the_lock_before_the_first_append_writes_nothing() {
    let place = Place::new();
    let session = place.open();
    fs::remove_file(place.beside(".lock")).unwrap();
    let second = place.open();
    check_refused(&session, "session.locked", "in use by process");
    say(&second, "mine").unwrap();
    drop(session);
    assert!(place.beside(".lock").exists(), "the lock file of the second owner stays");
    drop(second);
    assert_eq!(texts(&place.read().loaded), ["mine"]);
}

#[test]
fn fault_29_a_file_written_anew_is_locked_before_it_has_its_name() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    session.replace_blocking(&head(), &[user("all")]).unwrap();
    let link = place.folder().join("other.jsonl");
    fs::hard_link(place.path(), &link).unwrap();
    assert!(FileSession::open(&link, options()).is_err());
    say(&session, "two").unwrap();
    assert_eq!(texts(&place.read().loaded), ["all", "two"]);
}

/// Whichever file a failed replacement leaves, the owner has its lock and goes on with it.
#[test]
fn fault_29_after_a_replacement_that_failed_the_file_in_place_is_owned() {
    for step in 0..5 {
        for fault in [Fault::Full(10), Fault::Broken(0)] {
            let place = Place::new();
            say(&place.open(), "one").unwrap();
            let faults = Faults::at(step, fault);
            let session = FileSession::open(place.path(), options().faults(&faults)).unwrap();
            assert!(session.replace_blocking(&head(), &[user("all")]).is_err(), "step {step}");
            let second = fs::File::open(place.path()).unwrap().try_lock();
            assert!(matches!(second, Err(TryLockError::WouldBlock)), "step {step}, {fault:?}: {second:?}");
            say(&session, "two").unwrap();
            assert_eq!(load(&session).unwrap().messages.len(), 2, "step {step}, {fault:?}");
        }
    }
}

#[test]
fn fault_31_a_removed_session_is_written_again_and_said() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    fs::remove_file(place.path()).unwrap();
    say(&session, "two").unwrap();
    let notice = session.notice().expect("the removal is said");
    assert_eq!(&*notice.kind, "session.removed");
    assert_eq!(session.notice(), None, "once");
    assert_eq!(texts(&place.read().loaded), ["one", "two"]);
    assert_eq!(fs::metadata(place.path()).unwrap().mode() & 0o777, 0o600);
    let link = place.folder().join("other.jsonl");
    fs::hard_link(place.path(), &link).unwrap();
    assert!(FileSession::open(&link, options()).is_err(), "the new file is locked");
    say(&session, "three").unwrap();
    drop(session);
    assert_eq!(texts(&load(&place.open()).unwrap()), ["one", "two", "three"]);
}

/// A load does not take the place of what is open for an empty session.
#[test]
fn fault_31_a_load_after_a_removal_shows_what_was_stored() {
    let place = Place::new();
    say(&place.open(), "one").unwrap();
    let session = place.open();
    fs::remove_file(place.path()).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one"]);
    say(&session, "two").unwrap();
    assert_eq!(texts(&place.read().loaded), ["one", "two"]);
}

#[test]
fn fault_31_a_session_whose_folder_is_gone_is_a_failed_append() {
    let place = Place::new();
    let folder = place.folder().join("sub");
    let session = FileSession::open(folder.join("chat.jsonl"), options()).unwrap();
    say(&session, "one").unwrap();
    fs::remove_dir_all(&folder).unwrap();
    for _ in 0..2 {
        assert!(say(&session, "two").is_err(), "nothing is acknowledged that is nowhere");
    }
    fs::create_dir(&folder).unwrap();
    say(&session, "two").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two"]);
}

#[test]
fn fault_31_a_truncated_session_takes_no_more_entries() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    let length = fs::metadata(place.path()).unwrap().len();
    fs::File::options().write(true).open(place.path()).unwrap().set_len(20).unwrap();
    let text = format!("was truncated from {length} to 20 bytes");
    check_refused(&session, "session.disturbed", &text);
    check_refused(&session, "session.disturbed", &text);
    assert!(load(&session).is_err(), "a shorter conversation is not shown as if nothing had happened");
    assert_eq!(fs::metadata(place.path()).unwrap().len(), 20);
}

#[test]
fn fault_31_a_replaced_or_added_to_session_takes_no_more_entries() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    let text = place.text();
    fs::remove_file(place.path()).unwrap();
    fs::write(place.path(), &text).unwrap();
    check_refused(&session, "session.disturbed", "was replaced by another file");
    assert_eq!(place.text(), text);
    drop(session);
    let session = place.open();
    say(&session, "two").unwrap();
    let before = place.text();
    fs::write(place.path(), format!("{before}\n")).unwrap();
    check_refused(&session, "session.disturbed", "grew from");
    let error = session.replace_blocking(&head(), &[]).unwrap_err();
    assert!(matches!(error, Error::Disturbed { how: Disturbance::Grown { .. }, .. }), "{error:?}");
}

/// Every moment at which writing a removed file again can break: the next append has all of it.
#[test]
fn fault_31_a_restoration_that_breaks_is_done_again() {
    let restore = |faults: &Faults| {
        let place = Place::new();
        say(&place.open(), "one").unwrap();
        let session = FileSession::open(place.path(), options().faults(faults)).unwrap();
        load(&session).unwrap();
        fs::remove_file(place.path()).unwrap();
        (append(&session, &[Entry::Message(&user("two"))]), session, place)
    };
    let none = Faults::none();
    restore(&none).0.unwrap();
    assert!(none.steps() >= 5, "opened, written, synced, renamed, its folder synced");
    for step in 0..none.steps() - 1 {
        for fault in [Fault::Full(10), Fault::Broken(0)] {
            let (outcome, session, place) = restore(&Faults::at(step, fault));
            assert!(outcome.is_err(), "step {step}, {fault:?}");
            session.append_blocking(&head(), &[Entry::Message(&user("two"))], Durability::Sync).unwrap();
            assert_eq!(texts(&place.read().loaded), ["one", "two"], "step {step}, {fault:?}");
        }
    }
}
