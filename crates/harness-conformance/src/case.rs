//! Vectors with an input, read into closed types: a word that a runner does not know is the vector's failure.

use std::time::Duration;

use harness_core::Json;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::Done;
use crate::subset::matches;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Words of vectors: what is not among them is refused.
macro_rules! closed {
    ($($(#[$on:meta])* $name:ident { $($(#[$field_on:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(::serde::Deserialize)]
            #[serde(deny_unknown_fields, rename_all = "camelCase")]
            $(#[$on])*
            pub(crate) struct $name { $($(#[$field_on])* pub(crate) $field: $type),* }
        )*
    };
}

pub(crate) use closed;

/// Longer than anything waits.
const ENDLESS: Duration = Duration::from_secs(1_000_000);

/// A vector with an input and an expectation; the rest is for readers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is for readers is named, so that all other words are refused")]
pub(crate) struct Case<I> {
    pub(crate) input: I,
    /// Expected result.
    #[serde(alias = "expected", alias = "wanted")]
    pub(crate) expect: Value,
    /// The keys of the expectation that are compared; all when there is no list.
    #[serde(default)]
    pub(crate) compare: Option<Vec<String>>,
    id: Option<IgnoredAny>,
    source: Option<IgnoredAny>,
    kind: Option<IgnoredAny>,
    #[serde(alias = "title")]
    description: Option<IgnoredAny>,
    tier: Option<IgnoredAny>,
    divergence: Option<IgnoredAny>,
    #[serde(alias = "upstream", alias = "observed_elsewhere")]
    upstream_observed: Option<IgnoredAny>,
    #[serde(alias = "spec_reason")]
    notes: Option<IgnoredAny>,
    decision_note: Option<IgnoredAny>,
}

impl<I: DeserializeOwned> Case<I> {
    /// Reads a vector.
    pub(crate) fn of(vector: &Vector) -> Done<Self> {
        vector.parse()
    }
}

/// Judges what `play` makes of a vector's input against what is expected.
pub(crate) fn each<I: DeserializeOwned>(vector: &Vector, play: impl FnOnce(I) -> Done<Value>) -> Verdict {
    let Case { input, expect, .. } = match Case::of(vector) {
        Ok(case) => case,
        Err(unknown) => return Verdict::Failed(unknown),
    };
    play(input).and_then(|got| matches("expect", &expect, &got)).into()
}

/// Runs asynchronous work on a separate runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|e| e.to_string())?.block_on(work))
}

/// Does work that waits for a [`PausedClock`](crate::clock::PausedClock) or for nothing: time passes when no task
/// can continue, and work that is never woken fails.
pub(crate) fn on_paused_time<T>(work: impl Future<Output = Done<T>>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let tasks = tokio::task::LocalSet::new();
    let work = async { tokio::time::timeout(ENDLESS, tasks.run_until(work)).await };
    let done = runtime.map_err(|e| e.to_string())?.block_on(work);
    done.map_err(|_| "nothing wakes what waits".to_owned())?
}

/// A value as exact JSON.
pub(crate) fn exact(value: &Value) -> Done<Json> {
    Json::of(value).map_err(|e| e.to_string())
}

/// Exact JSON as a value.
pub(crate) fn plain(json: &Json) -> Done<Value> {
    json.to().map_err(|e| e.to_string())
}
