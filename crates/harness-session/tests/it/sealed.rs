//! Encrypted sessions, in a file and in a database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness_core::port::{SessionError, TornTail};
use harness_session::search::{Query, search};
use harness_session::{Error, FileSession, ForkOptions, Key, Leaf, OpenOptions, Tree};

use crate::sqlite::thread;
use crate::support::{Place, head, load, options, say, texts, user};

fn key(place: &Place, name: &str) -> Key {
    Key::create(place.folder().join(name)).unwrap()
}

/// The path of a session in a file, and of one in a database.
fn homes(place: &Place) -> [PathBuf; 2] {
    [place.path(), thread(place, "a")]
}

/// Whether any file but those of keys holds a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).any(|path| {
        let bytes = fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[test]
fn nothing_of_an_encrypted_session_is_readable_without_its_key() {
    let place = Place::new();
    let key = key(&place, "key");
    for path in homes(&place) {
        let session = FileSession::open(&path, options().key(key.clone())).unwrap();
        say(&session, "my secret order").unwrap();
        say(&session, "more").unwrap();
        drop(session);
        let session = FileSession::open(&path, options().key(key.clone())).unwrap();
        say(&session, "and again").unwrap();
        assert_eq!(texts(&load(&session).unwrap()), ["my secret order", "more", "and again"]);
        session.replace_blocking(&head(), &[user("more"), user("new secret")]).unwrap();
        drop(session);
        let stored = FileSession::read(&path, &options().key(key.clone())).unwrap();
        assert_eq!(texts(&stored.loaded), ["more", "new secret"]);
        assert!(stored.header.is_some());

        let none = FileSession::open(&path, options()).unwrap_err();
        assert!(matches!(&none, Error::Sealed { key: id, .. } if id == key.id()), "{none:?}");
        assert!(matches!(Tree::read(&path, &options()), Err(Error::Sealed { .. })));
    }
    assert!(!holds(place.folder(), "secret") && !holds(place.folder(), "message"));
}

#[test]
fn a_wrong_key_says_so() {
    let place = Place::new();
    let (right, wrong) = (key(&place, "right"), key(&place, "wrong"));
    for path in homes(&place) {
        say(&FileSession::open(&path, options().key(right.clone())).unwrap(), "secret").unwrap();
        let error = FileSession::open(&path, options().key(wrong.clone())).unwrap_err();
        assert_eq!(error.kind(), "session.wrong_key");
        let told = error.to_string();
        assert!(told.contains(right.id()) && told.contains(wrong.id()), "{told}");
        let plain = OpenOptions::new().key(None);
        assert_eq!(FileSession::open(&path, plain).unwrap_err().kind(), "session.encrypted");
    }
}

#[test]
fn a_key_is_refused_for_a_session_that_is_not_encrypted() {
    let place = Place::new();
    let key = key(&place, "key");
    for path in homes(&place) {
        say(&FileSession::open(&path, options()).unwrap(), "plain").unwrap();
        let session = FileSession::open(&path, options().key(key.clone())).unwrap();
        assert_eq!(&*say(&session, "secret").unwrap_err().kind, "session.not_encrypted");
        assert_eq!(texts(&FileSession::read(&path, &options().key(key.clone())).unwrap().loaded), ["plain"]);
        assert!(!holds(place.folder(), "secret"));
    }
}

#[test]
fn a_fork_with_a_key_is_an_encrypted_copy() {
    let place = Place::new();
    let key = key(&place, "key");
    say(&place.open(), "plain").unwrap();
    let tree = Tree::read(place.path(), &options()).unwrap();
    let fork = tree.fork(Leaf::Last, ForkOptions::new("copy", harness_core::Time(0))).unwrap();
    for path in [place.folder().join("copy.jsonl"), thread(&place, "copy")] {
        fork.save(&path, &options().key(key.clone())).unwrap();
        fs::remove_file(place.path()).ok();
        assert!(!holds(place.folder(), "plain"));
        let session = FileSession::open(&path, options().key(key.clone())).unwrap();
        say(&session, "next").unwrap();
        assert_eq!(texts(&load(&session).unwrap()), ["plain", "next"]);
    }
}

