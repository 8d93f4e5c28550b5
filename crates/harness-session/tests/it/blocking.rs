//! A slow disk, and locks of others, hold up nobody but those who wait for them.

use std::fs::File;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use harness_core::Json;
use harness_core::port::{CheckpointStore as _, Durability, Entry, Session as _};
use harness_host::{ArtifactMeta, ArtifactStore as _, Storage as _};
use harness_session::artifact::FolderArtifacts;
use harness_session::checkpoint::FileCheckpoints;
use harness_session::storage::FolderStorage;
use harness_session::testing::Faults;
use harness_session::{FileSession, SyncPolicy};

use crate::support::{Place, head, load, options, say, texts, user};

/// How long a test may take before it has failed.
const LONGEST: Duration = Duration::from_mins(1);

/// Drives a future on one thread, which must be done in time: work that blocked that thread would hang.
#[track_caller]
fn on_one_thread<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let (done, outcome) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = done.send(runtime.block_on(future));
    });
    outcome.recv_timeout(LONGEST).expect("other tasks of the runtime go on")
}

/// Another task: goes on until the disk is found slow, then makes it quick again.
async fn release(faults: &Faults) {
    while !faults.is_stalled() {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    faults.release();
}

#[test]
fn fault_36_other_tasks_go_on_while_an_append_waits_for_a_slow_disk() {
    // The changes of a first append: the file is opened, written, synced, its folder synced.
    for step in 0..4 {
        let kept = on_one_thread(async move {
            let place = Place::new();
            let faults = Faults::none().stalling(step);
            let session = FileSession::open(place.path(), options().faults(&faults)).unwrap();
            let message = user("one");
            let (head, entries) = (head(), [Entry::Message(&message)]);
            let append = session.append(&head, &entries, Durability::Sync);
            let (appended, ()) = tokio::join!(append, release(&faults));
            appended.unwrap();
            texts(&session.load().await.unwrap())
        });
        assert_eq!(kept, ["one"], "change {step}");
    }
}

#[test]
fn fault_36_an_append_at_once_does_not_wait_for_a_sync_of_others() {
    let kept = on_one_thread(async {
        let place = Place::new();
        say(&place.open(), "one").unwrap();
        // The write, then its sync.
        let faults = Faults::none().stalling(1);
        let session = FileSession::open(place.path(), options().faults(&faults)).unwrap();
        session.load().await.unwrap();
        let (two, three) = (user("two"), user("three"));
        let (head, safe, quick) = (head(), [Entry::Message(&two)], [Entry::Message(&three)]);
        let mut append = pin!(session.append(&head, &safe, Durability::Sync));
        assert_eq!(append.as_mut().now_or_never(), None, "a sync is a wait");
        let others = async {
            while !faults.is_stalled() {
                tokio::task::yield_now().await;
            }
            let mut third = pin!(session.append(&head, &quick, Durability::Flush));
            assert_eq!(third.as_mut().now_or_never(), None, "it waits");
            let (third, ()) = tokio::join!(third, release(&faults));
            third.unwrap();
        };
        let (appended, ()) = tokio::join!(append, others);
        appended.unwrap();
        texts(&session.load().await.unwrap())
    });
    assert_eq!(kept, ["one", "two", "three"]);
}

/// What need not wait is answered in place, without a thread.
#[test]
fn fault_36_an_append_that_need_not_wait_is_made_at_once() {
    let place = Place::new();
    let session = FileSession::open(place.path(), options().sync(SyncPolicy::Never)).unwrap();
    say(&session, "one").unwrap();
    for text in ["two", "three"] {
        let (head, message) = (head(), user(text));
        let entries = [Entry::Message(&message)];
        assert_eq!(session.append(&head, &entries, Durability::Sync).now_or_never(), Some(Ok(())));
    }
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three"]);
}

/// An append whose future is dropped counts as begun: what is loaded after it shows it, or it is not there at
/// all.
#[test]
fn fault_36_a_dropped_append_never_comes_after_what_follows_it() {
    for round in 0..50 {
        let place = Place::new();
        let session = FileSession::open(place.path(), options()).unwrap();
        let seen = on_one_thread({
            let session = session.clone();
            async move {
                let message = user("dropped");
                let (head, entries) = (head(), [Entry::Message(&message)]);
                let mut append = Box::pin(session.append(&head, &entries, Durability::Sync));
                for _ in 0..round % 3 {
                    if futures_poll(&mut append).await.is_some() {
                        break;
                    }
                }
                drop(append);
                texts(&session.load().await.unwrap())
            }
        });
        say(&session, "next").unwrap();
        let now = texts(&load(&session).unwrap());
        assert_eq!(now, [seen, vec!["next".to_owned()]].concat(), "round {round}");
    }
}

/// Polls a future once.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

/// Holds the lock of a folder of a store, as another process would, until other tasks went on for a while.
async fn held_lock(folder: &std::path::Path, store: impl Future<Output = ()>) {
    let lock = File::options().write(true).create(true).truncate(false).open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let others = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(lock);
    };
    tokio::join!(store, others);
}

#[test]
fn fault_36_other_tasks_go_on_while_a_folder_store_waits_for_its_lock() {
    on_one_thread(async {
        let place = Place::new();
        let storage = FolderStorage::open(place.folder()).unwrap();
        held_lock(place.folder(), async { storage.set("key", &Json::null()).await.unwrap() }).await;
        held_lock(place.folder(), async { storage.delete("key").await.unwrap() }).await;
    });
    on_one_thread(async {
        let place = Place::new();
        let artifacts = FolderArtifacts::open(place.folder()).unwrap();
        let put = async { drop(artifacts.put(b"bytes", ArtifactMeta::default()).await.unwrap()) };
        held_lock(place.folder(), put).await;
    });
    on_one_thread(async {
        let place = Place::new();
        let checkpoints = FileCheckpoints::open(place.folder()).unwrap();
        held_lock(place.folder(), async { checkpoints.clear(&"r1".into()).await.unwrap() }).await;
    });
}

/// Appends of many tasks on one thread share syncs, as those of many threads do.
#[test]
fn fault_36_appends_of_many_tasks_share_a_sync() {
    let place = Arc::new(Place::new());
    let faults = Faults::none().lasting(2, 7);
    let session = FileSession::open(place.path(), options().faults(&faults)).unwrap();
    on_one_thread(async move {
        let appends = (0..8).map(|number: u8| {
            let session = session.clone();
            tokio::spawn(async move {
                let message = user(&number.to_string());
                session.append(&head(), &[Entry::Message(&message)], Durability::Sync).await
            })
        });
        for append in appends.collect::<Vec<_>>() {
            append.await.unwrap().unwrap();
        }
    });
    assert_eq!(faults.steps(), 6, "seven appends, one write, one sync: {:?}", faults.changes());
    assert_eq!(place.read().loaded.messages.len(), 8);
}
