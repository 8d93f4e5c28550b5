//! Calls between hooks: what ran, what the model read, and the order of everything.

use std::sync::Arc;

use harness::prelude::*;
use harness_core::decide::{DecideCx, Gate, GateDecision, GateVerdict, gate};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::ToolCall;
use harness_core::port::ProposedCall;
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{FnTool, Tool, ToolOutcome};
use harness_core::{Fault, FaultSource, GateName, Json};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Done;
use crate::case::{block_on, exact};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[serde(default)]
    pre_tool: Vec<Does>,
    #[serde(default)]
    post_tool: Vec<Does>,
    calls: Vec<Call>,
}

/// Behavior of a hook; the default allows.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Does {
    returns: Option<Said>,
    raises: Option<String>,
    only: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    decision: Decision,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
    Ask,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Option<Value>,
    result: Option<String>,
    error: Option<String>,
}

/// Input of hooks and tools, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    fn add(&self, entry: Value) {
        self.0.lock().push(entry);
    }

    fn entries(&self) -> Vec<Value> {
        self.0.lock().clone()
    }
}

/// A hook as a case describes it.
struct Scripted {
    name: GateName,
    does: Does,
    log: Log,
}

impl Scripted {
    fn all(hooks: Vec<Does>, name: &str, log: &Log) -> Vec<Self> {
        let hook =
            |(n, does): (usize, Does)| Self { name: format!("{name}{n}").into(), does, log: log.clone() };
        hooks.into_iter().enumerate().map(hook).collect()
    }

    /// Verdict on a call of a tool; none for tools that do not match.
    fn answer(&self, tool: &str) -> Result<Option<&Said>, Fault> {
        if self.does.only.as_ref().is_some_and(|only| only != tool) {
            return Ok(None);
        }
        match &self.does.raises {
            Some(why) => Err(Fault::new(FaultSource::Gate, "raised", &**why)),
            None => Ok(self.does.returns.as_ref()),
        }
    }
}

impl Gate for Scripted {
    async fn decide(&self, ask: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
        let tool = ask.call.name.as_str();
        self.log.add(json!({ "hook": self.name, "tool": tool, "args": value(&ask.call.arguments) }));
        let Some(Said { decision, reason }) = self.answer(tool)? else {
            return Ok(GateVerdict::Allow.into());
        };
        let reason = reason.clone();
        let verdict = match decision {
            Decision::Allow => GateVerdict::Allow,
            Decision::Deny => GateVerdict::deny(reason),
            Decision::Ask => GateVerdict::Hold { reason },
        };
        Ok(verdict.into())
    }
}

/// A hook behind calls is a listener: it only watches.
impl Fold for Scripted {
    fn apply(&mut self, event: &Event) {
        let (EventKind::ToolFinished { call, outcome, .. }
        | EventKind::ToolFailed { call, outcome, ran: true, .. }) = &event.kind
        else {
            return;
        };
        let error = outcome.error.as_ref().map(|error| error.message.clone());
        let result = error.is_none().then(|| said(outcome));
        let mut entry = json!({ "hook": self.name, "tool": call.name.as_str(), "result": result });
        if let (Some(error), Some(entry)) = (error, entry.as_object_mut()) {
            entry.insert("error".to_owned(), json!(error));
        }
        self.log.add(entry);
    }
}

/// Keeps how calls ended, in order.
#[derive(Clone, Default)]
struct Ends(Log);

impl Fold for Ends {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is about the end of a call")]
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolFinished { outcome, .. } => {
                self.0.add(json!({ "executed": true, "result": said(outcome), "error": null }));
            }
            EventKind::ToolFailed { outcome, ran: false, .. } => {
                self.0.add(json!({ "executed": false, "result": said(outcome), "error": null }));
            }
            EventKind::ToolFailed { outcome, .. } => {
                let error = outcome.error.as_ref().map(|error| error.message.clone());
                self.0.add(json!({ "executed": true, "result": null, "error": error }));
            }
            _ => {}
        }
    }
}

/// The text for the model about a call that did not run is the product's; the reason at its end is the vector's.
pub(super) fn as_reasons(wanted: &mut Value, got: &mut Value) {
    for value in [wanted, got] {
        let calls = value.get_mut("calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter(|call| call.get("executed") == Some(&json!(false))) {
            let reason = call.get("result").and_then(Value::as_str).and_then(|text| text.rsplit(": ").next());
            let reason = reason.map(str::to_owned);
            if let (Some(reason), Some(call)) = (reason, call.as_object_mut()) {
                call.insert("result".to_owned(), json!(reason));
            }
        }
    }
}

pub(super) fn run(input: Input) -> Done<Value> {
    let calls = input.calls;
    let (log, ends) = (Log::default(), Ends::default());
    let asked = calls.iter().enumerate().map(|(n, call)| {
        let args = call.args.as_ref().map_or_else(|| Ok(Json::empty_object()), exact)?;
        let call = ToolCall::new(format!("c{n}"), &*call.tool, args);
        Ok(ModelStep::answer(AssistantMessage::calls([call])))
    });
    let asked = asked.collect::<Done<Vec<_>>>()?;
    let model =
        ScriptedModel::new(asked.into_iter().chain([ModelStep::answer(AssistantMessage::text("done"))]));
    let mut builder = Harness::new(model.clone())
        .clock(Arc::new(VirtualClock::still(harness_core::Time(0))))
        .fold(ends.clone());
    for hook in Scripted::all(input.post_tool, "post", &log) {
        builder = builder.fold(hook);
    }
    for hook in Scripted::all(input.pre_tool, "pre", &log) {
        builder = builder.gate(gate::new(hook.name.clone(), hook));
    }
    let mut names: Vec<&str> = calls.iter().map(|call| &*call.tool).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        builder = builder.tool(tool(name, &calls, &log));
    }
    let harness = builder.build().map_err(|e| e.to_string())?;
    block_on(async { harness.prompt("go").await })?.map_err(|e| e.to_string())?;

    let answered = model.requests().len().saturating_sub(1);
    let mut results = ends.0.entries();
    for (n, result) in results.iter_mut().enumerate() {
        if let Some(result) = result.as_object_mut() {
            // The model was asked again after it: the loop went on.
            result.insert("terminate_loop".to_owned(), json!(n >= answered));
        }
    }
    Ok(json!({ "calls": results, "log": log.entries() }))
}

/// A tool that gives the results of its calls, in order.
fn tool(name: &str, calls: &[Call], log: &Log) -> impl Tool + use<> {
    let own = calls.iter().filter(|call| call.tool == name).cloned();
    let left: Mutex<std::collections::VecDeque<Call>> = Mutex::new(own.collect());
    let (log, tool) = (log.clone(), name.to_owned());
    FnTool::with_schema(name, "", Json::empty_object(), move |_: Json, _| {
        log.add(json!({ "run": tool }));
        let step = left.lock().pop_front().unwrap_or_default();
        async move {
            match step.error {
                Some(error) => ToolOutcome::error("raised", error),
                None => ToolOutcome::text(step.result.unwrap_or_default()),
            }
        }
    })
}

fn said(outcome: &ToolOutcome) -> String {
    match &outcome.error {
        Some(error) => error.message.clone(),
        None => outcome.content.iter().filter_map(|block| block.as_text()).collect(),
    }
}

fn value(json: &Json) -> Value {
    json.to().unwrap_or_default()
}
