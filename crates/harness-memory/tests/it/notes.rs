//! Long-term memory, on every store that comes with the crate.

use std::sync::Arc;

use harness_core::{Fault, FaultSource, Json, Time};
use harness_host::{DynEmbedder, Embedder, StorageError};
use harness_memory::builtin::notes::{
    DynNoteStore, LocalNotes, LongTermMemory, MemoryBounds, NoteDraft, NoteQuery, NoteScope, WhenFull,
};

use crate::embedder::WordCounts;

/// Every store, empty.
fn stores() -> Vec<Arc<dyn DynNoteStore>> {
    vec![
        Arc::new(LocalNotes::default()),
        #[cfg(feature = "sqlite")]
        Arc::new(harness_memory::builtin::notes::SqliteNotes::in_memory().expect("a database in memory")),
    ]
}

fn ada() -> NoteScope {
    NoteScope::Resource("ada".into())
}

fn until(text: &str, time: i64) -> NoteDraft {
    let mut draft = NoteDraft::new(text, ada());
    draft.expires_at = Some(Time(time));
    draft
}

/// What is found, as `text` in order.
#[track_caller]
fn check(memory: &LongTermMemory, query: &NoteQuery, expected: &[&str]) {
    let found = futures(memory.search(query, Time(1_000))).expect("a search");
    let texts: Vec<&str> = found.hits.iter().map(|hit| &*hit.note.text).collect();
    assert_eq!(texts, expected, "for {query:?}");
    assert!(found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "the best first: {found:?}");
    assert!(
        found.hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0),
        "scores lie in 0..1: {found:?}"
    );
}

fn futures<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn add(memory: &LongTermMemory, draft: NoteDraft, at: i64) -> Result<(Arc<str>, bool), StorageError> {
    futures(memory.add(draft, Time(at))).map(|added| (added.note.id, added.fresh))
}

#[test]
fn words_find_notes_the_rarer_the_better_and_only_in_their_scopes() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        for (at, text) in
            ["Ada likes tea", "Tea is grown in Assam", "The office is in Oslo"].iter().enumerate()
        {
            add(&memory, NoteDraft::new(*text, ada()), at.try_into().unwrap()).unwrap();
        }
        add(&memory, NoteDraft::new("Bob likes tea", NoteScope::Resource("bob".into())), 9).unwrap();
        let ask = |text: &str| NoteQuery::new(text, vec![ada(), NoteScope::Global]);
        check(&memory, &ask("Where does TEA from Assam grow?"), &["Tea is grown in Assam", "Ada likes tea"]);
        check(&memory, &ask("coffee"), &[]);
        check(&memory, &ask("tea").at_most(1), &["Ada likes tea"]);
        check(&memory, &ask("?!"), &["The office is in Oslo", "Tea is grown in Assam", "Ada likes tea"]);
        check(&memory, &NoteQuery::new("tea", Vec::new()), &[]);
    }
}

#[test]
fn the_text_of_a_query_is_never_a_program() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        add(&memory, NoteDraft::new("near tea", ada()), 0).unwrap();
        for hostile in
            ["\" OR 1=1 --", "text:tea*", "(tea NEAR", "a AND", "NOT", "'; DROP TABLE notes; --", "\0"]
        {
            let found = futures(memory.search(&NoteQuery::new(hostile, vec![ada()]), Time(0)));
            assert!(found.is_ok(), "{hostile}: {found:?}");
        }
        check(&memory, &NoteQuery::new("tea\" AND \"milk", vec![ada()]), &["near tea"]);
        let longest: Vec<String> = (0..10_000).map(|n| format!("w{n}")).chain(["tea".into()]).collect();
        check(&memory, &NoteQuery::new(longest.join(" "), vec![ada()]), &[]);
    }
}

#[test]
fn the_same_is_remembered_once_and_the_later_saying_counts() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        let (first, fresh) =
            add(&memory, NoteDraft::new("Ada likes  tea.", ada()).tagged(["Drink"]), 1).unwrap();
        assert!(fresh);
        let again = NoteDraft::new(" ada likes tea", ada()).tagged(["taste"]);
        assert_eq!(add(&memory, again, 5).unwrap(), (first.clone(), false));
        let elsewhere =
            add(&memory, NoteDraft::new("Ada likes tea", NoteScope::Global).tagged(["her"]), 2).unwrap();
        assert!(elsewhere.1 && elsewhere.0 != first);

        let both = || vec![ada(), NoteScope::Global];
        check(&memory, &NoteQuery::new("tea", both()), &["ada likes tea"]);
        check(&memory, &NoteQuery::new("tea", both()).tagged("taste"), &["ada likes tea"]);
        check(&memory, &NoteQuery::new("tea", both()).tagged("drink"), &[]);
        let newest = futures(memory.newest(both(), None, Time(9), 1)).unwrap();
        assert_eq!((&newest[0].id, newest[0].created_at), (&first, Time(5)));
    }
}

