//! Values that an engine keeps.

use futures_util::FutureExt as _;
use harness::core::Json;
use harness::host::{Storage as _, StorageError};
use harness::session::testing::storage_contract;
use harness_restate::durable::sim::{SimClient, SimFaults};
use harness_restate::durable::{DirectoryAsk, DirectoryService as _, EngineStorage, SimEngine};

fn client(duplicate: bool) -> SimClient {
    SimEngine::new(SimFaults { duplicate, ..SimFaults::default() }).client()
}

/// Nothing of a simulated engine waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().unwrap()
}

#[test]
fn an_engine_keeps_the_contract_of_storage() {
    for duplicate in [false, true] {
        now(storage_contract(|| EngineStorage::new(client(duplicate))));
    }
}

#[test]
fn directories_are_known_while_there_is_something_in_them() {
    let engine = client(true);
    let storage = EngineStorage::new(engine.clone());
    let directories =
        |directory: &str| now(engine.ask_directory(directory, &DirectoryAsk::List)).unwrap().directories;
    now(storage.set("a/b/c/one", &Json::null())).unwrap();
    now(storage.set("a/b/c/two", &Json::null())).unwrap();
    now(storage.set("a/three", &Json::null())).unwrap();
    assert_eq!(
        (directories(""), directories("a/"), directories("a/b/")),
        (vec!["a/".into()], vec!["b/".into()], vec!["c/".into()])
    );
    now(storage.delete("a/b/c/none")).unwrap();
    now(storage.delete("a/b/c/one")).unwrap();
    assert_eq!(directories("a/b/"), ["c/"]);
    now(storage.delete("a/b/c/two")).unwrap();
    assert_eq!((directories(""), directories("a/")), (vec!["a/".to_owned()], Vec::new()));
    now(storage.delete("a/three")).unwrap();
    assert!(directories("").is_empty());
    now(storage.delete("a/three")).unwrap();
}

#[test]
fn what_is_too_large_is_refused_with_its_limit() {
    let storage = EngineStorage::new(client(false));
    let told = |error: StorageError| format!("{}: {}", error.kind, error.message);
    let large = Json::string(&"x".repeat(1 << 20));
    assert_eq!(
        told(now(storage.set("orders/17", &large)).unwrap_err()),
        "storage.too_large: stored value `orders/17` has 1048578 bytes, the limit is 1048576 bytes (store less)"
    );
    assert_eq!(
        told(now(storage.get(&"k".repeat(1_001))).unwrap_err()),
        "storage.long_key: a key has 1001 bytes, the limit is 1000 bytes (use a shorter one)"
    );
}
