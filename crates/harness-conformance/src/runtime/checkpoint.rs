//! Vectors of kind `checkpoint`: a flow dies, is restored, and goes on.

use std::sync::{Arc, Mutex};

use harness_core::driver::Ports;
use harness_core::message::{AssistantMessage, Cost, Message, Usage};
use harness_core::port::DynStorage;
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::{Json, Time};
use harness_runtime::checkpoint::Retention;
use harness_runtime::flow::{
    Execution, ExecutionSpec, Flow, FlowRunner, Loop, Parallel, Step, StepCx, TurnAgent, Until,
};
use harness_session::storage::MemoryStorage;
use serde_json::{Value, json};

use super::super::memory::{each_with, matches};
use super::super::subset::put;
use super::super::turn::convert::{Done, at, json as exact, list, text};
use super::error::result;
use super::parallel::joined;
use super::{drive, locked};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Money in billionths, as a number.
const UNIT: f64 = 1_000_000_000.0;
const ID: &str = "E";

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each_with(vector, check, |expected, got| matches("expected", &without_form(expected), got))
}

/// The world of one vector, before the crash and after it.
struct World {
    clock: VirtualClock,
    model: ScriptedModel,
    dispatched: Arc<Mutex<Vec<String>>>,
    crash: Arc<Mutex<Crash>>,
}

/// The step in whose n-th dispatch the process dies, and whether it did.
struct Crash {
    at: Option<(String, usize)>,
    happened: bool,
}

fn check(input: &Value) -> Done<Value> {
    let world = World::new(input);
    let storage: Arc<dyn DynStorage> = Arc::new(MemoryStorage::default());
    let runner = FlowRunner::new(Arc::new(world.clock.clone()))
        .storage(Arc::clone(&storage))
        .retention(retention(at(input, "retention"))?);
    let flow = |key: &str| -> Done<Flow> {
        Flow::new(world.step(at(input, key))?).map_err(|faults| faults.to_string())
    };
    let first = runner.begin(spec(input));
    init_layer(input, &first)?;
    world.run(&first, &flow("workflow")?)?;
    drop(first);
    let mut got = json!({ "first_run_steps": world.take_dispatched() });
    world.change_records(input, &runner, &*storage)?;
    let restored = match world.drive(runner.restore(ID))? {
        Some(Ok(Some(execution))) => execution,
        Some(Err(fault)) => {
            put(&mut got, "restored", json!({ "error": { "code": fault.kind() } }));
            return Ok(got);
        }
        _ => return Ok(got),
    };
    put(&mut got, "restored", shown(&restored));
    put(&mut got, "spent", spent(&restored));
    locked(&world.crash).at = None;
    init_layer(input, &restored)?;
    let after = if input.get("workflow_after").is_some() { "workflow_after" } else { "workflow" };
    let output = world.run(&restored, &flow(after)?)?;
    put(&mut got, "second_run_steps", json!(world.take_dispatched()));
    put(&mut got, "output", output);
    put(&mut got, "model_calls", json!(world.model.requests().len()));
    put(&mut got, "layer_after_run", layer(&restored));
    Ok(got)
}

/// The expectation without ledger and snapshot, whose form is the source's own.
fn without_form(expected: &Value) -> Value {
    let mut expected = expected.clone();
    if let Value::Object(entries) = &mut expected {
        entries.retain(|key, _| !matches!(key.as_str(), "ledger" | "snapshot"));
    }
    expected
}

impl World {
    fn new(input: &Value) -> Self {
        let answers = list(input, "model").iter().map(|answer| {
            let usage = Usage::tokens(3, 2).with_cost(Cost(500_000_000));
            ModelStep::answer(AssistantMessage::text(answer.as_str().unwrap_or_default()).with_usage(usage))
        });
        let crash = input.get("crash").map(|crash| {
            let occurrence = at(crash, "occurrence").as_u64().and_then(|n| usize::try_from(n).ok());
            (text(crash, "step").to_owned(), occurrence.unwrap_or(1))
        });
        Self {
            clock: VirtualClock::still(Time(0)),
            model: ScriptedModel::new(answers),
            dispatched: Arc::default(),
            crash: Arc::new(Mutex::new(Crash { at: crash, happened: false })),
        }
    }

    fn drive<T>(&self, work: impl Future<Output = T>) -> Done<Option<T>> {
        drive(&self.clock, work, || locked(&self.crash).happened)
    }

    /// The result; null when the process died.
    fn run(&self, execution: &Execution, flow: &Flow) -> Done<Value> {
        locked(&self.crash).happened = false;
        let done = self.drive(execution.run(flow, Json::string("in")))?;
        locked(&self.crash).happened = false;
        Ok(done.as_ref().map(result).unwrap_or_default())
    }

