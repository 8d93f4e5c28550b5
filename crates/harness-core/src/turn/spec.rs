//! The settings of a turn.

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::time::Millis;

/// Execution of the calls of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// One after another, in call order.
    Sequential,
    /// In parallel; results stay in call order. A `sequential` tool makes its whole batch sequential.
    Parallel {
        /// Calls at a time, at least 1. Default 8.
        max: u32,
    },
}

impl Default for Execution {
    fn default() -> Self {
        Self::Parallel { max: 8 }
    }
}

/// The effect of a failed call on the turn. Calls that were refused, denied or cut off by a limit do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnToolFailure {
    /// The model receives the error, and the turn continues.
    #[default]
    Answer,
    /// A panic or error of the tool or registry itself ends the turn with `runtime_error`; the model receives other
    /// errors.
    EndOnFault,
    /// Every failure ends the turn: a call of an unknown tool with `tool_unavailable`, an error result that is not
    /// retryable with `tool_error_unrecoverable`.
    EndOnError,
}

/// Retries of failed calls whose error is retryable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryPolicy {
    /// Attempts after the first. Default 2.
    pub max_retries: u32,
    /// The wait before each retry; the last one repeats. Default 200 ms, 500 ms.
    pub backoff: Vec<Millis>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 2, backoff: vec![Millis(200), Millis(500)] }
    }
}

impl RetryPolicy {
    /// The wait before the n-th retry, from 1.
    pub(super) fn wait(&self, retry: u32) -> Millis {
        let at = usize::try_from(retry.saturating_sub(1)).unwrap_or(usize::MAX);
        self.backoff.get(at).or_else(|| self.backoff.last()).copied().unwrap_or_default()
    }
}

/// The settings of a turn.
///
/// ```
/// use harness_core::Millis;
/// use harness_core::turn::{Execution, OnToolFailure, RetryPolicy, SpecFault, TurnSpec};
///
/// let mut spec = TurnSpec::default();
/// spec.limits.iterations = 12;
/// spec.execution = Execution::Parallel { max: 4 };
/// spec.on_tool_failure = OnToolFailure::Answer;
/// spec.retry = RetryPolicy { max_retries: 2, backoff: vec![Millis(200), Millis(1_000)] };
/// let faults: Vec<SpecFault> = spec.check();
/// assert!(faults.is_empty(), "{faults:?}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnSpec {
    /// The limits. Default 32 iterations, 128 calls, 30 minutes, 2 invalid answers in a row.
    pub limits: Limits,
    /// Execution of the calls of one batch. Default in parallel, 8 at a time.
    pub execution: Execution,
    /// The effect of a failed call on the turn. Default: the model receives the error.
    pub on_tool_failure: OnToolFailure,
    /// Retries of retryable error results.
    pub retry: RetryPolicy,
    /// The longest cycle of calls that counts as a loop, in calls. A call that gives the same result for the same
    /// arguments three times in a row ends the turn with `redundant_tool_loop`. For longer cycles the model is warned
    /// once; a second cycle ends the turn. Default 4, at most 16; 1 detects single calls only, 0 no loops. Tools with
    /// [`polling`](crate::tool::ToolDef::polling) may repeat.
    pub longest_cycle: u32,
    /// Whether the last permitted request has no tools, so that the model sums up before the turn is deferred. It is the
    /// last one when one iteration is left, when no tool call is left, or when tokens, cost or time do not suffice for
    /// two more steps like the last. Default on.
    pub closing_step: bool,
    /// Broken model steps in a row that the turn continues from; the next one ends it with `runtime_error`. A step is
    /// broken when its answer is incomplete (stop reason `length`, `paused` or `contentFilter`) or empty, or when the
    /// model failed with the code `provider`, `network`, `timeout` or `protocol` and without an HTTP status. Its text
    /// stays in the transcript, its usage counts, its calls do not run, and each attempt is an iteration. Default 0: a
    /// model error ends the turn, an incomplete answer is the answer, and an empty one is invalid.
    pub continue_broken: u32,
}

/// An invalid setting of a [`TurnSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}: {expected}")]
#[non_exhaustive]
pub struct SpecFault {
    /// The path of the field.
    pub field: &'static str,
    /// The invalid value.
    pub value: String,
    /// The expected value.
    pub expected: &'static str,
}

impl Default for TurnSpec {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            execution: Execution::default(),
            on_tool_failure: OnToolFailure::default(),
            retry: RetryPolicy::default(),
            longest_cycle: 4,
            closing_step: true,
            continue_broken: 0,
        }
    }
}

impl TurnSpec {
    /// Validates the settings. Returns all errors.
    pub fn check(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        if self.longest_cycle > super::loops::LONGEST {
            let value = self.longest_cycle.to_string();
            faults.push(SpecFault { field: "longestCycle", value, expected: "it must be at most 16" });
        }
        let mut require = |field, value: u64, expected| {
            if value == 0 {
                faults.push(SpecFault { field, value: value.to_string(), expected });
            }
        };
        require("limits.iterations", u64::from(self.limits.iterations), "it must be at least 1");
        require("limits.invalidOutputs", u64::from(self.limits.invalid_outputs), "it must be at least 1");
        if let Some(elapsed) = self.limits.elapsed {
            require("limits.elapsed", elapsed.0, "it must be at least 1 ms, or none for no limit");
        }
        if let Execution::Parallel { max } = self.execution {
            require("execution.parallel.max", u64::from(max), "it must be at least 1");
        }
        if self.retry.max_retries > 0 {
            let waits = self.retry.backoff.len() as u64;
            require("retry.backoff", waits, "it must hold at least one wait when there are retries");
        }
        faults
    }
}
