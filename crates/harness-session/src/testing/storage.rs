//! Contract of key-value stores.

use harness_core::Json;
use harness_host::Storage;

/// Keys that a careless store would mix up or lose.
const KEYS: &[&str] = &[
    "plan",
    "Plan",
    "plan.json",
    "a/b",
    "a%2fb",
    "a/b/c",
    "..",
    "",
    " ",
    "nul\u{0}",
    "\u{e4}\u{1f600}",
    "lock",
    "x~",
];

/// Checks a store against the rules of the [`Storage`] port.
///
/// `make` gives a new, empty store each time. Call it in a test of your store, on any executor:
///
/// ```
/// # async fn test() {
/// use harness_session::storage::MemoryStorage;
/// use harness_session::testing::storage_contract;
///
/// storage_contract(MemoryStorage::new).await;
/// # }
/// ```
///
/// # Panics
/// When a rule is broken; the text names it.
pub async fn storage_contract<S: Storage>(mut make: impl FnMut() -> S) {
    a_value_is_what_was_set_last(&make()).await;
    every_key_is_its_own(&make()).await;
    keys_are_listed_by_prefix_and_sorted(&make()).await;
    several_are_got_at_once(&make()).await;
}

async fn a_value_is_what_was_set_last(store: &impl Storage) {
    assert_eq!(store.get("k").await, Ok(None), "a key that was not set is absent");
    for text in [r#"{"z":9007199254740993,"a":1.10,"m":[1e400]}"#, "null", r#""""#, "[]"] {
        let value = Json::parse(text).unwrap_or_default();
        assert_eq!(store.set("k", &value).await, Ok(()), "a value is set");
        assert_eq!(store.get("k").await, Ok(Some(value)), "the last value counts, exactly");
    }
    assert_eq!(store.delete("k").await, Ok(()), "a value is removed");
    assert_eq!(store.get("k").await, Ok(None), "a removed key is absent");
    assert_eq!(store.delete("k").await, Ok(()), "removing what is not there is no error");
}

async fn every_key_is_its_own(store: &impl Storage) {
    let long = ["long/".repeat(150), "long/".repeat(199)];
    let keys: Vec<&str> = KEYS.iter().copied().chain(long.iter().map(|key| &**key)).collect();
    for key in &keys {
        assert_eq!(store.set(key, &Json::string(key)).await, Ok(()), "the key {key:?} can be set");
    }
    for key in &keys {
        assert_eq!(store.get(key).await, Ok(Some(Json::string(key))), "the key {key:?} has its own value");
    }
    let mut sorted: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
    sorted.sort();
    assert_eq!(store.list("").await, Ok(sorted), "all keys are listed");
    for key in &keys {
        assert_eq!(store.delete(key).await, Ok(()), "the key {key:?} can be removed");
    }
    assert_eq!(store.list("").await, Ok(Vec::new()), "nothing is left");
}

async fn keys_are_listed_by_prefix_and_sorted(store: &impl Storage) {
    for key in ["thread/b", "thread/a", "resource/x", "thread", "threads/c"] {
        assert_eq!(store.set(key, &Json::null()).await, Ok(()), "a value is set");
    }
    let listed = |keys: &[&str]| Ok(keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    assert_eq!(store.list("thread/").await, listed(&["thread/a", "thread/b"]), "a prefix is one of text");
    assert_eq!(
        store.list("thread").await,
        listed(&["thread", "thread/a", "thread/b", "threads/c"]),
        "keys are sorted"
    );
    assert_eq!(store.list("thread/a/").await, listed(&[]), "no key, no error");
}

async fn several_are_got_at_once(store: &impl Storage) {
    for key in ["a", "b"] {
        assert_eq!(store.set(key, &Json::string(key)).await, Ok(()), "a value is set");
    }
    let keys = ["b", "c", "a"].map(str::to_owned);
    let expected = ["a", "b"].map(|key| (key.to_owned(), Json::string(key)));
    assert_eq!(store.get_many(&keys).await, Ok(expected.into()), "what is absent is left out");
}
