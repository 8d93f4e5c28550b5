//! The tools of a vector: they do what the vector wrote down.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::tools::Validated;
use harness_core::Json;
use harness_core::decide::{DecideCx, DynGate, GateVerdict, Guarded, Points, gate};
use harness_core::message::Block;
use harness_core::port::ProposedCall;
use harness_core::tool::{DynTool, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use serde_json::{Map, Value};

use super::play::perform_all;
use super::words::{self, Behaviour, Execution};
use super::world::World;
use crate::Done;
use crate::case::exact;

/// The tools of the vector with these names; `None` is all of them.
pub(super) fn toolbox(world: &Arc<World>, names: Option<&[String]>) -> Done<Toolbox> {
    let words = world.options.tools.iter();
    let chosen = words.filter(|words| names.is_none_or(|names| names.contains(&words.name)));
    let tool = |words: &words::Tool| {
        let mut def = ToolDef::new(&*words.name, "");
        def.input_schema = words.parameters.as_ref().map(exact).transpose()?;
        def.sequential = words.mode == Some(Execution::Sequential);
        let tool = Scripted { world: Arc::clone(world), words: words.clone(), def };
        Ok(Arc::new(Validated::new(tool).map_err(|e| e.to_string())?) as Arc<dyn DynTool>)
    };
    Ok(Toolbox::new(chosen.map(tool).collect::<Done<Vec<_>>>()?))
}

struct Scripted {
    world: Arc<World>,
    words: words::Tool,
    def: ToolDef,
}

impl Tool for Scripted {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        if self.words.no_execute == Some(true) {
            return failed(format!("tool `{}` is declared only", self.def.name));
        }
        let own = self.words.calls.as_ref().and_then(|calls| calls.get(cx.call.id.as_str()));
        let Some(behaviour) = own.or(self.words.default.as_ref()) else {
            return ToolOutcome::text(format!("ok:{}", cx.call.id));
        };
        perform_all(&self.world, &behaviour.during).await;
        if let Some(gate) = &behaviour.wait {
            drop(self.world.gate(gate).acquire().await);
        }
        behaviour.progress.iter().for_each(|update| cx.emit(vec![Block::text(update)]));
        let outcome = outcome(&cx, behaviour).await;
        if let Some(gate) = &behaviour.open {
            self.world.gate(gate).add_permits(1 << 16);
        }
        outcome
    }
}

#[expect(clippy::panic, reason = "the vector wants the tool to crash")]
async fn outcome(cx: &ToolCx, behaviour: &Behaviour) -> ToolOutcome {
    if behaviour.wait_cancel {
        cx.cancel.cancelled().await;
        return failed("the call was cancelled".to_owned());
    }
    if let Some(message) = &behaviour.panic {
        panic!("{message}");
    }
    if let Some(message) = &behaviour.error {
        return failed(message.clone());
    }
    let echo = if behaviour.echo_args { cx.call.arguments.text() } else { "" };
    let mut outcome = ToolOutcome::text(format!("{}{echo}", behaviour.text.as_deref().unwrap_or_default()));
    outcome.terminate = behaviour.terminate;
    outcome
}

fn failed(message: String) -> ToolOutcome {
    ToolOutcome::error("tool_failed", message)
}

/// A gate that adds to the arguments of calls what these tools want in them; none when no tool wants any.
pub(super) fn fill(tools: &[words::Tool]) -> Option<Guarded<dyn DynGate>> {
    let filled = tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.prepare_fill.clone()?)));
    let filled: BTreeMap<String, Map<String, Value>> = filled.collect();
    let added = move |call: &ProposedCall| {
        let mut arguments: Map<String, Value> = call.call.arguments.to().ok()?;
        for (key, value) in filled.get(call.call.name.as_str())? {
            arguments.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Json::of(&arguments).ok()
    };
    let is_wanted = tools.iter().any(|tool| tool.prepare_fill.is_some());
    let gate =
        move |call: &ProposedCall, _: &DecideCx| added(call).map_or(GateVerdict::Allow, GateVerdict::Rewrite);
    is_wanted.then(|| gate::func("fill", gate).at(Points::PREPARE))
}
