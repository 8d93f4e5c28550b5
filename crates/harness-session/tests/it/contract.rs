//! The contract of stores, on each store.

use std::collections::HashMap;

use harness_session::testing::{durable_session_contract, session_contract};
use harness_session::{JsonlSession, MemorySession, SyncPolicy};

use crate::support::{Place, options};

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
async fn the_file_store_keeps_the_contract_with_every_sync_policy() {
    for sync in SyncPolicy::ALL {
        let place = Place::new();
        let mut count = 0;
        session_contract(|| {
            count += 1;
            JsonlSession::open(place.folder().join(format!("{count}.jsonl")), options().sync(sync)).unwrap()
        })
        .await;
        durable_session_contract(|name| {
            JsonlSession::open(place.folder().join(name), options().sync(sync)).unwrap()
        })
        .await;
    }
}
