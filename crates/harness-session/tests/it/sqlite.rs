//! Sessions in databases: what differs from a file of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;

use futures_util::FutureExt as _;
use harness_core::EntryId;
use harness_core::port::{Durability, Entry, Loaded, Session as _};
use harness_session::{
    Database, Error, FileSession, ForkOptions, Leaf, Location, Note, OpenOptions, SyncPolicy, Tree,
};

use crate::crash_points::Model;
use crate::scenarios::scenarios;
use crate::support::{Place, head, load, options, say, texts, user};

/// The path of a thread of a database in the folder of a place.
pub(crate) fn thread(place: &Place, name: &str) -> PathBuf {
    place.folder().join(format!("chats.db#{name}"))
}

fn open(path: &Path) -> FileSession {
    FileSession::open(path, options()).unwrap()
}

fn database(place: &Place) -> Database {
    Database::open(place.folder().join("chats.db"), false).unwrap()
}

/// Runs SQL on the database of a place, as another program would.
fn run_sql(place: &Place, sql: &str) {
    rusqlite::Connection::open(place.folder().join("chats.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn many_threads_share_a_database_and_do_not_mix() {
    let place = Place::new();
    let names: Vec<String> = (0..8).map(|number| format!("thread/{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let path = thread(&place, name);
            scope.spawn(move || {
                let session = open(&path);
                (0..50).for_each(|number| say(&session, &format!("{number}")).unwrap());
            });
        }
    });
    let expected: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    for name in &names {
        assert_eq!(texts(&load(&open(&thread(&place, name))).unwrap()), expected, "{name}");
    }
    assert_eq!(database(&place).threads().unwrap(), names);
    assert_eq!(place.files(), ["chats.db"], "nothing is left beside it");
}

#[test]
fn new_files_are_readable_by_their_owner_only() {
    let place = Place::new();
    let path = place.folder().join("new/chats.db#a");
    let session = open(&path);
    say(&session, "secret").unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.folder().join("new")), 0o700);
    for name in ["chats.db", "chats.db-wal", "chats.db-shm", "chats.db.a.lock"] {
        assert_eq!(mode(place.folder().join("new").join(name)), 0o600, "{name}");
    }
}

#[test]
fn missing_lines_count_towards_the_size_limit() {
    let place = Place::new();
    say(&open(&thread(&place, "a")), "one").unwrap();
    run_sql(&place, "INSERT INTO lines (id, line) SELECT max(id) + 4000000000, '{}' FROM lines");
    let error = Tree::read(thread(&place, "a"), &options()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { bytes: 4_000_000_000.., .. }), "{error}");
}

#[test]
fn a_thread_has_one_owner_and_the_others_stay_free() {
    let place = Place::new();
    let (a, b) = (thread(&place, "a"), thread(&place, "b"));
    let first = open(&a);
    let refused = FileSession::open(&a, options()).unwrap_err();
    assert!(matches!(&refused, Error::Locked { owner: Some(owner), .. } if owner.pid == std::process::id()));
    assert!(refused.to_string().contains("chats.db#a"), "{refused}");
    say(&open(&b), "free").unwrap();
    say(&first, "owned").unwrap();
    assert_eq!(texts(&FileSession::read(&a, &options()).unwrap().loaded), ["owned"], "anybody may read");
    drop(first);
    say(&open(&a), "next").unwrap();
}

