//! Vectors of kind `parallel`: paths with delays, on paused time.

use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_flow::{ExecutionSpec, Flow, FlowRunner, Parallel, PathResult, Step};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::result;
use crate::Done;
use crate::case::{each, on_paused_time};
use crate::clock::PausedClock;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(check(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    mode: Mode,
    paths: Vec<Path>,
    concurrency: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    All,
    Settle,
    Race,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Path {
    id: String,
    ms: u64,
    /// A failure has a `!` before its message.
    out: String,
}

async fn check(input: Input) -> Done<Value> {
    let started = Arc::new(Mutex::new(Vec::new()));
    let paths: Vec<Step> = input.paths.into_iter().map(|path| step(path, &started)).collect();
    let parallel = match input.mode {
        Mode::All => Parallel::all_merged("F", paths, |outputs| Ok(joined(outputs.iter().map(plain), ","))),
        Mode::Settle => Parallel::settle("F", paths, |results| Ok(joined(results.iter().map(settled), ","))),
        Mode::Race => Parallel::race("F", paths),
    };
    let parallel = match input.concurrency {
        Some(most) => parallel.concurrency(most),
        None => parallel,
    };
    let flow = Flow::new(parallel).map_err(|faults| faults.to_string())?;
    let execution = FlowRunner::new(Arc::new(PausedClock::new())).start(ExecutionSpec::new("run"));
    let done = execution.run(&flow, Json::string("in")).await;
    let started = started.lock().clone();
    Ok(json!({ "result": result(&done)?, "started": started }))
}

fn step(path: Path, started: &Arc<Mutex<Vec<String>>>) -> Step {
    let Path { id, ms, out } = path;
    let started = Arc::clone(started);
    Step::run(id.clone(), move |_: Value, _| {
        started.lock().push(id.clone());
        let out = out.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            out.strip_prefix('!').map_or(Ok(out.clone()), |problem| Err(problem.to_owned()))
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