#[test]
fn notes_are_forgotten_when_they_expire_or_somebody_of_their_scope_asks() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        add(&memory, until("tea today", 500), 0).unwrap();
        let (id, _) = add(&memory, NoteDraft::new("tea for ever", ada()), 0).unwrap();
        check(&memory, &NoteQuery::new("tea", vec![ada()]), &["tea for ever"]);

        let bob = vec![NoteScope::Resource("bob".into())];
        assert!(!futures(memory.forget(&id, bob)).unwrap(), "not by others");
        assert!(futures(memory.forget(&id, vec![NoteScope::Global, ada()])).unwrap());
        assert!(!futures(memory.forget(&id, vec![ada()])).unwrap(), "only once");
        check(&memory, &NoteQuery::new("tea", vec![ada()]), &[]);
    }
}

#[test]
fn a_full_scope_refuses_or_drops_its_oldest_and_expired_notes_go_first() {
    for store in stores() {
        let mut bounds = MemoryBounds::default();
        bounds.max_notes = 2;
        let memory = LongTermMemory::new(store).with_bounds(bounds.clone());
        add(&memory, until("tea one", 10), 1).unwrap();
        add(&memory, NoteDraft::new("tea two", ada()), 2).unwrap();
        let refused = add(&memory, NoteDraft::new("tea three", ada()), 3).unwrap_err();
        assert_eq!(&*refused.kind, "notes.full");
        assert_eq!(
            refused.message,
            "the resource scope `ada` has 2 notes and takes no more; remove some, or raise `max_notes`",
        );
        add(&memory, NoteDraft::new("tea two", ada()), 4).expect("what is known needs no room");
        add(&memory, NoteDraft::new("tea else", NoteScope::Global), 4).expect("another scope has room");
        add(&memory, NoteDraft::new("tea four", ada()), 11).expect("an expired note makes room");

        bounds.when_full = WhenFull::DropOldest;
        let memory = memory.with_bounds(bounds);
        add(&memory, NoteDraft::new("tea five", ada()), 12).unwrap();
        check(&memory, &NoteQuery::new("tea", vec![ada()]), &["tea five", "tea four"]);
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_with_the_bound() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        let refused = |draft| add(&memory, draft, 0).unwrap_err().to_string();
        let draft = |text: String| NoteDraft::new(text, ada());
        assert_eq!(refused(draft(" \n".into())), "a note needs a text; this one is empty");
        assert_eq!(
            refused(draft("x".repeat(8_193))),
            "the note has 8193 bytes, and 8192 is the most; say it in fewer words",
        );
        assert_eq!(
            refused(draft("tea".into()).tagged(["t"; 11])),
            "the note has 11 tags of up to 1 characters; 10 tags of 64 are the most",
        );
        add(&memory, draft("x".repeat(8_192)).tagged(["t"; 10]), 0).expect("the bounds themselves");
    }
}

#[test]
fn vectors_and_words_are_joined() {
    for store in stores() {
        let memory = LongTermMemory::new(store).with_embedder(Arc::new(WordCounts(256)));
        for text in ["green tea with milk", "milk", "black coffee"] {
            add(&memory, NoteDraft::new(text, ada()), 0).unwrap();
        }
        let found =
            futures(memory.search(&NoteQuery::new("green tea with milk", vec![ada()]), Time(0))).unwrap();
        let best = &found.hits[0];
        assert_eq!((&*best.note.text, best.by_words), ("green tea with milk", Some(1)));
        assert!((best.score - 1.0).abs() < 1e-9 && best.cosine.is_some_and(|c| c > 0.999), "{best:?}");
        assert!(found.hits.iter().all(|hit| &*hit.note.text != "black coffee"), "{found:?}");
    }
}

#[test]
fn a_note_of_another_embedder_is_found_by_its_words_only() {
    for store in stores() {
        let memory = LongTermMemory::new(store).with_embedder(Arc::new(WordCounts(64)));
        add(&memory, NoteDraft::new("green tea", ada()), 0).unwrap();
        let other = memory.with_embedder(Arc::new(WordCounts(256)));
        let found = futures(other.search(&NoteQuery::new("green tea", vec![ada()]), Time(0))).unwrap();
        assert_eq!((found.hits[0].by_words, found.hits[0].cosine), (Some(1), None));
    }
}

