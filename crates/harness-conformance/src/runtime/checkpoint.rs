//! Vectors of kind `checkpoint`: a flow dies, is restored, and continues.
//!
//! The form of ledger and snapshot is each product's own; what is restored of them is compared. Under the durable driver an
//! engine keeps them.

use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::driver::Ports;
use harness_core::message::{AssistantMessage, Cost, Message, Usage};
use harness_core::testing::{ModelStep, ScriptedModel};
use harness_flow::checkpoint::Retention;
use harness_flow::{
    Execution, ExecutionSpec, Flow, FlowRunner, Loop, Parallel, Step, StepCx, TurnAgent, Until,
};
use harness_host::DynStorage;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{EngineStorage, SimEngine};
use harness_session::storage::MemoryStorage;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::error::result;
use super::parallel::joined;
use crate::Done;
use crate::case::{Case, exact, on_paused_time, plain};
use crate::clock::PausedClock;
use crate::driver::{Driver, Threads};
use crate::subset::{matches, put};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Money in billionths, as a number.
const UNIT: f64 = 1_000_000_000.0;
const ID: &str = "E";

/// Runs the vector.
pub(crate) fn run(vector: &Vector, driver: &dyn Driver) -> Verdict {
    let storage: Arc<dyn DynStorage> = match driver.threads() {
        Some(Threads::OnEngine) => {
            Arc::new(EngineStorage::new(SimEngine::new(SimFaults::default()).client()))
        }
        _ => Arc::new(MemoryStorage::default()),
    };
    judged(vector, storage).into()
}

