//! Artifacts as files: where they lie, damage, crashes and broken disks, ends.

use std::path::PathBuf;

use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactStore, Sensitivity, StorageError};
use harness_session::artifact::{FolderArtifacts, MemoryArtifacts};
use harness_session::testing::{Fault, Faults};

use crate::support::{Place, now, tree};

const NOW: Time = Time(1_767_225_600_000);

/// The hash of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn folder(place: &Place) -> PathBuf {
    place.folder().join("artifacts")
}

fn open(place: &Place) -> FolderArtifacts {
    FolderArtifacts::open(folder(place)).unwrap()
}

fn meta(owner: &str, ends: Option<i64>) -> ArtifactMeta {
    let mut meta = ArtifactMeta::default();
    meta.owner = Some(SessionId::from(owner));
    meta.created_at = NOW;
    meta.expires_at = ends.map(|after| Time(NOW.0 + after));
    meta
}

fn put(store: &impl ArtifactStore, bytes: &[u8]) -> Result<ArtifactId, StorageError> {
    now(store.put(bytes, meta("s1", None)))
}

fn get(store: &impl ArtifactStore, id: &ArtifactId) -> Result<Option<Vec<u8>>, StorageError> {
    let part = now(store.read(id, 0..u64::MAX, None, NOW))?;
    Ok(part.map(|part| part.bytes.to_vec()))
}

