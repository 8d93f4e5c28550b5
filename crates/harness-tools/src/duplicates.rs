//! Guard against repeated calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope,
};
use harness_core::{Fault, Json, ToolName};
use harness_host::first_units;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::refusal;
use crate::state::{Keep, Kept, MOST_KEPT};

/// Maximum length of the earlier output in the second hint, in UTF-16 units.
const REPEATED: usize = 1_200;

/// Suffix of a cut output; twelve units.
const CUT: &str = "…[truncated]";

/// Maximum length of a stored output, in UTF-16 units.
const KEPT: usize = 4_096;

/// Maximum number of stored calls of a run; the oldest is dropped.
const MOST_CALLS: usize = 1_000;

const BLOCKED: &str = "redundant_call_blocked";
const ABORTED: &str = "redundant_call_loop_aborted";

/// Options of a [`DuplicateGuard`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateOptions {
    /// Maximum number of runs with stored calls. Default 50; at least 1.
    pub max_runs: usize,
    /// Names of tools that may be repeated, such as those that wait for a change. Default none.
    pub exempt: Vec<ToolName>,
}

impl Default for DuplicateOptions {
    fn default() -> Self {
        Self { max_runs: MOST_KEPT, exempt: Vec::new() }
    }
}

/// Registry that answers repeated calls itself: the same tool with equal arguments, after a success in the
/// same run.
///
/// The first repetition returns a hint, the second a hint and the start of the earlier result, and further
/// ones the error `redundant_call_loop_aborted`. Arguments are equal as JSON values, in any order of keys.
/// Failures are not stored. At most 1,000 calls are stored per run, for the 50 latest runs.
///
/// `metadata.idempotencyGuard` of such a result has `blocked`, `code`, `tier`, `duplicateCount`,
/// `previousIteration` (number of the success in the run) and `previousOutputChars` (UTF-16 units).
#[derive(Clone)]
pub struct DuplicateGuard {
    inner: Arc<dyn DynToolRegistry>,
    exempt: Arc<[ToolName]>,
    runs: Arc<Kept<Calls>>,
    alternatives: Arc<Alternatives>,
}

/// Alternatives to a call, for the model.
type Alternatives = dyn Fn(&ToolCall) -> String + Send + Sync;

/// Default alternatives in the first hint.
const INSTEAD: &str = "call it with other arguments, use another tool, or answer with what you have";

impl std::fmt::Debug for DuplicateGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuplicateGuard").field("exempt", &self.exempt).finish_non_exhaustive()
    }
}

impl DuplicateGuard {
    /// Wraps a registry.
    pub fn new(inner: Arc<dyn DynToolRegistry>, options: DuplicateOptions) -> Self {
        let runs = Arc::new(Kept::new(Keep::Run, options.max_runs));
        Self { inner, exempt: options.exempt.into(), runs, alternatives: Arc::new(|_| INSTEAD.to_owned()) }
    }

    /// Sets the alternatives in the first hint, as the rest of a sentence: `read the file itself, or answer
    /// with what you have`.
    #[must_use]
    pub fn with_alternatives(mut self, of: impl Fn(&ToolCall) -> String + Send + Sync + 'static) -> Self {
        self.alternatives = Arc::new(of);
        self
    }
}

#[derive(Debug, Default)]
struct Calls {
    successes: u32,
    known: BTreeMap<String, Earlier>,
}

/// A successful call.
#[derive(Debug)]
struct Earlier {
    /// Number of the success in the run.
    number: u32,
    output: String,
    output_units: usize,
    repeated: u32,
}

impl Calls {
    /// Result of a repeated call.
    fn repeated(&mut self, key: &str, call: &ToolCall, instead: &Alternatives) -> Option<ToolOutcome> {
        let earlier = self.known.get_mut(key)?;
        earlier.repeated += 1;
        Some(earlier.answer(call, instead))
    }

    fn remember(&mut self, key: String, output: &str) {
        self.successes += 1;
        if self.known.len() >= MOST_CALLS {
            let oldest =
                self.known.iter().min_by_key(|(_, earlier)| earlier.number).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.known.remove(&key));
        }
        let earlier = Earlier {
            number: self.successes,
            output: first_units(output, KEPT).to_owned(),
            output_units: output.encode_utf16().count(),
            repeated: 0,
        };
        self.known.insert(key, earlier);
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    blocked: bool,
    code: &'static str,
    tier: u32,
    duplicate_count: u32,
    previous_iteration: u32,
    previous_output_chars: usize,
}

