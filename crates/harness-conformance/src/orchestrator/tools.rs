//! The tools of a vector: they do what the vector wrote down.

use std::sync::Arc;

use harness::tools::ArgumentSchema;
use harness_core::message::Block;
use harness_core::port::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Fault, FaultSource, Json};
use serde_json::{Map, Value, json};

use super::play::perform;
use super::world::World;
use crate::case::exact;
use crate::turn::convert::{Done, at, list, text};

pub(super) struct Tools {
    world: Arc<World>,
    defs: Arc<[ToolDef]>,
    schemas: Vec<ArgumentSchema>,
    specs: Vec<Value>,
}

impl Tools {
    /// The tools of the vector with these names; `None` is all of them.
    pub(super) fn new(world: &Arc<World>, names: Option<&[Value]>) -> Done<Self> {
        let all = list(&world.options, "tools").iter();
        let specs: Vec<Value> =
            all.filter(|spec| names.is_none_or(|names| names.contains(at(spec, "name")))).cloned().collect();
        let def = |spec: &Value| {
            let schema = exact(at(spec, "parameters"))?;
            let mut def = ToolDef::new(text(spec, "name"), "").with_schema(schema);
            def.sequential = text(spec, "mode") == "sequential";
            Ok(def)
        };
        let defs = specs.iter().map(def).collect::<Done<Arc<[ToolDef]>>>()?;
        let compiled = |def: &ToolDef| {
            let schema = def.input_schema.clone().unwrap_or_default();
            ArgumentSchema::compile(def.name.as_str(), &schema).map_err(|e| e.to_string())
        };
        let schemas = defs.iter().map(compiled).collect::<Done<_>>()?;
        Ok(Self { world: Arc::clone(world), defs, schemas, specs })
    }

    async fn run(&self, cx: &ToolCx) -> Result<ToolOutcome, String> {
        let mut specs = self.specs.iter().zip(&self.schemas);
        let spec = specs.find(|(spec, _)| text(spec, "name") == cx.call.name.as_str());
        let (spec, schema) = spec.ok_or_else(|| format!("there is no tool `{}`", cx.call.name))?;
        if at(spec, "no_execute") == true {
            return Ok(failed(format!("tool `{}` is declared only", cx.call.name)));
        }
        let arguments = prepared(spec, &cx.call.arguments)?;
        let checked = exact(&json!(arguments))?;
        if let Err(fault) = schema.check(&checked) {
            return Ok(ToolOutcome::error("invalid_arguments", fault.to_string()));
        }
        let own = at(at(spec, "calls"), cx.call.id.as_str());
        let behaviour = if own.is_null() { at(spec, "default") } else { own };
        for action in list(behaviour, "during") {
            let result = perform(&self.world, action).await?;
            self.world.note(result);
        }
        if let Some(gate) = behaviour.get("wait").and_then(Value::as_str) {
            let gate = self.world.gate(gate);
            drop(gate.acquire().await.map_err(|e| e.to_string())?);
        }
        for update in list(behaviour, "progress").iter().filter_map(Value::as_str) {
            cx.tell(vec![Block::text(update)]);
        }
        let outcome = self.outcome(cx, behaviour, &arguments).await;
        if let Some(gate) = behaviour.get("open").and_then(Value::as_str) {
            self.world.gate(gate).add_permits(1 << 16);
        }
        Ok(outcome)
    }

    #[expect(clippy::panic, reason = "the vector wants the tool to crash")]
    async fn outcome(&self, cx: &ToolCx, behaviour: &Value, arguments: &Map<String, Value>) -> ToolOutcome {
        if at(behaviour, "wait_cancel") == true {
            cx.cancel.cancelled().await;
            return failed("the call was cancelled".to_owned());
        }
        if let Some(message) = behaviour.get("panic").and_then(Value::as_str) {
            panic!("{message}");
        }
        if let Some(message) = behaviour.get("error").and_then(Value::as_str) {
            return failed(message.to_owned());
        }
        let echo =
            if at(behaviour, "echo_args") == true { json!(arguments).to_string() } else { String::new() };
        let said = match behaviour.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None if behaviour.is_null() => format!("ok:{}", cx.call.id),
            None => String::new(),
        };
        let mut outcome = ToolOutcome::text(format!("{said}{echo}"));
        outcome.terminate = at(behaviour, "terminate") == true;
        outcome
    }
}

fn failed(message: String) -> ToolOutcome {
    ToolOutcome::error("tool_failed", message)
}

/// The arguments with what the tool adds where it is absent.
fn prepared(spec: &Value, arguments: &Json) -> Done<Map<String, Value>> {
    let mut arguments: Map<String, Value> = arguments.to().map_err(|e| e.to_string())?;
    for (key, value) in at(spec, "prepare_fill").as_object().into_iter().flatten() {
        arguments.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Ok(arguments)
}

impl ToolRegistry for Tools {
    async fn list(&self, _: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        Ok(Arc::clone(&self.defs))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        self.run(&cx).await.map_err(|error| Fault::new(FaultSource::Tool, "vector", error))
    }
}