#[test]
fn contents_lie_two_folders_deep_and_are_their_owners_alone() {
    let place = Place::new();
    let store = open(&place);
    let id = put(&store, b"hello").unwrap();
    assert_eq!(id.as_str(), format!("sha256:{HELLO}"));
    now(store.put(b"hello", meta("s2", Some(5)))).unwrap();
    let content = format!("2c/f2/{HELLO} 600");
    let notes = format!("2c/f2/{HELLO}.json 600");
    assert_eq!(tree(&folder(&place)), ["2c 700", "2c/f2 700", &content, &notes, "lock 600"]);
    let notes = std::fs::read_to_string(folder(&place).join(format!("2c/f2/{HELLO}.json"))).unwrap();
    insta::assert_snapshot!(notes, @r#"{"version":1,"holders":[{"owner":"s1","mediaType":"","label":"","sensitivity":"internal","size":5,"createdAt":1767225600000},{"owner":"s2","mediaType":"","label":"","sensitivity":"internal","size":5,"createdAt":1767225600000,"expiresAt":1767225600005}]}"#);
}

#[test]
fn bytes_that_do_not_have_their_hash_are_an_error_until_they_are_stored_again() {
    let place = Place::new();
    let store = open(&place);
    let id = put(&store, b"hello").unwrap();
    let content = folder(&place).join(format!("2c/f2/{HELLO}"));
    let damages: [&dyn Fn(); 3] = [
        &|| std::fs::write(&content, b"jello").unwrap(),
        &|| std::fs::write(&content, b"").unwrap(),
        &|| std::fs::remove_file(&content).unwrap(),
    ];
    for damage in damages {
        damage();
        let error = get(&store, &id).unwrap_err();
        assert_eq!(&*error.kind, "artifact.corrupt");
        assert!(error.message.contains(HELLO), "{error}");
        put(&store, b"hello").unwrap();
        assert_eq!(get(&store, &id), Ok(Some(b"hello".to_vec())));
    }
    std::fs::write(folder(&place).join(format!("2c/f2/{HELLO}.json")), "{").unwrap();
    assert_eq!(&*get(&store, &id).unwrap_err().kind, "artifact.corrupt");
    assert_eq!(now(store.delete(&id)), Ok(true), "what is damaged can be removed");
    assert_eq!(get(&store, &id), Ok(None));
}

#[test]
fn what_is_too_large_is_refused_with_its_size() {
    let place = Place::new();
    let (files, memory) = (open(&place).most_bytes(5), MemoryArtifacts::new().most_bytes(5));
    put(&files, b"12345").unwrap();
    put(&memory, b"12345").unwrap();
    for error in [put(&files, b"123456").unwrap_err(), put(&memory, b"123456").unwrap_err()] {
        assert_eq!(&*error.kind, "artifact.too_large");
        assert!(error.message.contains("6 bytes") && error.message.contains("limit is 5 bytes"), "{error}");
    }
}

#[test]
fn fault_35_artifacts_in_memory_have_a_bound_together_and_are_their_owners() {
    let store = MemoryArtifacts::new().total_bytes(6);
    let secret = |owner: &str| {
        let mut meta = meta(owner, None);
        meta.sensitivity = Sensitivity::Restricted;
        meta
    };
    let id = now(store.put(b"abcd", secret("a"))).unwrap();
    assert_eq!(now(store.put(b"abcd", secret("b"))).unwrap(), id, "the same bytes are kept once");
    for (who, sees) in [("a", true), ("b", true), ("c", false)] {
        let part = now(store.read(&id, 0..4, Some(&SessionId::from(who)), Time(0))).unwrap();
        assert_eq!(part.is_some(), sees, "{who}");
    }
    let error = now(store.put(b"xyz", meta("a", None))).unwrap_err();
    assert_eq!(&*error.kind, "artifact.full");
    assert!(now(store.delete(&id)).unwrap());
    now(store.put(b"xyz", meta("a", None))).unwrap();
}

#[test]
fn a_purge_removes_what_nobody_holds_any_more() {
    let place = Place::new();
    let (files, memory) = (open(&place), MemoryArtifacts::new());
    let mut ids = Vec::new();
    for (bytes, holders) in [
        (&b"ends"[..], &[("a", Some(10))][..]),
        (b"stays", &[("a", None)]),
        (b"is shared", &[("a", Some(10)), ("b", Some(20))]),
    ] {
        for (owner, ends) in holders {
            now(memory.put(bytes, meta(owner, *ends))).unwrap();
            ids.push(now(files.put(bytes, meta(owner, *ends))).unwrap());
        }
    }
    ids.dedup();
    let there =
        |store: &FolderArtifacts| ids.iter().map(|id| get(store, id).unwrap().is_some()).collect::<Vec<_>>();
    let purge = |after| {
        let purged = files.purge(Time(NOW.0 + after)).unwrap();
        assert_eq!(memory.purge(Time(NOW.0 + after)), purged, "both stores agree");
        (purged.artifacts, purged.bytes)
    };
    assert_eq!((purge(9), there(&files)), ((0, 0), vec![true, true, true]));
    assert_eq!((purge(10), there(&files)), ((1, 4), vec![false, true, true]));
    assert_eq!((purge(20), there(&files)), ((1, 9), vec![false, true, false]));
    assert_eq!((purge(i64::MAX - NOW.0), there(&files)), ((0, 0), vec![false, true, false]));
}

/// At every moment of a first store, a second store by another session, and a removal: what was
/// acknowledged is there, what is there is whole, and it goes on. A purge leaves nothing unheld behind.
#[test]
fn law_4_every_crash_point_leaves_whole_artifacts() {
    let bytes = "large ".repeat(100);
    let faults = [
        Fault::CrashBefore,
        Fault::CrashTorn(1),
        Fault::CrashTorn(300),
        Fault::CrashAfter,
        Fault::Full(300),
        Fault::Broken(0),
    ];
    let work = |store: &FolderArtifacts| -> Result<Vec<ArtifactId>, (Vec<ArtifactId>, StorageError)> {
        let mut done = Vec::new();
        for (bytes, owner) in [("small", "a"), (&*bytes, "a"), (&*bytes, "b")] {
            match now(store.put(bytes.as_bytes(), meta(owner, None))) {
                Ok(id) => done.push(id),
                Err(error) => return Err((done, error)),
            }
        }
        match now(store.delete(&done[0])) {
            Ok(_) => Ok(done.split_off(1)),
            Err(error) => Err((done.split_off(1), error)),
        }
    };
    let counting = Faults::none();
    work(&open(&Place::new()).faults(&counting)).unwrap();
    assert!(counting.steps() > 20);
    for step in 0..counting.steps() {
        for fault in faults {
            let place = Place::new();
            let outcome = work(&open(&place).faults(&Faults::at(step, fault)));
            let acknowledged = outcome.unwrap_or_else(|(done, _)| done);
            let store = open(&place);
            for id in &acknowledged {
                assert!(get(&store, id).unwrap().is_some(), "step {step}, {fault:?}");
            }
            store.purge(NOW).unwrap();
            let unfinished = tree(&folder(&place)).into_iter().find(|file| file.contains(".tmp"));
            assert_eq!(unfinished, None, "step {step}, {fault:?}");
            assert_eq!(work(&store).unwrap().len(), 2, "it goes on after step {step}, {fault:?}");
        }
    }
}