#[test]
fn a_torn_encrypted_line_is_tolerated_and_a_changed_one_is_not() {
    let place = Place::new();
    let key = key(&place, "key");
    let options = || options().key(key.clone());
    let session = FileSession::open(place.path(), options()).unwrap();
    for text in ["one", "two", "three"] {
        say(&session, text).unwrap();
    }
    drop(session);
    let whole = place.text();
    let last = whole.trim_end().rfind('\n').unwrap() + 1;
    for cut in [last + 1, last + 40, whole.len() - 1] {
        fs::write(place.path(), &whole[..cut]).unwrap();
        let loaded = FileSession::read(place.path(), &options()).unwrap().loaded;
        if cut < whole.len() - 1 {
            assert_eq!(loaded.torn_tail, Some(TornTail { line: 5, bytes: (cut - last) as u64 }));
        }
        let session = FileSession::open(place.path(), options()).unwrap();
        say(&session, "four").unwrap();
        let texts = texts(&load(&session).unwrap());
        assert_eq!((texts[0].as_str(), texts.last().unwrap().as_str()), ("one", "four"), "{cut}");
    }

    // The third line is the first message: one letter of it is changed.
    let at = whole.match_indices('\n').nth(1).unwrap().0 + 60;
    let letter = if whole.as_bytes()[at] == b'A' { "B" } else { "A" };
    fs::write(place.path(), format!("{}{letter}{}", &whole[..at], &whole[at + 1..])).unwrap();
    let error = FileSession::read(place.path(), &options()).unwrap_err();
    assert!(matches!(&error, Error::CorruptLine { line: 3, .. }), "{error:?}");
    assert!(
        error.to_string().ends_with("its encrypted text was changed, or is of another session"),
        "{error}"
    );
    let report = FileSession::repair(place.path(), &options()).unwrap();
    assert_eq!((report.quarantined.len(), report.relinked), (1, 1), "{report:?}");
    assert_eq!(texts(&FileSession::read(place.path(), &options()).unwrap().loaded), ["two", "three"]);
    assert!(!holds(place.folder(), "message"), "a repair writes no plain text");
}

/// An encrypted session of six lines (the one that says how, the header, and four messages), its lines as they are
/// stored changed in a file and in a database.
#[track_caller]
fn check_changed(change: impl Fn(&mut Vec<String>), wrong: Option<(u64, &str)>, kept: &[&str]) {
    let place = Place::new();
    let key = key(&place, "key");
    let options = || options().key(key.clone());
    for path in homes(&place) {
        let session = FileSession::open(&path, options()).unwrap();
        for text in ["one", "two", "three", "four"] {
            say(&session, text).unwrap();
        }
        drop(session);
        let mut lines = stored(&place, &path);
        assert_eq!(lines.len(), 6);
        change(&mut lines);
        store(&place, &path, &lines);
        let read = FileSession::read(&path, &options());
        match (read, wrong) {
            (Ok(stored), None) => assert_eq!(texts(&stored.loaded), kept),
            (Err(Error::CorruptLine { line, reason, .. }), Some(wrong)) => {
                assert_eq!((line, &*reason), wrong, "{}", path.display());
                let opened = FileSession::open(&path, options()).map_err(|error| SessionError::from(&error));
                let refused = opened.and_then(|session| say(&session, "five")).unwrap_err();
                assert_eq!(&*refused.kind, "session.corrupt_line");
                assert!(!FileSession::repair(&path, &options()).unwrap().is_sound());
            }
            (read, wrong) => panic!("{read:?}, expected {wrong:?}"),
        }
        let session = FileSession::open(&path, options()).unwrap();
        say(&session, "five").unwrap();
        assert_eq!(texts(&load(&session).unwrap()), [kept, &["five"]].concat(), "{}", path.display());
    }
}