/// Law 4 for every scenario: what a crash at any byte of a write leaves in the log of the database is the session
/// before the step or after it.
#[test]
fn law_4_twelve_scenarios_survive_a_crash_at_every_write_to_a_database() {
    let mut crashes = 0;
    for scenario in &scenarios() {
        for sync in [SyncPolicy::Never, SyncPolicy::WhenAsked] {
            let place = Place::new();
            let path = thread(&place, "s");
            if !scenario.before.is_empty() {
                let before = Tree::parse(scenario.before.as_bytes(), "before", &options()).unwrap();
                before.save(&path, &options()).unwrap();
            }
            let session = FileSession::open(&path, options().sync(sync)).unwrap();
            let mut model = Model::before(scenario);
            for (at, step) in scenario.steps.iter().enumerate() {
                let told = format!("{}, step {at}, {sync:?}", scenario.name);
                let (before, old) = (model.loaded(), log(&place).len());
                step.take(&session).unwrap();
                model.take(step);
                let (after, new) = (model.loaded(), log(&place).len());
                assert_eq!(load(&session).unwrap(), after, "{told}");
                for cut in cuts(old, new) {
                    let found = after_crash(&place, cut);
                    let expected = if cut < new { &before } else { &after };
                    // Going back writes nothing: only what follows it does.
                    let going_back = found.messages == before.messages && cut < new;
                    assert!(found == *expected || going_back, "{told}, {cut} of {new}: {found:?}");
                    crashes += 1;
                }
            }
        }
    }
    assert!(crashes > 500, "{crashes}");
}

fn log(place: &Place) -> Vec<u8> {
    fs::read(place.folder().join("chats.db-wal")).unwrap_or_default()
}

/// Places at which a log of `old` bytes may end when a crash comes while it grows to `new`: the first byte, around
/// each frame, the last byte.
fn cuts(old: usize, new: usize) -> Vec<usize> {
    const FRAME: usize = 4096 + 24;
    let mut cuts = vec![new];
    if old < new {
        cuts.extend([old + 1, new - 1]);
        cuts.extend((old..new).step_by(FRAME).flat_map(|frame| [frame, frame + 24, frame + 2_000]));
    }
    cuts.retain(|cut| *cut <= new);
    cuts
}

/// The session that a copy of the files holds whose log ends at `cut`.
fn after_crash(place: &Place, cut: usize) -> Loaded {
    let copy = Place::new();
    fs::copy(place.folder().join("chats.db"), copy.folder().join("chats.db")).unwrap();
    fs::write(copy.folder().join("chats.db-wal"), &log(place)[..cut]).unwrap();
    load(&open(&thread(&copy, "s"))).unwrap()
}

#[test]
fn trees_labels_forks_and_repairs_work_as_in_a_file() {
    let place = Place::new();
    let path = thread(&place, "support");
    let session = open(&path);
    say(&session, "question").unwrap();
    say(&session, "first try").unwrap();
    session.note(&head(), &Note::label(EntryId::from("e1"), "start")).unwrap();
    session.branch(Some(&EntryId::from("e1"))).unwrap();
    say(&session, "second try").unwrap();
    let tree = session.tree().unwrap();
    assert_eq!((tree.nodes().len(), tree.leaves().count(), tree.labels().len()), (4, 2, 1));
    let fork = tree.fork(Leaf::At(&EntryId::from("e2")), ForkOptions::new("other", harness_core::Time(0)));
    let (fork, other) = (fork.unwrap(), thread(&place, "other"));
    fork.save(&other, &options()).unwrap();
    assert!(matches!(fork.save(&other, &options()), Err(Error::Exists { .. })));
    assert_eq!(texts(&load(&open(&other)).unwrap()), ["question", "first try"]);
    fork.save(place.path(), &options()).unwrap();
    assert_eq!(texts(&place.read().loaded), ["question", "first try"], "a thread becomes a file");

    drop(session);
    run_sql(&place, "UPDATE lines SET line = '{\"type\":\"message\"' WHERE line LIKE '%first try%'");
    let damaged = FileSession::read(&path, &options()).unwrap_err();
    assert!(matches!(&damaged, Error::CorruptLine { line: 3, .. }), "{damaged:?}");
    let report = FileSession::repair(&path, &options()).unwrap();
    assert_eq!((report.quarantined.len(), report.kept), (1, 3), "{report:?}");
    assert_eq!(
        report.side_file,
        Some(fs::canonicalize(place.folder()).unwrap().join("chats.db.support.quarantine"))
    );
    assert_eq!(texts(&load(&open(&path)).unwrap()), ["question", "second try"]);

    run_sql(&place, "DELETE FROM lines WHERE line LIKE '%\"question\"%' AND id < (2 << 32)");
    let missing = FileSession::read(&path, &options()).unwrap_err();
    assert!(missing.to_string().contains("`parent_id` names the entry `e1`"), "{missing}");
}