/// An embedder that gives what it is told to give.
struct Broken(Result<Vec<Vec<f32>>, Fault>);

impl Embedder for Broken {
    async fn embed(&self, _: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        self.0.clone()
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn name(&self) -> &'static str {
        "broken"
    }
}

#[test]
fn an_embedder_that_fails_loses_no_note_and_no_search() {
    for store in stores() {
        let fault = Fault::new(FaultSource::Layer, "embedder.down", "the embedder is down");
        for (given, expected) in [
            (Err(fault), "memory layer: the embedder is down"),
            (
                Ok(vec![vec![1.0, 2.0]]),
                "memory layer: embedder `broken` gave 2 numbers where 3 finite ones are due; check its model",
            ),
            (
                Ok(vec![vec![1.0, f32::NAN, 0.0]]),
                "memory layer: embedder `broken` gave 3 numbers where 3 finite ones are due; check its model",
            ),
        ] {
            let broken: Arc<dyn DynEmbedder> = Arc::new(Broken(given));
            let memory = LongTermMemory::new(store.clone()).with_embedder(broken);
            let added = futures(memory.add(NoteDraft::new("green tea", ada()), Time(0))).unwrap();
            assert_eq!(added.unembedded.map(|fault| fault.to_string()).as_deref(), Some(expected));
            let found = futures(memory.search(&NoteQuery::new("tea", vec![ada()]), Time(0))).unwrap();
            assert_eq!(found.hits.len(), 1);
            assert_eq!(found.degraded.map(|fault| fault.to_string()).as_deref(), Some(expected));
        }
    }
}

#[test]
fn a_note_comes_back_as_it_was_given() {
    for store in stores() {
        let memory = LongTermMemory::new(store);
        let metadata = Json::parse(r#"{"n":9007199254740993,"z":1,"a":2}"#).unwrap();
        let mut draft = NoteDraft::new("tea", ada()).tagged([" Drink ", ""]);
        draft.metadata = Some(metadata);
        let added = futures(memory.add(draft, Time(7))).unwrap().note;
        assert_eq!(added.tags, ["drink"]);
        assert_eq!(futures(memory.newest(vec![ada()], Some("DRINK"), Time(9), 5)).unwrap(), [added]);
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use harness_memory::builtin::notes::SqliteNotes;

    use super::*;

    #[test]
    fn notes_outlive_the_program_and_are_shared_between_programs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.db");
        let open = || LongTermMemory::new(Arc::new(SqliteNotes::open(&path).expect("a notes file")));
        let (first, second) = (open(), open());
        add(&first, NoteDraft::new("tea one", ada()), 0).unwrap();
        add(&second, NoteDraft::new("tea two", ada()), 1).unwrap();
        check(&first, &NoteQuery::new("tea", vec![ada()]), &["tea two", "tea one"]);
        drop((first, second));
        check(&open(), &NoteQuery::new("tea", vec![ada()]), &["tea two", "tea one"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_file_and_what_lies_beside_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let memory = LongTermMemory::new(Arc::new(SqliteNotes::open(dir.path().join("notes.db")).unwrap()));
        add(&memory, NoteDraft::new("tea", ada()), 0).unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_ours_or_too_new_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str, sql: &str| {
            let path = dir.path().join(name);
            rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
            let before = std::fs::read(&path).unwrap();
            let error = SqliteNotes::open(&path).unwrap_err();
            assert_eq!(std::fs::read(&path).unwrap(), before, "the file is left alone");
            (error.kind.to_string(), error.message.replace(&*dir.path().to_string_lossy(), "DIR"))
        };
        assert_eq!(
            refused("other.db", "CREATE TABLE t (x)"),
            (
                "notes.open".into(),
                "the file DIR/other.db is a database of another program; choose another file for notes"
                    .into()
            ),
        );
        assert_eq!(
            refused("newer.db", "PRAGMA application_id = 1213099892; PRAGMA user_version = 2"),
            (
                "notes.newer".into(),
                "the notes file DIR/newer.db has version 2, and this program knows versions up to 1; use a \
                 newer program"
                    .into()
            ),
        );
        let text = dir.path().join("text.db");
        std::fs::write(&text, "this is a text and no database, and it is long enough to be read as one")
            .unwrap();
        let error = SqliteNotes::open(&text).unwrap_err();
        assert_eq!(&*error.kind, "notes.open");
        assert!(error.message.contains("file is not a database"), "{error}");
    }
}
