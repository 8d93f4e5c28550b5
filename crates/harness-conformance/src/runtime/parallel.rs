//! Vectors of kind `parallel`: paths with delays, on virtual time.

use std::sync::{Arc, Mutex};

use harness_core::port::Clock as _;
use harness_core::testing::VirtualClock;
use harness_core::{Json, Millis, Time};
use harness_runtime::flow::{ExecutionSpec, Flow, FlowRunner, Parallel, PathResult, Step};
use serde_json::{Value, json};

use super::super::memory::each;
use super::super::turn::convert::{Done, at, list, text};
use super::error::result;
use super::{drive, locked};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

fn check(input: &Value) -> Done<Value> {
    let clock = VirtualClock::still(Time(0));
    let started = Arc::new(Mutex::new(Vec::new()));
    let paths: Vec<Step> = list(input, "paths").iter().map(|path| step(path, &clock, &started)).collect();
    let parallel = match text(input, "mode") {
        "all" => Parallel::all_merged("F", paths, |outputs| Ok(joined(outputs.iter().map(plain), ","))),
        "settle" => Parallel::settle("F", paths, |results| Ok(joined(results.iter().map(settled), ","))),
        "race" => Parallel::race("F", paths),
        other => return Err(format!("`{other}` is no mode")),
    };
    let parallel = match at(input, "concurrency").as_u64() {
        Some(most) => parallel.concurrency(usize::try_from(most).unwrap_or(usize::MAX)),
        None => parallel,
    };
    let flow = Flow::new(parallel).map_err(|faults| faults.to_string())?;
    let execution = FlowRunner::new(Arc::new(clock.clone())).begin(ExecutionSpec::new("run"));
    let done = drive(&clock, execution.run(&flow, Json::string("in")), || false)?;
    let done = done.as_ref().map(result);
    let started = locked(&started).clone();
    Ok(json!({ "result": done, "started": started }))
}

fn step(path: &Value, clock: &VirtualClock, started: &Arc<Mutex<Vec<String>>>) -> Step {
    let (id, output) = (text(path, "id").to_owned(), text(path, "out").to_owned());
    let wait = Millis(at(path, "ms").as_u64().unwrap_or_default());
    let (clock, started) = (clock.clone(), Arc::clone(started));
    Step::run(id.clone(), move |_: Value, _| {
        let (clock, output) = (clock.clone(), output.clone());
        locked(&started).push(id.clone());
        async move {
            clock.sleep_until(clock.now().after(wait)).await;
            output.strip_prefix('!').map_or(Ok(output.clone()), |problem| Err(problem.to_owned()))
        }
    })
}

fn plain(output: &Json) -> String {
    output.to().unwrap_or_else(|_| output.to_string())
}

fn settled(path: &PathResult) -> String {
    match &path.outcome {
        Ok(output) => format!("{}:fulfilled={}", path.step, plain(output)),
        Err(_) => format!("{}:rejected", path.step),
    }
}

pub(super) fn joined(texts: impl Iterator<Item = String>, separator: &str) -> Json {
    Json::string(&texts.collect::<Vec<_>>().join(separator))
}