    fn take_dispatched(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.dispatched))
    }

    /// What the vector does to the records between crash and restore.
    fn change_records(&self, input: &Value, runner: &FlowRunner, storage: &dyn DynStorage) -> Done<()> {
        if at(input, "clear") == &Value::Bool(true) {
            self.drive(runner.clear(&ID.into()))?.transpose().map_err(|e| e.to_string())?;
        }
        let Some(version) = input.get("set_schema_version") else { return Ok(()) };
        let key = format!("flow:{ID}:start");
        let change = async {
            let start =
                storage.get_boxed(&key).await.map_err(|e| e.to_string())?.ok_or("there is no start")?;
            let mut start: Value = start.to().map_err(|e| e.to_string())?;
            put(&mut start, "schemaVersion", version.clone());
            storage.set_boxed(&key, &exact(&start)?).await.map_err(|e| e.to_string())
        };
        self.drive(change)?.unwrap_or(Ok(()))
    }

    fn step(&self, node: &Value) -> Done<Step> {
        let id = text(node, "id");
        let all = |key: &str| list(node, key).iter().map(|node| self.step(node)).collect::<Done<Vec<_>>>();
        Ok(match text(node, "kind") {
            "run" => self.code(node),
            "model" => {
                let (model, clock) = (Arc::new(self.model.clone()), Arc::new(self.clock.clone()));
                let agent = TurnAgent::new(move || Ports::new(model.clone(), clock.clone()));
                Step::model(id, Arc::new(agent))
            }
            "loop" => {
                let times = Until::max_steps(at(node, "times").as_u64().unwrap_or(1));
                Loop::new(id, all("steps")?, times).into()
            }
            "parallel" => {
                let most = at(node, "concurrency").as_u64().and_then(|n| usize::try_from(n).ok());
                let plain = |output: &Json| output.to().unwrap_or_else(|_| output.to_string());
                let merge = move |outputs: Vec<Json>| Ok(joined(outputs.iter().map(plain), "+"));
                Parallel::all_merged(id, all("paths")?, merge).concurrency(most.unwrap_or(usize::MAX)).into()
            }
            "spawn" => Step::spawn(id, self.step(at(node, "child"))?),
            other => return Err(format!("`{other}` is no step")),
        })
    }

    fn code(&self, node: &Value) -> Step {
        let (node, id) = (node.clone(), text(node, "id").to_owned());
        let unrecorded = at(&node, "unserialisable") == &Value::Bool(true);
        let (dispatched, crash) = (Arc::clone(&self.dispatched), Arc::clone(&self.crash));
        let name = id.clone();
        let step = Step::run(id, move |input: Value, cx: StepCx| {
            let dies = {
                let mut dispatched = locked(&dispatched);
                dispatched.push(name.clone());
                let occurrence = dispatched.iter().filter(|id| **id == name).count();
                let mut crash = locked(&crash);
                crash.happened = crash.at.as_ref() == Some(&(name.clone(), occurrence));
                crash.happened
            };
            let done = act(&node, &name, &input, &cx);
            async move {
                if dies {
                    std::future::pending::<()>().await;
                }
                done.await
            }
        });
        if unrecorded { step.unrecorded() } else { step }
    }
}

fn act(node: &Value, name: &str, input: &Value, cx: &StepCx) -> impl Future<Output = Done<Value>> + use<> {
    let given = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
    let output = match (node.get("output"), at(node, "output_bytes").as_u64()) {
        (Some(output), _) => output.clone(),
        (None, Some(bytes)) => json!("x".repeat(usize::try_from(bytes).unwrap_or_default())),
        (None, None) => json!(format!("{given}>{name}")),
    };
    let (append, layer, cx) = (node.get("append").cloned(), node.get("layer_set").cloned(), cx.clone());
    async move {
        if let Some(said) = append.as_ref().and_then(Value::as_str) {
            cx.append(Message::user(said));
        }
        if let Some(state) = layer {
            cx.set_slot("mem", exact(&state)?);
        }
        Ok(output)
    }
}

fn spec(input: &Value) -> ExecutionSpec {
    let mut spec = ExecutionSpec::new(ID);
    spec.thread = Some(at(input, "thread").as_str().unwrap_or("T").into());
    spec.resource = at(input, "resource").as_str().map(Into::into);
    if let Some(cwd) = at(input, "cwd").as_str() {
        spec.cwd = Some(cwd.into());
    }
    spec
}

fn retention(form: &Value) -> Done<Retention> {
    let bytes =
        at(form, "maxEntryBytes").as_u64().map_or(131_072, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let entries = at(form, "maxEntries").as_u64().unwrap_or(1_000);
    Retention::new(Some(bytes), Some(entries)).map_err(|fault| fault.kind().to_owned())
}

/// Gives the layer of the vector its first state, as `init` of a layer does.
fn init_layer(input: &Value, execution: &Execution) -> Done<()> {
    let Some(layer) = input.get("layer") else { return Ok(()) };
    execution.cx().init_slot(text(layer, "id"), exact(at(layer, "init"))?);
    Ok(())
}

fn layer(execution: &Execution) -> Value {
    execution.cx().slot("mem").and_then(|state| state.to().ok()).unwrap_or_default()
}

fn shown(execution: &Execution) -> Value {
    let cx = execution.cx();
    let items = cx.messages().into_iter().map(|message| {
        let sort = if message.as_assistant().is_some() { "a" } else { "u" };
        format!("{sort}:{}", message.joined_text())
    });
    json!({
        "same_id": cx.execution().as_str() == ID,
        "thread": cx.thread().map(|thread| thread.as_str().to_owned()),
        "resource": cx.resource().map(|resource| (**resource).to_owned()),
        "cwd": *cx.cwd(),
        "items": items.collect::<Vec<_>>(),
        "layer": layer(execution),
    })
}

#[expect(clippy::cast_precision_loss, reason = "the amounts of the suite are small")]
fn spent(execution: &Execution) -> Value {
    let used = execution.cx().used();
    json!({ "tokens": used.tokens, "cost": used.cost.0 as f64 / UNIT })
}