impl Earlier {
    fn answer(&self, call: &ToolCall, instead: &Alternatives) -> ToolOutcome {
        let tier = self.repeated.min(3);
        let name = &call.name;
        let mut outcome = match tier {
            1 => ToolOutcome::text(format!(
                "You have called `{name}` with these arguments before (call {}), and it gave {} characters. Use \
                 that result. If it is not enough, {}.",
                self.number,
                self.output_units,
                instead(call)
            )),
            2 => ToolOutcome::text(format!(
                "`{name}` was not called again: you have its result for these arguments already. Do not repeat \
                 this call. What it gave:\n\n{}",
                self.beginning()
            )),
            _ => refusal(
                ABORTED,
                format!(
                    "`{name}` was called with the same arguments {} times, although its result was given",
                    self.repeated + 1
                ),
            ),
        };
        let note = Note {
            blocked: true,
            code: if tier == 3 { ABORTED } else { BLOCKED },
            tier,
            duplicate_count: self.repeated,
            previous_iteration: self.number,
            previous_output_chars: self.output_units,
        };
        outcome.metadata = Json::of(&BTreeMap::from([("idempotencyGuard", note)])).ok();
        outcome
    }

    fn beginning(&self) -> String {
        let shown = first_units(&self.output, REPEATED);
        if shown.len() < self.output.len() { format!("{shown}{CUT}") } else { shown.to_owned() }
    }
}

/// Identity of a call: the name, and the arguments with sorted keys.
fn key(call: &ToolCall) -> String {
    // Arguments with a number that `Value` cannot represent are compared as written.
    let sorted = call.arguments.to().map(|value: Value| Json::from(value));
    let arguments = sorted.ok().filter(|sorted| exact(sorted, &call.arguments));
    format!("{}::{}", call.name, arguments.as_ref().unwrap_or(&call.arguments))
}

/// Whether a value has all digits of its text: numbers beyond 64 bits, and fractions, may not.
fn exact(value: &Json, written: &Json) -> bool {
    let digits = |json: &Json| json.text().bytes().filter(u8::is_ascii_digit).count();
    digits(value) == digits(written)
}

/// Output of a call for the model.
fn output_of(outcome: &ToolOutcome) -> String {
    let texts: Vec<&str> = outcome.content.iter().filter_map(|block| block.as_text()).collect();
    match (&outcome.structured, texts.is_empty()) {
        (Some(data), true) => data.text().to_owned(),
        _ => texts.join("\n"),
    }
}

impl ToolRegistry for DuplicateGuard {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.inner.list_boxed(scope).await
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.inner.check_dyn(call)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        if self.exempt.contains(&cx.call.name) {
            return self.inner.call_boxed(cx).await;
        }
        let (origin, key) = (Arc::clone(&cx.origin), key(&cx.call));
        if let Some(answer) =
            self.runs.with(&origin, |calls| calls.repeated(&key, &cx.call, &*self.alternatives))
        {
            tracing::debug!(tool = %cx.call.name, call = %cx.call.id, "repeated call answered without running it");
            return Ok(answer);
        }
        let outcome = self.inner.call_boxed(cx).await?;
        if !outcome.is_error() {
            self.runs.with(&origin, |calls| calls.remember(key, &output_of(&outcome)));
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, same: bool) {
        let key = |arguments| key(&ToolCall::new("c", "t", Json::parse(arguments).unwrap()));
        assert_eq!(key(a) == key(b), same, "{} and {}", key(a), key(b));
    }

    #[test]
    fn arguments_are_the_same_whatever_the_order_of_keys() {
        check(r#"{"a":1,"b":{"d":2,"c":3}}"#, r#"{"b":{"c":3,"d":2},"a":1}"#, true);
        check(r#"{"a":1}"#, r#"{"a":2}"#, false);
        check(r#"{"a":"1"}"#, r#"{"a":1}"#, false);
        check(r#"{"n":12345678901234567890123}"#, r#"{"n":12345678901234567890124}"#, false);
        check(r#"{"n":1e400}"#, r#"{"n":1e400}"#, true);
    }
}
