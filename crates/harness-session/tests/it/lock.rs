//! One owner at a time.

use std::path::Path;

use harness_core::Time;
use harness_core::port::SessionError;
use harness_session::{Error, FileSession};

use crate::support::{Place, options, say, texts};

#[track_caller]
fn check_locked(path: &Path, pid: Option<u32>) {
    let error = FileSession::open(path, options()).unwrap_err();
    assert!(
        matches!(&error, Error::Locked { owner, .. } if owner.as_ref().map(|owner| owner.pid) == pid),
        "{error:?}"
    );
}

#[test]
fn a_second_owner_is_told_who_the_first_is_and_what_to_do() {
    let place = Place::new();
    let first = place.open();
    say(&first, "one").unwrap();
    let error = FileSession::open(place.path(), options()).unwrap_err();
    assert_eq!(error.kind(), "session.locked");
    let told = SessionError::from(error);
    let own = std::process::id().to_string();
    let text = told.message.replace(&own, "PID").replace(place.folder().to_str().unwrap(), "");
    let (text, since) = text.split_once(" since ").unwrap();
    let (since, hint) = since.split_once(' ').unwrap();
    assert!(Time::parse_iso(since).is_some(), "{since}");
    let (text, host) = text.split_once(" of host ").unwrap();
    assert!(host.len() > 2, "{host}");
    let text = format!("{text} of host HOST since TIME {hint}");
    insta::assert_snapshot!(text, @"session `/chat.jsonl` is in use by process PID of host HOST since TIME (wait until that process is done, end it, or use another session file; the lock is freed when its owner ends)");
    assert_eq!(texts(&place.read().loaded), ["one"], "reading needs no lock");
}

#[test]
fn the_lock_ends_with_its_owner_and_leaves_nothing_behind() {
    let place = Place::new();
    for count in 0..3 {
        let session = place.open();
        check_locked(&place.path(), Some(std::process::id()));
        say(&session, &format!("{count}")).unwrap();
        drop(session);
        assert_eq!(place.files(), ["chat.jsonl"]);
    }
}

#[test]
fn a_lock_file_without_an_owner_is_no_lock() {
    let place = Place::new();
    std::fs::write(place.beside(".lock"), "{\"pid\":4000000,\"host\":\"elsewhere\"}\n").unwrap();
    std::fs::write(place.folder().join(".chat.jsonl-x1y2z3.tmp"), "half of a replacement").unwrap();
    let session = place.open();
    let left_by = session.left_by().unwrap();
    assert_eq!((left_by.pid, &*left_by.host), (4_000_000, "elsewhere"), "the owner before was killed");
    assert_eq!(place.files(), ["chat.jsonl.lock"], "what it left unfinished is gone");
    check_locked(&place.path(), Some(std::process::id()));
    drop(session);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_lock_holds_for_every_way_to_the_file() {
    let place = Place::new();
    let link = place.folder().join("link.jsonl");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let session = FileSession::open(&link, options()).unwrap();
    check_locked(&place.path(), Some(std::process::id()));
    say(&session, "through a link to a file that was not there").unwrap();
    assert!(place.path().is_file());
    check_locked(&place.folder().join(".").join("link.jsonl"), Some(std::process::id()));
}

#[test]
fn a_replaced_file_is_still_owned() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    session.replace_blocking(&crate::support::head(), &[]).unwrap();
    check_locked(&place.path(), Some(std::process::id()));
}

#[test]
fn many_openers_at_once_have_one_winner() {
    let place = Place::new();
    for _ in 0..20 {
        let path = place.path();
        let winners: Vec<_> = std::thread::scope(|scope| {
            let openers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| FileSession::open(&path, options()))).collect();
            openers.into_iter().filter_map(|opener| opener.join().unwrap().ok()).collect()
        });
        assert_eq!(winners.len(), 1);
    }
}
