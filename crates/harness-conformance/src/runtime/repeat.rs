//! Vectors of kind `loop`: a body that gives scripted outputs.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::Json;
use harness_flow::{
    ExecutionSpec, Flow, FlowRunner, Loop, LoopSnapshot, OnLoopError, Step, Until, Verdict as Said,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::result;
use crate::Done;
use crate::case::{Case, on_paused_time, plain};
use crate::clock::PausedClock;
use crate::subset::matches;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector. Of the reason of a verdict only whether there is one is compared.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judged(vector).into()
}

fn judged(vector: &Vector) -> Done<()> {
    let Case { input, mut expect, .. } = Case::of(vector)?;
    for verdict in expect.get_mut("verdicts").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(reason) = verdict.get_mut("reason").filter(|reason| reason.is_string()) {
            *reason = json!("$nonempty");
        }
    }
    matches("expected", &expect, &on_paused_time(check(input))?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A failure has a `!` before its message.
    outputs: VecDeque<String>,
    until: Predicate,
    #[serde(default)]
    on_error: OnError,
    max_iterations: Option<u64>,
    max_history: Option<usize>,
    prepare_next: Option<Prepare>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnError {
    #[default]
    Abort,
    Retry,
    Skip,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Prepare {
    Feedback,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Predicate {
    MaxSteps(u64),
    Converged(bool),
    OutputContains(String),
    OutputEquals(String),
    Any(Vec<Self>),
    All(Vec<Self>),
    Throws(String),
    Verified(Verified),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verified {
    pass_on: String,
    feedback: String,
}

#[derive(Default)]
struct Seen {
    inputs: Vec<Value>,
    verdicts: Vec<Value>,
    snapshot: Option<LoopSnapshot>,
    /// Whether the predicate failed instead of saying something.
    threw: bool,
}

async fn check(input: Input) -> Done<Value> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let until = noted(input.until.until(&seen)?, &seen);
    let mut repeat = Loop::new("L", [body(input.outputs, &seen)], until).on_error(match input.on_error {
        OnError::Abort => OnLoopError::Fail,
        OnError::Retry => OnLoopError::Retry,
        OnError::Skip => OnLoopError::Skip,
    });
    if let Some(most) = input.max_iterations {
        repeat = repeat.max_iterations(most);
    }
    if let Some(most) = input.max_history {
        repeat = repeat.max_history(most);
    }
    if let Some(Prepare::Feedback) = input.prepare_next {
        repeat = repeat.prepare(|output, said, _| {
            let output = output.to::<String>().unwrap_or_else(|_| output.to_string());
            Json::string(&format!("{output}|{}", said.feedback.as_deref().unwrap_or_default()))
        });
    }
    let flow = Flow::new(repeat).map_err(|faults| faults.to_string())?;
    let execution = FlowRunner::new(Arc::new(PausedClock::new())).start(ExecutionSpec::new("run"));
    let done = execution.run(&flow, Json::string("in")).await;
    let seen = seen.lock();
    Ok(json!({
        "result": result(&done)?,
        "inputs": seen.inputs,
        "verdicts": seen.verdicts,
        "last_snapshot": seen.snapshot.as_ref().map(snapshot).transpose()?,
    }))
}

fn body(outputs: VecDeque<String>, seen: &Arc<Mutex<Seen>>) -> Step {
    let (outputs, seen) = (Mutex::new(outputs), Arc::clone(seen));
    Step::run("b", move |input: Value, _| {
        seen.lock().inputs.push(input);
        let next = outputs.lock().pop_front().unwrap_or_else(|| "!no output is left".to_owned());
        async move { next.strip_prefix('!').map_or(Ok(next.clone()), |problem| Err(problem.to_owned())) }
    })
}

/// The predicate, with what it says noted.
fn noted(until: Until, seen: &Arc<Mutex<Seen>>) -> Until {
    let seen = Arc::clone(seen);
    Until::custom(move |snapshot| {
        let (until, seen) = (until.clone(), Arc::clone(&seen));
        async move {
            let said: Said = until.judge(&snapshot).await;
            let mut seen = seen.lock();
            if !std::mem::take(&mut seen.threw) {
                seen.verdicts
                    .push(json!({ "stop": said.stop, "reason": said.reason, "feedback": said.feedback }));
            }
            seen.snapshot = Some(snapshot);
            Ok(said)
        }
    })
}

impl Predicate {
    fn until(self, seen: &Arc<Mutex<Seen>>) -> Done<Until> {
        let all = |of: Vec<Self>| of.into_iter().map(|one| one.until(seen)).collect::<Done<Vec<_>>>();
        Ok(match self {
            Self::MaxSteps(most) => Until::max_steps(most),
            Self::Converged(true) => Until::converged(),
            Self::Converged(false) => return Err("`converged` is not switched off".to_owned()),
            Self::OutputContains(marker) => Until::output_contains(marker),
            Self::OutputEquals(sentinel) => Until::output_equals(sentinel),
            Self::Any(of) => Until::any(all(of)?),
            Self::All(of) => Until::all(all(of)?),
            Self::Throws(problem) => {
                let seen = Arc::clone(seen);
                Until::custom(move |_| {
                    seen.lock().threw = true;
                    std::future::ready(Err(problem.clone()))
                })
            }
            Self::Verified(Verified { pass_on, feedback }) => Until::verified(move |snapshot| {
                let passes = snapshot.last_text == pass_on;
                std::future::ready(Ok(if passes { Ok(()) } else { Err(feedback.clone()) }))
            }),
        })
    }
}

fn snapshot(snapshot: &LoopSnapshot) -> Done<Value> {
    let history = snapshot.history.iter().map(plain).collect::<Done<Vec<_>>>()?;
    Ok(json!({ "step_count": snapshot.step_count, "history": history }))
}
