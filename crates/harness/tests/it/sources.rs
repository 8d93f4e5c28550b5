//! Agents with tools of a source whose list changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::core::Fault;
use harness::core::tool::{DynTool, ToolDef, ToolRegistry, ToolScope};
use harness::descriptor::load_text;
use harness::prelude::*;
use harness::tools::{Binding, Source};
use harness::{BoundGraph, HarnessError};
use parking_lot::Mutex;

use crate::support::call;

/// Has the tools `far__0` to `far__N`, one more each time that all are listed.
#[derive(Default)]
struct Growing(AtomicUsize);

impl ToolRegistry for Growing {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let count = match scope.allowed {
            None => self.0.fetch_add(1, Ordering::Relaxed) + 1,
            Some(_) => self.0.load(Ordering::Relaxed),
        };
        Ok((0..count).map(|n| ToolDef::new(format!("far__{n}"), "")).collect())
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        Ok(ToolOutcome::text(format!("{} was here", cx.call.name)))
    }
}

/// Calls one tool, then is done; notes what it is offered.
#[derive(Clone, Default)]
struct Caller {
    name: &'static str,
    offered: Arc<Mutex<Vec<String>>>,
}

impl Model for Caller {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        match request.view.last().map(|message| message.joined_text()) {
            Some(said) if said.ends_with("was here") => return Ok(AssistantMessage::text(said)),
            _ => {}
        }
        let names: Vec<_> = request.prepared.tools.iter().map(|tool| tool.name.to_string()).collect();
        self.offered.lock().push(names.join(" "));
        Ok(call("c1", self.name, "{}"))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn bound(targets: &str) -> Result<BoundGraph, HarnessError> {
    let yaml = format!(
        "
runtime: {{ entry_agent: desk }}
tools: {targets}
agents: {{ desk: {{ model: small, instructions: Call., tools: [near, far] }} }}
"
    );
    let near = tool_fn("near", "", |_: Nothing, _| async { "near was here" });
    let source = Source::new("far__", Arc::new(Growing::default()));
    let resolve = |target: &str| match target.strip_prefix("far.")? {
        "*" => Some(Binding::All(source.clone())),
        tool => Some(Binding::One { source: source.clone(), name: format!("far__{tool}").into() }),
    };
    let near = [("test.near", Arc::new(near) as Arc<dyn DynTool>)];
    BoundGraph::bind_with(&load_text(yaml).unwrap(), near, resolve)
}

#[tokio::test]
async fn an_agent_has_the_tools_that_a_source_has_in_each_turn() {
    let model = Caller { name: "far__0", ..Caller::default() };
    let graph = bound("{ near: { target: test.near }, far: { target: 'far.*' } }").unwrap();
    let harness = Harness::new(model.clone()).graph(graph).build().unwrap();
    assert_eq!(harness.prompt("go").await.unwrap().answer(), "far__0 was here");
    assert_eq!(harness.prompt("again").await.unwrap().answer(), "far__0 was here");
    assert_eq!(*model.offered.lock(), ["near far__0", "near far__0 far__1"]);
}

#[tokio::test]
async fn an_agent_may_have_one_tool_of_a_source() {
    let model = Caller { name: "near", ..Caller::default() };
    let graph = bound("{ near: { target: test.near }, far: { target: far.0 } }").unwrap();
    let harness = Harness::new(model.clone()).graph(graph).build().unwrap();
    // The source has no tool yet, and to leave it out in silence would change what the agent can do.
    let report = harness.prompt("go").await.unwrap();
    assert_eq!(report.reason().as_str(), "runtime_error");
    assert!(model.offered.lock().is_empty());
}

#[tokio::test]
async fn a_target_that_nothing_stands_for_is_refused() {
    let error = bound("{ near: { target: test.near }, far: { target: elsewhere.x } }").unwrap_err();
    assert!(error.to_string().contains("elsewhere.x"), "{error}");
}

#[tokio::test]
async fn a_source_stands_beside_single_tools_and_not_beside_a_registry() {
    let source = || Source::new("far__", Arc::new(Growing::default()));
    let model = Caller { name: "far__0", ..Caller::default() };
    let harness = Harness::new(model.clone())
        .tool(tool_fn("near", "", |_: Nothing, _| async { "near was here" }))
        .source(source())
        .build()
        .unwrap();
    assert_eq!(harness.prompt("go").await.unwrap().answer(), "far__0 was here");
    assert_eq!(*model.offered.lock(), ["near far__0"]);
    let faults = Harness::new(model).registry(Growing::default()).source(source()).build().unwrap_err();
    assert_eq!(faults.kind(), "harness.setup");
}
