//! What configures a turn.

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::time::Millis;

/// How the calls of one batch are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// One after another, in call order.
    Sequential,
    /// At once, at most this many at a time; results stay in call order. A tool that demands
    /// `sequential` makes its whole batch sequential.
    Parallel {
        /// How many at a time; at least 1. Default 8.
        max: u32,
    },
}

impl Default for Execution {
    fn default() -> Self {
        Self::Parallel { max: 8 }
    }
}

/// What the failure of a call means for the turn. A call that was refused, denied or cut off by a limit is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnToolFailure {
    /// The model reads what went wrong, and the turn goes on.
    #[default]
    Answer,
    /// A tool or registry that panics or faults ends the turn `runtime_error`; the model reads other failures.
    EndOnFault,
    /// So does every other failure: a call of a tool that is not offered ends the turn `tool_unavailable`, an error
    /// result that another attempt would not mend `tool_error_unrecoverable`.
    EndOnError,
}

/// How often a failed call is tried again when its tool says that this may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts after the first. Default 2.
    pub max_retries: u32,
    /// The wait before each; the last one is used again. Default 200 ms, 500 ms.
    pub backoff: Vec<Millis>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 2, backoff: vec![Millis(200), Millis(500)] }
    }
}

impl RetryPolicy {
    /// This many retries with these waits.
    pub fn new(max_retries: u32, backoff: Vec<Millis>) -> Self {
        Self { max_retries, backoff }
    }

    /// The wait before the n-th retry, counted from 1.
    pub(super) fn wait(&self, retry: u32) -> Millis {
        let at = usize::try_from(retry.saturating_sub(1)).unwrap_or(usize::MAX);
        self.backoff.get(at).or_else(|| self.backoff.last()).copied().unwrap_or_default()
    }
}

/// What configures a turn.
///
/// ```
/// use harness_core::Millis;
/// use harness_core::turn::{Execution, OnToolFailure, RetryPolicy, SpecFault, TurnSpec};
///
/// let mut spec = TurnSpec::default();
/// spec.limits.iterations = 12;
/// spec.execution = Execution::Parallel { max: 4 };
/// spec.on_tool_failure = OnToolFailure::Answer;
/// spec.retry = RetryPolicy::new(2, vec![Millis(200), Millis(1_000)]);
/// let faults: Vec<SpecFault> = spec.check();
/// assert!(faults.is_empty(), "{faults:?}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnSpec {
    /// The limits. Default 32 iterations, 128 calls, 30 minutes, 2 invalid outputs in a row.
    pub limits: Limits,
    /// How the calls of one batch are executed. Default at once, 8 at a time.
    pub execution: Execution,
    /// What the failure of a call means for the turn. Default: the model reads it.
    pub on_tool_failure: OnToolFailure,
    /// Retries of retryable error results.
    pub retry: RetryPolicy,
    /// The longest cycle of calls that counts as a loop, in calls. One call that gives the same result to the same
    /// arguments three times in a row ends the turn `redundant_tool_loop`; of longer cycles the model is told once,
    /// and when they go on the turn ends so, too. Default 4, at most 16; 1 looks for single calls only, 0 for no
    /// loops. A tool that declares [`polling`](crate::tool::ToolDef::polling) may repeat itself.
    pub longest_cycle: u32,
    /// Whether the last permitted step is asked without tools, so that the work is summed up before the
    /// turn is deferred: when one iteration is left, when the permitted calls are used up, and when what is left of tokens, money or time would
    /// not do for two more steps like the last one. Default on.
    pub closing_step: bool,
    /// Model steps in a row that may break off and are gone on from; the next one ends the turn `runtime_error`. A step
    /// broke off when its answer is incomplete (stop reason `length`, `paused` or `contentFilter`), when it is empty,
    /// or when the model failed on its way: with the code `provider`, `network`, `timeout` or `protocol`, and without
    /// an HTTP status. A refused request is for wrappers that wait and try again. What the step said stays in the
    /// transcript, its usage counts, its calls do not run, and each attempt is an iteration. Default 0: a model that
    /// fails ends the turn, an answer that was cut off is the answer, and an empty one is invalid.
    pub continue_broken: u32,
}

/// What is wrong with a [`TurnSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}: {expected}")]
#[non_exhaustive]
pub struct SpecFault {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What was expected.
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
    /// Checks the settings; gives every problem.
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