/// The lines of a session as they are stored.
fn stored(place: &Place, path: &Path) -> Vec<String> {
    if path == place.path() {
        return place.text().lines().map(str::to_owned).collect();
    }
    let database = rusqlite::Connection::open(place.folder().join("chats.db")).unwrap();
    let mut lines = database.prepare("SELECT line FROM lines ORDER BY id").unwrap();
    lines.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Puts lines in the place of those of a session.
fn store(place: &Place, path: &Path, lines: &[String]) {
    if path == place.path() {
        return fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    let database = rusqlite::Connection::open(place.folder().join("chats.db")).unwrap();
    let first: i64 = database.query_row("SELECT min(id) FROM lines", [], |row| row.get(0)).unwrap();
    database.execute("DELETE FROM lines", []).unwrap();
    for (id, line) in (first..).zip(lines) {
        database.execute("INSERT INTO lines (id, line) VALUES (?1, ?2)", (id, line)).unwrap();
    }
}

#[test]
fn encrypted_lines_keep_their_order() {
    let moved = |number, due| {
        let text = "lines were removed, repeated or moved";
        format!("it is encrypted line {number} where line {due} is due: {text}")
    };
    check_changed(|lines| lines.swap(3, 4), Some((4, &moved(4, 3))), &["one", "three", "four"]);
    check_changed(|lines| drop(lines.remove(3)), Some((4, &moved(4, 3))), &["one", "three", "four"]);
    check_changed(|lines| drop(lines.remove(1)), Some((2, &moved(2, 1))), &["one", "two", "three", "four"]);
    let repeat = |lines: &mut Vec<String>| lines.insert(4, lines[3].clone());
    check_changed(repeat, Some((5, &moved(3, 4))), &["one", "two", "three", "four"]);
    let again = |lines: &mut Vec<String>| lines.push(lines[5].clone());
    check_changed(again, Some((7, &moved(5, 6))), &["one", "two", "three", "four"]);
    let renumbered = |lines: &mut Vec<String>| lines[4] = lines[4].replace("\"number\":4", "\"number\":3");
    let changed = "its encrypted text was changed, or is of another session";
    check_changed(
        |lines| {
            lines.remove(3);
            renumbered_at(lines, 3);
        },
        Some((4, changed)),
        &["one", "four"],
    );
    check_changed(renumbered, Some((5, changed)), &["one", "two", "four"]);
    let unnumbered = |lines: &mut Vec<String>| lines[4] = lines[4].replace("\"number\":4,", "");
    let wanted = "it is not an encrypted line of this version";
    check_changed(unnumbered, Some((5, wanted)), &["one", "two", "four"]);
}

/// Gives a line the number before its own.
fn renumbered_at(lines: &mut [String], at: usize) {
    lines[at] = lines[at].replace("\"number\":4", "\"number\":3");
}

/// What the format cannot tell from a session that is shorter.
#[test]
fn encrypted_lines_cut_off_at_the_end_are_not_missed() {
    check_changed(|lines| lines.truncate(4), None, &["one", "two"]);
}

#[test]
fn lines_of_another_session_do_not_fit() {
    let place = Place::new();
    let key = key(&place, "key");
    for [path, other] in
        [[place.path(), place.folder().join("other.jsonl")], ["a", "b"].map(|name| thread(&place, name))]
    {
        for path in [&path, &other] {
            let session = FileSession::open(path, options().key(key.clone())).unwrap();
            say(&session, "one").unwrap();
        }
        if path == place.path() {
            let (own, foreign) = (place.text(), fs::read_to_string(&other).unwrap());
            let lines: Vec<_> = own.lines().take(2).chain(foreign.lines().skip(2)).collect();
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        } else {
            let database = rusqlite::Connection::open(place.folder().join("chats.db")).unwrap();
            let foreign = "SELECT line FROM lines WHERE id = (SELECT max(id) FROM lines)";
            let copied =
                format!("UPDATE lines SET line = ({foreign}) WHERE id = (SELECT min(id) + 2 FROM lines)");
            assert_eq!(database.execute(&copied, []).unwrap(), 1);
        }
        let error = FileSession::read(&path, &options().key(key.clone())).unwrap_err();
        let told = "its encrypted text was changed, or is of another session";
        assert!(matches!(&error, Error::CorruptLine { line: 3, reason, .. } if reason == told), "{error:?}");
    }
}

#[test]
fn a_session_written_anew_takes_no_line_of_what_it_was() {
    let place = Place::new();
    let key = key(&place, "key");
    let session = FileSession::open(place.path(), options().key(key.clone())).unwrap();
    say(&session, "one").unwrap();
    say(&session, "purged").unwrap();
    let before = place.text();
    session.replace_blocking(&head(), &[user("one"), user("two")]).unwrap();
    drop(session);
    let after = place.text();
    let lines: Vec<_> = after.lines().take(3).chain(before.lines().skip(3)).collect();
    fs::write(place.path(), lines.join("\n") + "\n").unwrap();
    let error = FileSession::read(place.path(), &options().key(key)).unwrap_err();
    assert!(matches!(&error, Error::CorruptLine { line: 4, .. }), "{error:?}");
}

#[test]
fn version_1_is_read_and_continued() {
    const VERSION_1: &str = include_str!("../fixtures/sealed-v1.jsonl");
    let place = Place::with(VERSION_1);
    let path = place.folder().join("key");
    fs::write(&path, include_str!("../fixtures/sealed.key")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let key = Key::read(&path).unwrap();
    let options = || options().key(key.clone());
    let session = FileSession::open(place.path(), options()).unwrap();
    say(&session, "four").unwrap();
    drop(session);
    let text = place.text();
    let added = text.strip_prefix(VERSION_1).expect("lines that were there stay as they were");
    assert!(added.starts_with(r#"{"sealed":"#), "{added}");
    let session = FileSession::open(place.path(), options()).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three", "four"]);

    // Lines of one version do not pass as those of the other.
    let version = |from: &str, to: &str| {
        place.text().replace(&format!("\"version\":{from}"), &format!("\"version\":{to}"))
    };
    fs::write(place.path(), version("1", "2")).unwrap();
    assert_eq!(FileSession::read(place.path(), &options()).unwrap_err().kind(), "session.corrupt_line");
    fs::write(place.path(), version("2", "1")).unwrap();
    session.replace_blocking(&head(), &[user("anew")]).unwrap();
    drop(session);
    assert!(place.text().contains("\"version\":2"), "what is written anew has the newest version");
    assert_eq!(texts(&FileSession::read(place.path(), &options()).unwrap().loaded), ["anew"]);
    fs::write(place.path(), version("2", "1")).unwrap();
    assert_eq!(FileSession::read(place.path(), &options()).unwrap_err().kind(), "session.corrupt_line");
    fs::write(place.path(), version("1", "3")).unwrap();
    assert_eq!(FileSession::read(place.path(), &options()).unwrap_err().kind(), "session.newer_version");
}

#[test]
fn key_files_are_private_and_never_overwritten() {
    let place = Place::new();
    let path = place.folder().join("key");
    let key = Key::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Key::create(&path).unwrap_err().kind(), "session.key_file");
    assert_eq!(Key::read(&path).unwrap().id(), key.id());
    assert!(
        !format!("{key:?}").contains(fs::read_to_string(&path).unwrap().trim().split_once(':').unwrap().1)
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Key::read(&path).unwrap_err().to_string().contains("chmod 600"));
    fs::write(&path, "rubbish").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Key::read(&path).unwrap_err().to_string().ends_with("it holds no session key"));
}

#[test]
fn encrypted_sessions_are_searched_with_their_key() {
    let place = Place::new();
    let key = key(&place, "key");
    for path in homes(&place) {
        say(&FileSession::open(&path, options().key(key.clone())).unwrap(), "my secret order").unwrap();
    }
    for path in [place.folder().to_owned(), place.folder().join("chats.db")] {
        let query = Query::new("secret");
        let found = search(&path, &query, 9, &options().key(key.clone())).unwrap();
        assert_eq!(found.hits.len(), 1, "{found:?}");
        let closed = search(&path, &query, 9, &options()).unwrap();
        assert!(matches!(&closed.problems[..], [(_, Error::Sealed { .. })]), "{closed:?}");
    }
    assert!(!holds(place.folder(), "secret"));
}
