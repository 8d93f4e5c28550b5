//! The contract of stores, on each store.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Durability, DynSession, Entry};
use harness_session::artifact::{FolderArtifacts, MemoryArtifacts};
use harness_session::checkpoint::{FileCheckpoints, MemoryCheckpoints};
use harness_session::storage::{FolderStorage, MemoryStorage};
use harness_session::testing::{
    artifact_contract, checkpoint_contract, durable_session_contract, session_contract, storage_contract,
};
use harness_session::{FileSession, MemorySession, SyncPolicy};

use crate::support::{Place, head, options};

#[tokio::test]
async fn the_memory_store_keeps_the_contract() {
    session_contract(MemorySession::new).await;
    let mut sessions: HashMap<String, MemorySession> = HashMap::new();
    durable_session_contract(|name| {
        sessions.entry(name.to_owned()).or_insert_with(|| MemorySession::named(name)).clone()
    })
    .await;
}

#[tokio::test]
async fn fault_34_every_store_replaces_what_it_holds() {
    let place = Place::new();
    let (file, memory) = (place.open(), MemorySession::new());
    let head = head();
    let [old, new] = ["old", "new"].map(|text| Arc::new(Message::user(text)));
    for session in [&file as &dyn DynSession, &memory] {
        session.append_boxed(&head, &[Entry::Message(&old)], Durability::Flush).await.unwrap();
        assert_eq!(session.replace_boxed(&head, &[Arc::clone(&new)]).await, Ok(true));
        assert_eq!(session.load_boxed().await.unwrap().messages, [Arc::clone(&new)]);
    }
}

#[tokio::test]
async fn the_file_store_keeps_the_contract_with_every_sync_policy() {
    for sync in SyncPolicy::ALL {
        let place = Place::new();
        let mut count = 0;
        session_contract(|| {
            count += 1;
            FileSession::open(place.folder().join(format!("{count}.jsonl")), options().sync(sync)).unwrap()
        })
        .await;
        durable_session_contract(|name| {
            FileSession::open(place.folder().join(name), options().sync(sync)).unwrap()
        })
        .await;
    }
}

#[tokio::test]
async fn the_database_store_keeps_the_contract_with_every_sync_policy() {
    for sync in SyncPolicy::ALL {
        let place = Place::new();
        let open = |name: &str| {
            let path = place.folder().join(format!("chats.db#{name}"));
            FileSession::open(path, options().sync(sync)).unwrap()
        };
        let mut count = 0;
        session_contract(|| {
            count += 1;
            open(&count.to_string())
        })
        .await;
        durable_session_contract(open).await;
    }
}

#[tokio::test]
async fn encrypted_stores_keep_the_contract() {
    let place = Place::new();
    let key = harness_session::Key::create(place.folder().join("key")).unwrap();
    for home in ["", "chats.db#"] {
        let open = |name: &str| {
            FileSession::open(place.folder().join(format!("{home}{name}")), options().key(key.clone()))
                .unwrap()
        };
        let mut count = 0;
        session_contract(|| {
            count += 1;
            open(&count.to_string())
        })
        .await;
        durable_session_contract(open).await;
    }
}

/// A new folder each time, below that of a test.
fn folders(place: &Place) -> impl FnMut() -> PathBuf {
    let mut count = 0;
    move || {
        count += 1;
        place.folder().join("a").join(count.to_string())
    }
}

#[tokio::test]
async fn the_key_value_stores_keep_their_contract() {
    storage_contract(MemoryStorage::new).await;
    let place = Place::new();
    let mut next = folders(&place);
    storage_contract(|| FolderStorage::open(next()).unwrap()).await;
}

#[tokio::test]
async fn the_artifact_stores_keep_their_contract() {
    artifact_contract(MemoryArtifacts::new).await;
    let place = Place::new();
    let mut next = folders(&place);
    artifact_contract(|| FolderArtifacts::open(next()).unwrap()).await;
}

#[tokio::test]
async fn the_checkpoint_stores_keep_their_contract() {
    checkpoint_contract(MemoryCheckpoints::new).await;
    let place = Place::new();
    let mut next = folders(&place);
    checkpoint_contract(|| FileCheckpoints::open(next()).unwrap()).await;
}
