//! Checkpoints as files: their form, damage, versions, crashes and broken disks.

use std::path::PathBuf;
use std::sync::Arc;

use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
use harness_core::{Json, RunId, Time};
use harness_session::checkpoint::{CHECKPOINT_FORMAT_VERSION, FileCheckpoints, MemoryCheckpoints};
use harness_session::testing::{Fault, Faults};

use crate::support::{Place, now, tree};

/// Version 1 of the file, as it was released.
const VERSION_1: &str = include_str!("../fixtures/checkpoint-v1.json");

fn run() -> RunId {
    RunId::from("r1")
}

fn checkpoint(count: u64) -> Checkpoint {
    let state = Json::parse(&format!(r#"{{"turn":{count},"n":9007199254740993}}"#)).unwrap();
    Checkpoint::new(run(), Time(1_767_225_600_000), 1, count * 10, Arc::new(state))
}

fn folder(place: &Place) -> PathBuf {
    place.folder().join("checkpoints")
}

fn open(place: &Place) -> FileCheckpoints {
    FileCheckpoints::open(folder(place)).unwrap()
}

fn file(place: &Place, number: u64) -> PathBuf {
    folder(place).join(format!("r1.run/{number:012}.json"))
}

fn latest(store: &impl CheckpointStore) -> Result<Option<u64>, SessionError> {
    Ok(now(store.latest(&run()))?.map(|checkpoint| checkpoint.number))
}

#[test]
fn the_last_ones_are_kept_and_their_size_does_not_grow() {
    let place = Place::new();
    let store = open(&place);
    let mut sizes = Vec::new();
    for count in 101..=140 {
        let number = now(store.save(checkpoint(count))).unwrap();
        sizes.push(std::fs::metadata(file(&place, number)).unwrap().len());
    }
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
    let files: Vec<_> = (37..=40).map(|number| format!("r1.run/{number:012}.json 600")).collect();
    let expected = [vec!["lock 600".to_owned(), "r1.run 700".to_owned()], files].concat();
    assert_eq!(tree(&folder(&place)), expected);
    now(store.keep(2).save(checkpoint(1))).unwrap();
    assert_eq!(tree(&folder(&place)).len(), 4);
}

#[test]
fn a_file_says_what_it_is() {
    let place = Place::new();
    now(open(&place).save(checkpoint(1))).unwrap();
    let text = std::fs::read_to_string(file(&place, 1)).unwrap();
    assert_eq!(text, VERSION_1, "a change of the form is a new version, with a file of its own");
    let name = |version| format!("checkpoint-v{version}.json");
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    assert!((1..=CHECKPOINT_FORMAT_VERSION).all(|version| fixtures.join(name(version)).is_file()));
}

#[test]
fn the_one_before_a_damaged_one_is_taken_and_that_is_told() {
    let place = Place::new();
    let store = open(&place);
    for count in 1..=3 {
        now(store.save(checkpoint(count))).unwrap();
    }
    let good = std::fs::read_to_string(file(&place, 3)).unwrap();
    let damages = [
        good[..good.len() / 2].to_owned(),
        String::new(),
        "\0".repeat(300),
        good.replace("\"turn\":3", "\"turn\":4"),
        good.replace("2026", "2025"),
        good.replace("harness.checkpoint", "another"),
        std::fs::read_to_string(file(&place, 2)).unwrap(),
    ];
    let mut reasons = Vec::new();
    for damage in damages {
        std::fs::write(file(&place, 3), &damage).unwrap();
        let recovered = store.recover(&run()).unwrap().unwrap();
        assert_eq!(recovered.checkpoint.number, 2);
        assert_eq!(recovered.damaged.len(), 1);
        assert_eq!((recovered.damaged[0].number, &recovered.damaged[0].path), (3, &file(&place, 3)));
        reasons.push(recovered.damaged[0].reason.clone());
        assert_eq!(latest(&store), Ok(Some(2)));
    }
    insta::assert_snapshot!(reasons.join("\n"), @r##"
    it has no first line
    it has no first line
    it has no first line
    it does not have the hash that it names
    it does not have the hash that it names
    its first line is that of another format
    it is another run's, or has another number
    "##);
    assert_eq!(now(store.save(checkpoint(4))), Ok(4), "the next one goes behind it");
    assert_eq!(latest(&store), Ok(Some(4)));
}

#[test]
fn a_run_whose_checkpoints_are_all_damaged_is_not_one_without() {
    let place = Place::new();
    let store = open(&place);
    now(store.save(checkpoint(1))).unwrap();
    std::fs::write(file(&place, 1), "").unwrap();
    let error = latest(&store).unwrap_err();
    let text = error.message.replace(folder(&place).to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!(format!("{}: {text}", error.kind), @"checkpoint.corrupt: checkpoint `FOLDER/r1.run/000000000001.json` is damaged: it has no first line (remove the file, or put a good copy in its place; it was left as it is)");
    assert_eq!(now(store.runs()), Ok(vec![run()]));
    now(store.clear(&run())).unwrap();
    assert_eq!(latest(&store), Ok(None));
    assert_eq!(tree(&folder(&place)), ["lock 600"]);
}

#[test]
fn newer_versions_are_refused_and_no_older_checkpoint_takes_their_place() {
    let place = Place::new();
    let (files, memory) = (open(&place).supporting(6), MemoryCheckpoints::new().supporting(6));
    for (count, version) in [(1, 6), (2, 7)] {
        let mut checkpoint = checkpoint(count);
        checkpoint.schema_version = version;
        now(files.save(checkpoint.clone())).unwrap();
        now(memory.save(checkpoint)).unwrap();
        if version == 6 {
            assert_eq!((latest(&files), latest(&memory)), (Ok(Some(1)), Ok(Some(1))));
        }
    }
    let error = latest(&files).unwrap_err();
    assert_eq!(latest(&memory), Err(error.clone()));
    assert_eq!(&*error.kind, "checkpoint.newer_version");
    insta::assert_snapshot!(error.message, @"checkpoint 2 of run `r1` has state version 7, this program reads up to version 6 (use the version of harness that wrote it, or a newer one; the checkpoints were left as they are)");
    let text = std::fs::read_to_string(file(&place, 1)).unwrap();
    std::fs::write(file(&place, 2), text.replace("\"version\":1", "\"version\":2")).unwrap();
    insta::assert_snapshot!(latest(&files).unwrap_err().message, @"checkpoint 2 of run `r1` has format version 2, this program reads up to version 1 (use the version of harness that wrote it, or a newer one; the checkpoints were left as they are)");
}

#[test]
fn a_state_that_is_too_large_is_refused_and_the_earlier_one_stays() {
    let place = Place::new();
    let store = open(&place).most_bytes(400);
    now(store.save(checkpoint(1))).unwrap();
    let large = Arc::new(Json::string(&"x".repeat(400)));
    let error = now(store.save(Checkpoint::new(run(), Time(0), 1, 0, large))).unwrap_err();
    assert_eq!(&*error.kind, "checkpoint.too_large");
    assert_eq!(latest(&store), Ok(Some(1)));
}

/// At every moment of every save: the last acknowledged checkpoint or the one on its way; and it goes on.
#[test]
fn law_4_every_crash_point_leaves_a_checkpoint() {
    let faults = [
        Fault::CrashBefore,
        Fault::CrashTorn(1),
        Fault::CrashTorn(100),
        Fault::CrashTorn(200),
        Fault::CrashAfter,
        Fault::Full(100),
        Fault::StaysFull(0),
        Fault::Broken(100),
    ];
    let work = |store: &FileCheckpoints| {
        (1..=6).take_while(|count| now(store.save(checkpoint(*count))).is_ok()).count() as u64
    };
    let counting = Faults::none();
    assert_eq!(work(&open(&Place::new()).faults(&counting)), 6);
    for step in 0..counting.steps() {
        for fault in faults {
            let place = Place::new();
            let acknowledged = work(&open(&place).faults(&Faults::at(step, fault)));
            let store = open(&place);
            let kept = latest(&store).unwrap().unwrap_or(0);
            assert!((acknowledged..=acknowledged + 1).contains(&kept), "step {step}, {fault:?}: {kept}");
            assert!(store.recover(&run()).unwrap().is_none_or(|found| found.damaged.is_empty()));
            assert_eq!(now(store.save(checkpoint(9))), Ok(kept + 1));
            let files = tree(&folder(&place)).len();
            assert!(files <= 2 + 4, "the number stays bounded: step {step}, {fault:?}: {files}");
        }
    }
}