#[test]
fn replaced_and_removed_content_is_gone_from_the_files() {
    let place = Place::new();
    let (path, other) = (thread(&place, "a"), thread(&place, "b"));
    let session = open(&path);
    say(&session, "a very secret word").unwrap();
    say(&open(&other), "another secret thing").unwrap();
    let query = harness_session::search::Query::new("secret");
    let found = harness_session::search::search(place.folder().join("chats.db"), &query, 9, &options());
    assert_eq!(found.unwrap().hits.len(), 2);
    session.replace_blocking(&head(), &[user("short")]).unwrap();
    FileSession::remove(&other).unwrap();
    assert_eq!(database(&place).threads().unwrap(), ["a"]);
    drop(session);
    for name in place.files() {
        let bytes = fs::read(place.folder().join(&name)).unwrap();
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        assert!(!holds(b"secret") && !holds(b"thing"), "{name}");
    }
    assert_eq!(texts(&load(&open(&path)).unwrap()), ["short"]);
}

#[track_caller]
fn check_refused(place: &Place, kind: &str, text: &str) {
    let error = FileSession::open(thread(place, "a"), options()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let told = error.to_string().replace(place.folder().to_str().unwrap(), "");
    assert_eq!(told, text);
}

#[test]
fn unusable_databases_are_refused_and_left_as_they_are() {
    let place = Place::new();
    drop(open(&thread(&place, "a")));
    run_sql(&place, "PRAGMA user_version = 7");
    let before = fs::read(place.folder().join("chats.db")).unwrap();
    let newer = "session `/chats.db` has format version 7, this program reads up to version 1";
    check_refused(&place, "session.newer_version", newer);
    assert_eq!(fs::read(place.folder().join("chats.db")).unwrap(), before);

    let place = Place::new();
    run_sql(&place, "CREATE TABLE other (x)");
    let other = "`/chats.db` is not a harness session: its header says a database of another program";
    check_refused(&place, "session.wrong_format", other);

    let place = Place::new();
    fs::write(place.folder().join("chats.db"), "no database at all, but text that is long enough".repeat(9))
        .unwrap();
    let none = "`/chats.db` is not a harness session: its header says it is not a SQLite database";
    check_refused(&place, "session.wrong_format", none);

    let named = FileSession::open(place.folder().join("chats.db"), options()).unwrap_err();
    assert_eq!(named.kind(), "session.no_thread");
    let missing = FileSession::open(thread(&Place::new(), "a"), options().create(false)).unwrap_err();
    assert_eq!(missing.kind(), "session.not_found");
}

#[test]
fn damaged_pages_are_an_error_that_names_the_database() {
    let place = Place::new();
    let path = thread(&place, "a");
    let session = open(&path);
    (0..200).for_each(|_| say(&session, &"x".repeat(200)).unwrap());
    drop(session);
    let file = place.folder().join("chats.db");
    let mut bytes = fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    let error = FileSession::read(&path, &options()).unwrap_err();
    assert_eq!(error.kind(), "session.corrupt", "{error}");
    assert!(error.to_string().contains("chats.db` is damaged"), "{error}");
}

#[test]
fn a_database_that_another_program_changes_gets_no_more_lines() {
    let place = Place::new();
    let session = open(&thread(&place, "a"));
    say(&session, "one").unwrap();
    run_sql(&place, "INSERT INTO lines SELECT max(id) + 1, '{}' FROM lines");
    assert_eq!(&*say(&session, "two").unwrap_err().kind, "session.disturbed");
    let other = open(&thread(&place, "b"));
    fs::rename(place.folder().join("chats.db"), place.folder().join("moved.db")).unwrap();
    let removed = say(&other, "three").unwrap_err();
    assert!(removed.message.contains("was removed while it was in use"), "{removed}");
}

#[test]
fn a_full_disk_costs_nothing_that_was_acknowledged() {
    let place = Place::new();
    let session = open(&thread(&place, "a"));
    say(&session, "one").unwrap();
    let big = user(&"x".repeat(100_000));
    let database = database(&place);
    database.limit_pages(12);
    let full = session.append_blocking(&head(), &[Entry::Message(&big)], Durability::Flush).unwrap_err();
    assert!(full.message.contains("free some space"), "{full}");
    assert_eq!(texts(&load(&session).unwrap()), ["one"]);
    database.limit_pages(1_000_000);
    session.append_blocking(&head(), &[Entry::Message(&big)], Durability::Sync).unwrap();
    drop(session);
    assert_eq!(load(&open(&thread(&place, "a"))).unwrap().messages.len(), 2);
}

#[tokio::test]
async fn appends_to_a_database_never_run_on_the_caller() {
    let place = Place::new();
    let session = open(&thread(&place, "a"));
    let (head, one) = (head(), user("one"));
    let entries = [Entry::Message(&one)];
    // Whoever writes has to wait until this program lets go of the database.
    let other = rusqlite::Connection::open(place.folder().join("chats.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut append = pin!(session.append(&head, &entries, Durability::Flush));
    assert_eq!(append.as_mut().now_or_never(), None, "it waits for another thread");
    other.execute_batch("ROLLBACK").unwrap();
    append.await.unwrap();
    assert_eq!(texts(&session.load().await.unwrap()), ["one"]);
}

#[test]
fn locations_name_files_threads_and_databases() {
    #[track_caller]
    fn check(path: &str, expected: Location) {
        assert_eq!(Location::of(path), expected);
    }
    let thread =
        |database: &str, name: &str| Location::Thread { database: database.into(), name: name.to_owned() };
    check("a.jsonl", Location::File("a.jsonl".into()));
    check("a#b.jsonl", Location::File("a#b.jsonl".into()));
    check("folder.db/a.jsonl", Location::File("folder.db/a.jsonl".into()));
    check("a.db", Location::Database("a.db".into()));
    check("x/a.sqlite#b", thread("x/a.sqlite", "b"));
    check("a.sqlite3#b/c#d.db", thread("a.sqlite3", "b/c#d.db"));
    check("a#1.db#b", thread("a#1.db", "b"));
    assert_eq!(Location::of("x/a.db#b/c").beside("runs"), PathBuf::from("x/a.db.b%2fc.runs"));
    assert_eq!(Location::of("x/a.jsonl").beside("runs"), PathBuf::from("x/a.runs"));
    let place = Place::new();
    say(&open(&self::thread(&place, "b")), "one").unwrap();
    say(&open(&place.folder().join("a.jsonl")), "one").unwrap();
    let exists = |path: PathBuf| Location::of(path).exists().unwrap();
    assert!(exists(self::thread(&place, "b")) && !exists(self::thread(&place, "c")));
    assert!(!exists(place.folder().join("no.db#b")) && !place.folder().join("no.db").exists());
    let sessions = |path: PathBuf| Location::of(path).sessions().unwrap();
    assert_eq!(sessions(place.folder().to_owned()), [place.folder().join("a.jsonl")]);
    assert_eq!(sessions(place.folder().join("chats.db")), [self::thread(&place, "b")]);
    let long = format!("chats.db#{}", "x".repeat(300));
    let refused = FileSession::open(place.folder().join(long), OpenOptions::new()).unwrap_err();
    assert_eq!(refused.kind(), "session.long_name");
}