fn judged(vector: &Vector, storage: Arc<dyn DynStorage>) -> Done<()> {
    let Case { input, mut expect, .. } = Case::of(vector)?;
    if let Value::Object(entries) = &mut expect {
        entries.retain(|key, _| !matches!(key.as_str(), "ledger" | "snapshot"));
    }
    matches("expected", &expect, &on_paused_time(check(input, storage))?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    workflow: Node,
    workflow_after: Option<Node>,
    crash: Option<Place>,
    #[serde(default)]
    model: Vec<String>,
    layer: Option<Layer>,
    #[serde(default)]
    retention: Bounds,
    #[serde(default = "thread")]
    thread: String,
    resource: Option<String>,
    #[serde(default = "root")]
    cwd: String,
    state: Option<Value>,
    #[serde(default)]
    clear: bool,
    #[serde(default)]
    check_layer_after_run: bool,
    set_schema_version: Option<u64>,
}

fn thread() -> String {
    "T".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

/// The step in whose n-th dispatch the process dies.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    step: String,
    occurrence: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    id: String,
    #[serde(rename = "scope")]
    _scope: Scope,
    init: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Execution,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Bounds {
    max_entries: Option<u64>,
    max_entry_bytes: Option<usize>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Node {
    Run(Code),
    Model { id: String },
    Loop { id: String, times: u64, steps: Vec<Self> },
    Parallel { id: String, paths: Vec<Self>, concurrency: Option<usize> },
    Spawn { id: String, child: Box<Self> },
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    id: String,
    output: Option<Value>,
    output_bytes: Option<usize>,
    #[serde(default)]
    unserialisable: bool,
    append: Option<String>,
    layer_set: Option<Value>,
}

/// The world of one vector, before the crash and after it.
struct World {
    model: ScriptedModel,
    clock: PausedClock,
    dispatched: Arc<Mutex<Vec<String>>>,
    crash: Arc<Mutex<Option<Place>>>,
    died: Arc<Notify>,
}

async fn check(input: Input, storage: Arc<dyn DynStorage>) -> Done<Value> {
    let world = World::new(&input);
    let mut runner = FlowRunner::new(Arc::new(world.clock));
    (runner.storage, runner.retention) = (Some(Arc::clone(&storage)), retention(input.retention)?);
    let flow = |node| -> Done<Flow> { Flow::new(world.step(node)?).map_err(|faults| faults.to_string()) };
    let first = runner.start(spec(&input)?);
    init_layer(&input, &first)?;
    let died = world.run(&first, &flow(&input.workflow)?).await?.is_none();
    if died != input.crash.is_some() {
        return Err("the step in which the process dies is not there".to_owned());
    }
    drop(first);
    let mut got = json!({
        "first_run_steps": world.take_dispatched(), "restored": null, "restored_state": null, "spent": null,
        "second_run_steps": null, "output": null, "layer_after_run": null,
    });
    if input.clear {
        runner.clear(&ID.into()).await.map_err(|e| e.to_string())?;
        let left = storage.list_boxed("").await.map_err(|e| e.to_string())?;
        put(&mut got, "keys_left", json!(left.len()));
    }
    if input.set_schema_version.is_some() {
        change_versions(&*storage).await?;
    }
    let restored = match runner.restore(ID).await {
        Ok(Some(execution)) => execution,
        Ok(None) => return Ok(got),
        Err(fault) => {
            let error = json!({ "code": fault.kind(), "message": fault.to_string() });
            put(&mut got, "restore_error", error);
            return Ok(got);
        }
    };
    put(&mut got, "restored", shown(&restored)?);
    put(&mut got, "restored_state", plain(&restored.cx().state())?);
    put(&mut got, "spent", spent(&restored));
    *world.crash.lock() = None;
    init_layer(&input, &restored)?;
    let after = input.workflow_after.as_ref().unwrap_or(&input.workflow);
    let output = world.run(&restored, &flow(after)?).await?;
    put(&mut got, "second_run_steps", json!(world.take_dispatched()));
    put(&mut got, "output", output.unwrap_or_default());
    put(&mut got, "model_calls", json!(world.model.requests().len()));
    if input.check_layer_after_run {
        put(&mut got, "layer_after_run", layer(&restored)?);
    }
    Ok(got)
}

impl World {
    fn new(input: &Input) -> Self {
        let answers = input.model.iter().map(|answer| {
            let usage = Usage::tokens(3, 2).with_cost(Cost(500_000_000));
            ModelStep::answer(AssistantMessage::text(answer).with_usage(usage))
        });
        Self {
            model: ScriptedModel::new(answers),
            clock: PausedClock::new(),
            dispatched: Arc::default(),
            crash: Arc::new(Mutex::new(input.crash.clone())),
            died: Arc::default(),
        }
    }

    /// The result; none when the process died.
    async fn run(&self, execution: &Execution, flow: &Flow) -> Done<Option<Value>> {
        // Paused time passes only when all tasks are idle: then all that can end before the death has ended.
        let death = async {
            self.died.notified().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        tokio::select! {
            done = execution.run(flow, Json::string("in")) => result(&done).map(Some),
            () = death => Ok(None),
        }
    }

    fn take_dispatched(&self) -> Vec<String> {
        std::mem::take(&mut *self.dispatched.lock())
    }

    fn step(&self, node: &Node) -> Done<Step> {
        let all = |nodes: &[Node]| nodes.iter().map(|node| self.step(node)).collect::<Done<Vec<_>>>();
        Ok(match node {
            Node::Run(code) => self.code(code),
            Node::Model { id } => {
                let (model, clock) = (Arc::new(self.model.clone()), Arc::new(self.clock));
                let agent = TurnAgent::new(move || Ports::new(model.clone(), clock.clone()));
                Step::model(&**id, Arc::new(agent))
            }
            Node::Loop { id, times, steps } => Loop::new(&**id, all(steps)?, Until::max_steps(*times)).into(),
            Node::Parallel { id, paths, concurrency } => {
                let plain = |output: &Json| output.to().unwrap_or_else(|_| output.to_string());
                let merge = move |outputs: Vec<Json>| Ok(joined(outputs.iter().map(plain), "+"));
                let parallel = Parallel::all_merged(&**id, all(paths)?, merge);
                parallel.concurrency(concurrency.unwrap_or(usize::MAX)).into()
            }
            Node::Spawn { id, child } => Step::spawn(&**id, self.step(child)?),
        })
    }

    fn code(&self, code: &Code) -> Step {
        let (code, unrecorded) = (code.clone(), code.unserialisable);
        let (dispatched, crash, died) =
            (Arc::clone(&self.dispatched), Arc::clone(&self.crash), Arc::clone(&self.died));
        let step = Step::run(&*code.id.clone(), move |input: Value, cx: StepCx| {
            let mut dispatched = dispatched.lock();
            dispatched.push(code.id.clone());
            let occurrence = dispatched.iter().filter(|id| **id == code.id).count();
            let crash = crash.lock();
            let is_last = crash.as_ref().is_some_and(|at| at.step == code.id && at.occurrence == occurrence);
            if is_last {
                died.notify_one();
            }
            let code = code.clone();
            async move {
                if is_last {
                    std::future::pending::<()>().await;
                }
                code.perform(&input, &cx)
            }
        });
        if unrecorded { step.unrecorded() } else { step }
    }
}

impl Code {
    fn perform(&self, input: &Value, cx: &StepCx) -> Done<Value> {
        if let Some(said) = &self.append {
            cx.append(Message::user(&**said));
        }
        if let Some(state) = &self.layer_set {
            cx.set_slot("mem", exact(state)?);
        }
        Ok(match (&self.output, self.output_bytes) {
            (Some(output), _) => output.clone(),
            (None, Some(bytes)) => json!("x".repeat(bytes)),
            (None, None) => {
                let given = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
                json!(format!("{given}>{}", self.id))
            }
        })
    }
}

/// Replaces the version of each versioned record by an unknown one.
async fn change_versions(storage: &dyn DynStorage) -> Done<()> {
    let mut changed = 0;
    for key in storage.list_boxed("").await.map_err(|e| e.to_string())? {
        let record = storage.get_boxed(&key).await.map_err(|e| e.to_string())?.unwrap_or_default();
        let mut record = plain(&record)?;
        if let Some(version) = record.get_mut("schemaVersion") {
            *version = json!(u32::MAX);
            storage.set_boxed(&key, &exact(&record)?).await.map_err(|e| e.to_string())?;
            changed += 1;
        }
    }
    if changed == 0 { Err("no record has a version".to_owned()) } else { Ok(()) }
}

fn spec(input: &Input) -> Done<ExecutionSpec> {
    let mut spec = ExecutionSpec::new(ID);
    spec.thread = Some(input.thread.as_str().into());
    spec.resource = input.resource.as_deref().map(Into::into);
    spec.cwd = Some(input.cwd.as_str().into());
    if let Some(state) = &input.state {
        spec.state = exact(state)?;
    }
    Ok(spec)
}

fn retention(bounds: Bounds) -> Done<Retention> {
    let Bounds { max_entry_bytes: None, max_entries: None } = bounds else {
        // What is not named is as by default.
        let bytes = bounds.max_entry_bytes.unwrap_or(128 * 1024);
        return Retention::new(Some(bytes), Some(bounds.max_entries.unwrap_or(1_000)))
            .map_err(|fault| fault.kind().to_owned());
    };
    Ok(Retention::default())
}

/// Gives the layer of the vector its first state, as `init` of a layer does.
fn init_layer(input: &Input, execution: &Execution) -> Done<()> {
    let Some(layer) = &input.layer else { return Ok(()) };
    execution.cx().init_slot(&*layer.id, exact(&layer.init)?);
    Ok(())
}

fn layer(execution: &Execution) -> Done<Value> {
    execution.cx().slot("mem").map_or(Ok(Value::Null), |state| plain(&state))
}

fn shown(execution: &Execution) -> Done<Value> {
    let cx = execution.cx();
    let messages = cx.messages();
    Ok(json!({
        "same_id": cx.execution().as_str() == ID,
        "thread": cx.thread().map(|thread| thread.as_str().to_owned()),
        "resource": cx.resource().map(|resource| (**resource).to_owned()),
        "cwd": *cx.cwd(),
        "items": messages.iter().flat_map(|message| super::codes(message)).collect::<Vec<_>>(),
        "layer": layer(execution)?,
    }))
}

#[expect(clippy::cast_precision_loss, reason = "the amounts of the suite are small")]
fn spent(execution: &Execution) -> Value {
    let used = execution.cx().used();
    json!({ "tokens": used.tokens, "cost": used.cost.0 as f64 / UNIT })
}
