//! Encrypted sessions, in a file and in a database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness_core::port::TornTail;
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

#[test]
fn lines_of_another_session_do_not_fit() {
    let place = Place::new();
    let key = key(&place, "key");
    let other = place.folder().join("other.jsonl");
    for path in [&place.path(), &other] {
        let session = FileSession::open(path, options().key(key.clone())).unwrap();
        say(&session, "one").unwrap();
    }
    let foreign = fs::read_to_string(&other).unwrap();
    fs::write(place.path(), place.text() + foreign.lines().last().unwrap() + "\n").unwrap();
    let error = FileSession::read(place.path(), &options().key(key)).unwrap_err();
    assert_eq!(error.kind(), "session.corrupt_line");
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
