//! Vectors of kind `tool-registry`: calls one after another on a registry that has a state.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::control::work::WorkLimits;
use harness::tools::{
    DuplicateGuard, DuplicateOptions, Keep, Subagent, SubagentAsk, SubagentCode, SubagentReport,
    SubagentRunner, SubagentTool, WorkTools,
};
use harness_core::message::ToolCall;
use harness_core::testing::{ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolScope, Toolbox};
use harness_core::{Json, Origin, Time};
use harness_memory::builtin::Scratchpad;
use harness_memory::layer::{LayerSetup, Pipeline, Scope};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::guard::unworded;
use super::outcome;
use super::turn::compare::same;
use crate::Done;
use crate::case::{block_on, plain};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "source")]
    _source: IgnoredAny,
    registry: Kind,
    options: Options,
    tool_names: Value,
    input_schemas: Map<String, Value>,
    steps: Vec<Step>,
    #[serde(default)]
    inner_executions: Vec<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Planning,
    Scratchpad,
    Subagent,
    Guard,
}

/// Missing values are the product's defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Options {
    max_todos: Option<usize>,
    max_file_bytes: Option<usize>,
    max_total_bytes: Option<usize>,
    max_turns: Option<usize>,
    #[serde(default)]
    inner: Vec<String>,
    #[serde(default)]
    subagents: Vec<SubagentWords>,
    #[serde(default)]
    runs: VecDeque<RunWords>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SubagentWords {
    name: String,
    description: String,
    max_iterations: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunWords {
    output: Option<String>,
    iterations: Option<f64>,
    throw: Option<Thrown>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thrown {
    name: Option<String>,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    call: CallWords,
    expect: Value,
    inlined_data_chars: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallWords {
    name: String,
    input: Json,
    ctx: Option<Cx>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Cx {
    turn_id: Option<String>,
}

fn check(vector: Written) -> Done<()> {
    let outcomes = vector.options.inner.iter().map(|output| ToolStep::outcome(ToolOutcome::text(output)));
    let inner = ScriptedTools::new([]).answering(outcomes.collect::<Vec<_>>());
    let registry = registry(vector.registry, vector.options, &inner)?;
    let scope = ToolScope::new(Arc::new(Origin::default()), None);
    let defs = block_on(registry.list_boxed(&scope))?.map_err(|e| e.to_string())?;
    let names = defs.iter().map(|def| json!(def.name.as_str())).collect();
    same("toolNames", &vector.tool_names, &names)?;
    let schema = |def: &ToolDef| {
        let schema = plain(def.input_schema.as_ref().ok_or("a tool has no schema")?)?;
        Ok((def.name.to_string(), schema))
    };
    let schemas = defs.iter().map(schema).collect::<Done<Map<String, Value>>>()?;
    same("inputSchemas", &Value::Object(vector.input_schemas), &Value::Object(schemas))?;
    for (number, step) in (1..).zip(&vector.steps) {
        let done = block_on(perform(&*registry, &step.call, number))??;
        compare(step, done).map_err(|difference| format!("step {number}, {difference}"))?;
    }
    let executed = inner.executions().iter().map(|cx| json!(cx.call.id.as_str())).collect();
    same("innerExecutions", &Value::Array(vector.inner_executions), &executed)
}

fn registry(kind: Kind, options: Options, inner: &ScriptedTools) -> Done<Arc<dyn DynToolRegistry>> {
    Ok(match kind {
        Kind::Planning => {
            let mut limits = WorkLimits::default();
            limits.items = options.max_todos.unwrap_or(limits.items);
            let clock = Arc::new(VirtualClock::frozen(Time(0)));
            Arc::new(WorkTools::new(Keep::Run, clock).with_limits(limits).into_list())
        }
        Kind::Scratchpad => {
            let mut layer = Scratchpad::new().with_notes();
            layer.def.scope = Scope::Execution;
            layer.notes.note = options.max_file_bytes.unwrap_or(layer.notes.note);
            layer.notes.total = options.max_total_bytes.unwrap_or(layer.notes.total);
            let clock = Arc::new(VirtualClock::frozen(Time(0)));
            let pipeline = Pipeline::build(LayerSetup::new().with(layer), clock);
            Arc::new(Toolbox::new(pipeline.map_err(|e| e.to_string())?.tools()))
        }
        Kind::Subagent => {
            let subagents = options.subagents.into_iter().map(|words| {
                let mut subagent = Subagent::new(words.name, words.description, "");
                if let Some(most) = words.max_iterations {
                    subagent.max_iterations = most;
                }
                subagent
            });
            let runs = Arc::new(Runs(Mutex::new(options.runs)));
            Arc::new(SubagentTool::set_of(SubagentTool::new(subagents, runs)))
        }
        Kind::Guard => {
            let mut guard = DuplicateOptions::default();
            guard.max_runs = options.max_turns.unwrap_or(guard.max_runs);
            Arc::new(DuplicateGuard::new(Arc::new(inner.clone()), guard))
        }
    })
}

/// Sub-agents that do what the vector wrote down.
struct Runs(Mutex<VecDeque<RunWords>>);

impl SubagentRunner for Runs {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let run = self.0.lock().pop_front();
        let default = format!("did {}", ask.description);
        let Some(run) = run else { return SubagentReport::answered(default, 1) };
        if let Some(Thrown { name, message }) = run.throw {
            let called_off = name.as_deref() == Some("AbortError");
            let code = if called_off { SubagentCode::Aborted } else { SubagentCode::SubagentError };
            return SubagentReport::failed(code, message, 0);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as near as the type allows"
        )]
        let iterations = run.iterations.map_or(1, |given| given as u32);
        SubagentReport::answered(run.output.unwrap_or(default), iterations)
    }
}

async fn perform(
    registry: &dyn DynToolRegistry,
    call: &CallWords,
    number: u32,
) -> Done<(ToolCall, ToolOutcome)> {
    let call_made = ToolCall::new(format!("k{number}"), &*call.name, call.input.clone());
    let mut cx = ToolCx::for_call(Arc::new(call_made.clone()));
    let mut origin = Origin::default();
    let turn = call.ctx.as_ref().and_then(|cx| cx.turn_id.as_deref()).unwrap_or("T1");
    origin.turn = Some(turn.into());
    cx.origin = Arc::new(origin);
    let done = registry.call_boxed(cx).await.map_err(|e| e.to_string())?;
    Ok((call_made, done))
}

fn compare(step: &Step, (call, done): (ToolCall, ToolOutcome)) -> Done<()> {
    let mut got = outcome::result(&call, &done)?;
    if let Some(inlined) = &step.inlined_data_chars {
        let output = outcome::output(&done);
        let data = output.split_once("\n\n").map_or("", |(_, data)| data);
        same("inlinedDataChars", inlined, &json!(data.encode_utf16().count()))?;
    }
    unworded(&mut got);
    same("result", &step.expect, &got)
}
