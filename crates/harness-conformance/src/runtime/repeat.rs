//! Vectors of kind `loop`: a body that gives scripted outputs.

use std::collections::VecDeque;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex};

use harness_core::message::Cost;
use harness_core::testing::VirtualClock;
use harness_core::{Json, Millis, Time};
use harness_runtime::flow::{
    ExecutionSpec, Flow, FlowRunner, Loop, LoopSnapshot, OnLoopError, Step, Until, Verdict as Said,
};
use serde_json::{Value, json};

use super::super::memory::each;
use super::super::turn::convert::{Done, at, list};
use super::error::result;
use super::{drive, locked};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

#[derive(Default)]
struct Seen {
    inputs: Vec<Value>,
    verdicts: Vec<Value>,
    snapshot: Option<LoopSnapshot>,
}

fn check(input: &Value) -> Done<Value> {
    let (clock, seen) = (VirtualClock::still(Time(0)), Arc::new(Mutex::new(Seen::default())));
    let until = noted(until(at(input, "until"))?, &seen);
    let mut repeat = Loop::new("loop", [body(input, &seen)], until);
    repeat = match at(input, "on_error").as_str() {
        Some("retry") => repeat.on_error(OnLoopError::Retry),
        Some("skip") => repeat.on_error(OnLoopError::Skip),
        _ => repeat,
    };
    if let Some(most) = at(input, "max_iterations").as_u64() {
        repeat = repeat.max_iterations(most);
    }
    if let Some(most) = at(input, "max_history_size").as_u64() {
        repeat = repeat.max_history(usize::try_from(most).unwrap_or(usize::MAX));
    }
    let flow = Flow::new(repeat).map_err(|faults| faults.to_string())?;
    let execution = FlowRunner::new(Arc::new(clock.clone())).begin(ExecutionSpec::new("run"));
    let done = drive(&clock, execution.run(&flow, Json::string("in")), || false)?;
    let done = done.as_ref().map(result);
    let seen = locked(&seen);
    Ok(json!({
        "result": done,
        "inputs": seen.inputs,
        "verdicts": seen.verdicts,
        "last_snapshot": seen.snapshot.as_ref().map(snapshot),
    }))
}

fn body(input: &Value, seen: &Arc<Mutex<Seen>>) -> Step {
    let outputs: VecDeque<Value> = list(input, "outputs").iter().cloned().collect();
    let (outputs, seen) = (Mutex::new(outputs), Arc::clone(seen));
    Step::run("body", move |input: Value, _| {
        locked(&seen).inputs.push(input);
        let next = locked(&outputs).pop_front().unwrap_or_default();
        async move {
            match next.as_str().and_then(|text| text.strip_prefix('!')) {
                Some(problem) => Err(problem.to_owned()),
                None => Ok(next),
            }
        }
    })
}

/// The predicate, with what it says noted.
fn noted(until: Until, seen: &Arc<Mutex<Seen>>) -> Until {
    let seen = Arc::clone(seen);
    Until::custom(move |snapshot| {
        let (until, seen) = (until.clone(), Arc::clone(&seen));
        async move {
            let said: Said = until.judge(&snapshot).await;
            let mut seen = locked(&seen);
            let shown = json!({ "stop": said.stop, "reason": said.reason, "feedback": said.feedback });
            seen.verdicts.push(shown);
            seen.snapshot = Some(snapshot);
            Ok(said)
        }
    })
}

fn until(form: &Value) -> Done<Until> {
    if form.as_str() == Some("never") {
        return Ok(Until::never());
    }
    let Some((name, value)) = form.as_object().and_then(|form| form.iter().next()) else {
        return Err(format!("{form} is no predicate"));
    };
    let number = || value.as_u64().ok_or_else(|| format!("{name}: {value} is no number"));
    let words = || value.as_str().unwrap_or_default().to_owned();
    let nested = || value.as_array().into_iter().flatten().map(until).collect::<Done<Vec<_>>>();
    Ok(match name.as_str() {
        "max_steps" => Until::max_steps(number()?),
        "max_duration" => Until::max_duration(Millis(number()?)),
        "max_cost" => Until::max_cost(Cost::from_str(&value.to_string()).map_err(|e| e.to_string())?),
        "no_tool_calls" => Until::no_tool_calls(),
        "never" => Until::never(),
        "converged" => Until::converged(),
        "output_contains" => Until::output_contains(words()),
        "output_equals" => Until::output_equals(words()),
        "throws" => failing(words()),
        "any" => Until::any(nested()?),
        "all" => Until::all(nested()?),
        other => return Err(format!("`{other}` is no predicate")),
    })
}

fn failing(problem: String) -> Until {
    Until::custom(move |_| {
        let problem = problem.clone();
        async move { Err(problem) }
    })
}

fn snapshot(snapshot: &LoopSnapshot) -> Value {
    let plain = |value: &Json| value.to::<Value>().unwrap_or_default();
    json!({
        "step_count": snapshot.step_count,
        "history": snapshot.history.iter().map(plain).collect::<Vec<_>>(),
        "last_output": plain(&snapshot.last_output),
        "last_text": snapshot.last_text,
        "depth": snapshot.depth,
        "tokens": snapshot.tokens,
    })
}
