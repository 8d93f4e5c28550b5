//! Vectors of kind `tool-registry`: calls one after another on a registry that has a state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use harness::tools::{
    DuplicateGuard, DuplicateOptions, Keep, PlanningTools, ScratchpadTools, Subagent, SubagentAsk,
    SubagentCode, SubagentReport, SubagentRunner, SubagentTool,
};
use harness_core::Json;
use harness_core::machine::Origin;
use harness_core::message::ToolCall;
use harness_core::port::{DynToolRegistry, ToolCx, ToolOutcome, ToolScope};
use harness_core::testing::{ScriptedTools, ToolStep};
use serde_json::{Value, json};

use super::guard::unworded;
use super::outcome;
use super::turn::compare::same;
use super::turn::convert::{at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Result<(), String> {
    let options = at(vector, "options");
    let inner = ScriptedTools::new([]).answering(
        list(options, "inner")
            .iter()
            .map(|output| ToolOutcome::text(output.as_str().unwrap_or_default()))
            .map(ToolStep::outcome),
    );
    let registry = registry(text(vector, "registry"), options, &inner)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;

    let scope = ToolScope::new(Arc::new(Origin::default()), None);
    let defs = runtime.block_on(registry.list_boxed(&scope)).map_err(|e| e.to_string())?;
    let names = defs.iter().map(|def| json!(def.name.as_str())).collect();
    same("toolNames", at(vector, "toolNames"), &names)?;
    for def in defs.iter() {
        let schema: Value =
            def.input_schema.as_ref().ok_or("a tool has no schema")?.to().map_err(|e| e.to_string())?;
        let name = def.name.as_str();
        same(&format!("inputSchemas.{name}"), at(at(vector, "inputSchemas"), name), &schema)?;
    }
    for (number, step) in (1..).zip(list(vector, "steps")) {
        let done = runtime.block_on(perform(&*registry, step, number))?;
        compare(step, done).map_err(|difference| format!("step {number}, {difference}"))?;
    }
    let executed = inner.executions().iter().map(|cx| json!(cx.call.id.as_str())).collect();
    same("innerExecutions", vector.get("innerExecutions").unwrap_or(&json!([])), &executed)
}

fn registry(kind: &str, options: &Value, inner: &ScriptedTools) -> Result<Arc<dyn DynToolRegistry>, String> {
    let number = |key: &str, default: usize| {
        options.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(default)
    };
    Ok(match kind {
        "planning" => Arc::new(PlanningTools::new(number("maxTodos", 32), Keep::Run).into_set()),
        "scratchpad" => {
            let (file, total) = (number("maxFileBytes", 65_536), number("maxTotalBytes", 262_144));
            Arc::new(ScratchpadTools::default().with_bounds(file, total).into_set())
        }
        "subagent" => {
            let subagents = list(options, "subagents");
            let subagents =
                subagents.iter().map(|s| Subagent::new(text(s, "name"), text(s, "description"), ""));
            let runs = Mutex::new(list(options, "runs").iter().cloned().collect());
            Arc::new(SubagentTool::set_of(SubagentTool::new(subagents, Arc::new(Runs(runs)))))
        }
        "guard" => {
            let mut guard = DuplicateOptions::default();
            guard.max_runs = number("maxTurns", guard.max_runs);
            Arc::new(DuplicateGuard::new(Arc::new(inner.clone()), guard))
        }
        other => return Err(format!("`{other}` is no registry")),
    })
}

/// Sub-agents that do what the vector wrote down.
struct Runs(Mutex<VecDeque<Value>>);

impl SubagentRunner for Runs {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let run = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let default = format!("did {}", ask.description);
        match run {
            None => SubagentReport::answered(default, 1),
            Some(run) if run.get("throw").is_some() => {
                SubagentReport::failed(SubagentCode::SubagentError, text(&run, "throw"), 0)
            }
            Some(run) => {
                let iterations = run.get("iterations").and_then(Value::as_u64).unwrap_or(1);
                let output = run.get("output").and_then(Value::as_str).unwrap_or(&default);
                SubagentReport::answered(output, u32::try_from(iterations).unwrap_or(u32::MAX))
            }
        }
    }
}

async fn perform(
    registry: &dyn DynToolRegistry,
    step: &Value,
    number: u32,
) -> Result<(ToolCall, ToolOutcome), String> {
    let call = at(step, "call");
    let arguments = Json::of(at(call, "input")).map_err(|e| e.to_string())?;
    let call_made = ToolCall::new(format!("k{number}"), text(call, "name"), arguments);
    let mut cx = ToolCx::for_call(Arc::new(call_made.clone()));
    let mut origin = Origin::default();
    let turn = call.pointer("/ctx/turnId").and_then(Value::as_str).unwrap_or("T1");
    origin.turn = Some(turn.into());
    cx.origin = Arc::new(origin);
    let done = registry.call_boxed(cx).await.map_err(|e| e.to_string())?;
    Ok((call_made, done))
}

fn compare(step: &Value, (call, done): (ToolCall, ToolOutcome)) -> Result<(), String> {
    let mut got = outcome::result(&call, &done)?;
    if let Some(inlined) = step.get("inlinedDataChars") {
        let output = outcome::output(&done);
        let data = output.split_once("\n\n").map_or("", |(_, data)| data);
        same("inlinedDataChars", inlined, &json!(data.encode_utf16().count()))?;
    }
    unworded(&mut got);
    same("result", at(step, "expect"), &got)
}
