//! Values as files: their names and permissions, damage, crashes and broken disks.

use std::path::PathBuf;

use harness_core::Json;
use harness_host::{Storage, StorageError};
use harness_session::storage::FolderStorage;
use harness_session::testing::{Fault, Faults};

use crate::support::{Place, now, tree};

fn folder(place: &Place) -> PathBuf {
    place.folder().join("values")
}

fn open(place: &Place) -> FolderStorage {
    FolderStorage::open(folder(place)).unwrap()
}

fn told(place: &Place, error: StorageError) -> String {
    format!("{}: {}", error.kind, error.message.replace(folder(place).to_str().unwrap(), "FOLDER"))
}

#[test]
fn files_are_their_owners_alone() {
    let place = Place::new();
    let store = open(&place);
    now(store.set("Plan/a", &Json::null())).unwrap();
    now(store.set(&"k".repeat(250), &Json::null())).unwrap();
    let k = "k".repeat(200);
    let long = format!("{k}~ 700");
    let rest = format!("{k}~/{}.json 600", "k".repeat(50));
    assert_eq!(tree(&folder(&place)), ["%50lan%2fa.json 600", &long, &rest, "lock 600"]);
    now(store.set(&"k".repeat(1_001), &Json::null())).unwrap_err();
}

#[test]
fn a_damaged_value_is_never_an_absent_one() {
    let place = Place::new();
    let store = open(&place);
    for content in [&b""[..], b"\0\0\0\0", b"{\"a\":", b"\"a\" \"secret\"", b"\"\xff\""] {
        std::fs::write(folder(&place).join("k.json"), content).unwrap();
        let error = now(store.get("k")).unwrap_err();
        assert_eq!(&*error.kind, "storage.corrupt");
        assert!(!error.message.contains("secret"), "{error}");
        assert!(now(store.get_many(&["k".to_owned()])).is_err());
        assert_eq!(now(store.list("")), Ok(vec!["k".to_owned()]));
    }
    std::fs::write(folder(&place).join("k.json"), "{\"a\":").unwrap();
    insta::assert_snapshot!(told(&place, now(store.get("k")).unwrap_err()), @"storage.corrupt: stored value `FOLDER/k.json` is damaged: it is not one JSON value (line 1, column 5) (remove the file, or put a good copy in its place; it was left as it is)");
    now(store.set("k", &Json::null())).unwrap();
    assert_eq!(now(store.get("k")), Ok(Some(Json::null())), "a write mends it");
}

#[test]
fn a_value_that_is_too_large_is_neither_written_nor_read() {
    let place = Place::new();
    let value = Json::string(&"x".repeat(98));
    let small = open(&place).value_bytes(99);
    insta::assert_snapshot!(told(&place, now(small.set("k", &value)).unwrap_err()), @"storage.too_large: stored value `k.json` has 100 bytes, the limit is 99 bytes (raise the limit of the store, or store less)");
    now(open(&place).value_bytes(100).set("k", &value)).unwrap();
    assert_eq!(&*now(small.get("k")).unwrap_err().kind, "storage.too_large");
    assert_eq!(now(open(&place).value_bytes(100).get("k")), Ok(Some(value)), "what is written is read");
}

#[test]
fn what_was_left_unfinished_is_removed_and_other_files_are_not() {
    let place = Place::new();
    drop(open(&place));
    for name in [".k.json-a1B2c3.tmp", ".hidden.tmp", "notes.txt", "K.json"] {
        std::fs::write(folder(&place).join(name), "1").unwrap();
    }
    let store = open(&place);
    assert_eq!(now(store.list("")), Ok(Vec::new()), "none of them is a value");
    let left: Vec<_> =
        tree(&folder(&place)).into_iter().map(|file| file.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(left, [".hidden.tmp", "K.json", "lock", "notes.txt"]);
}

/// The old value or the new one, at every moment of a write; the value or none, at every moment of a removal.
#[test]
fn law_4_every_crash_point_leaves_the_old_value_or_the_new_one() {
    let (old, new) = (Json::string("old"), Json::string(&"new ".repeat(100)));
    let faults = |step| {
        let moments = [
            Fault::CrashBefore,
            Fault::CrashTorn(1),
            Fault::CrashTorn(200),
            Fault::CrashTorn(402),
            Fault::CrashAfter,
            Fault::Full(100),
            Fault::Broken(100),
        ];
        moments.map(|fault| (fault, Faults::at(step, fault)))
    };
    for step in 0..5 {
        for (fault, faults) in faults(step) {
            let place = Place::new();
            now(open(&place).set("k", &old)).unwrap();
            let outcome = now(open(&place).faults(&faults).set("k", &new));
            assert!(faults.steps() > step, "step {step} is taken");
            let kept = now(open(&place).get("k")).unwrap().unwrap();
            assert!(kept == new || (outcome.is_err() && kept == old), "step {step}, {fault:?}: {kept:?}");
            now(open(&place).set("k", &old)).unwrap();
            assert_eq!(now(open(&place).get("k")), Ok(Some(old.clone())), "and it goes on");
            assert_eq!(tree(&folder(&place)), ["k.json 600", "lock 600"], "step {step}, {fault:?}");
        }
    }
    for step in 0..2 {
        for (fault, faults) in faults(step) {
            let place = Place::new();
            now(open(&place).set("k", &old)).unwrap();
            let outcome = now(open(&place).faults(&faults).delete("k"));
            let kept = now(open(&place).get("k")).unwrap();
            assert!(kept.is_none() || (outcome.is_err() && kept == Some(old.clone())), "{step} {fault:?}");
        }
    }
}

#[test]
fn many_writers_at_once_leave_whole_values() {
    let place = Place::new();
    let store = open(&place);
    let value = |number: usize| Json::string(&number.to_string().repeat(2_000));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let store = open(&place);
            scope.spawn(move || {
                for round in 0..25 {
                    now(store.set(&format!("own {number}"), &value(round))).unwrap();
                    now(store.set("shared", &value(number))).unwrap();
                }
            });
        }
    });
    for number in 0..4 {
        assert_eq!(now(store.get(&format!("own {number}"))), Ok(Some(value(24))));
    }
    let shared = now(store.get("shared")).unwrap().unwrap();
    assert!((0..4).any(|number| shared == value(number)));
}
