//! The descriptors under `fixtures/descriptors`: what they become, or how they fail.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use harness_descriptor::{ContextInput, Descriptor, DescriptorError, Graph, Registry, Value, load_file};

fn folder(case: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/descriptors");
    root.canonicalize().unwrap().join(case)
}

fn load(case: &str) -> Result<Descriptor, DescriptorError> {
    load_file(folder(case).join("descriptor.yaml"))
}

fn registry() -> Registry {
    Registry::new()
        .version("workshop-tools@1")
        .bind("tool://repairs/find", "find_repair", "Finds a repair by its ticket.")
        .bind("tool://prices/list", "price_list", "Lists prices.")
}

/// The graph and one turn of every agent, as text.
fn describe(graph: &Graph, context: &Value) -> String {
    let mut out = String::new();
    let meta = graph.metadata();
    writeln!(out, "entry {} of {} agents", graph.entry_agent().id(), graph.agents().len()).unwrap();
    writeln!(out, "name {:?} registry {:?}", meta.name, meta.registry_version).unwrap();
    writeln!(out, "context {context}").unwrap();
    for agent in graph.agents() {
        let offer = graph.offer(agent.id(), context).unwrap();
        writeln!(out, "\n== {} ({}) model {}", agent.id(), agent.name(), offer.model).unwrap();
        if let Some(settings) = &offer.model_settings {
            writeln!(out, "settings {settings}").unwrap();
        }
        for tool in &offer.tools {
            writeln!(out, "tool {} -> {}", tool.name, tool.target).unwrap();
        }
        for handoff in &offer.handoffs {
            writeln!(out, "handoff {}: {}", handoff.tool_name, handoff.description).unwrap();
        }
        if let Some(instructions) = &offer.instructions {
            writeln!(out, "{instructions}").unwrap();
        }
    }
    out
}

#[track_caller]
fn check_overrides(case: &str, overrides: &str) -> String {
    let graph = Graph::build(&load(case).unwrap(), &registry()).unwrap();
    let overrides: Value = serde_json::from_str(overrides).unwrap();
    let input = ContextInput::new("2026-01-01T00:00:00.000Z").message("My brakes squeak.");
    let input = input.overrides(overrides.as_map().unwrap().clone());
    describe(&graph, &graph.create_context(&input).unwrap())
}

#[test]
fn minimal() {
    let descriptor = load("minimal").unwrap();
    insta::assert_snapshot!(
        descriptor.hash().to_string(),
        @"sha256:0e7172a5289072d2e45f0faed68eb8dcf13563f34f732e7eead26ddf058e4371"
    );
    insta::assert_snapshot!(
        descriptor.to_value().to_string(),
        @r#"{"runtime":{"entry_agent":"assistant"},"agents":{"assistant":{"model":"example/small"}}}"#
    );
    insta::assert_snapshot!(check_overrides("minimal", "{}"), @r#"
    entry assistant of 1 agents
    name None registry Some("workshop-tools@1")
    context {}

    == assistant (assistant) model example/small
    "#);
}

#[test]
fn parts_and_gates_materialized() {
    let descriptor = load("parts-and-gates").unwrap();
    insta::assert_snapshot!(
        descriptor.hash().to_string(),
        @"sha256:9c009855d5dd9bab0c8f2ec1578c2abaae75b057ebc5e174b9c0be46f6d1c3f7"
    );
    insta::assert_snapshot!("parts-and-gates", serde_json::to_string_pretty(&descriptor.to_value()).unwrap());
}

#[test]
fn parts_and_gates_with_defaults() {
    insta::assert_snapshot!("parts-and-gates-defaults", check_overrides("parts-and-gates", "{}"));
}

#[test]
fn parts_and_gates_for_a_member_when_closed() {
    let overrides = r#"{"customer":{"name":"Ada","member":true},"shop":{"open":false},"ticket":"R-17"}"#;
    insta::assert_snapshot!("parts-and-gates-member", check_overrides("parts-and-gates", overrides));
}

#[test]
fn undeclared_path() {
    let error = Graph::build(&load("invalid-undeclared").unwrap(), &registry()).unwrap_err();
    let shown = error.render().replace(folder("invalid-undeclared").to_str().unwrap(), "");
    insta::assert_snapshot!(shown, @r"
    /descriptor.yaml:10:21: error[descriptor.undeclared]: placeholder `{{context.user.nmae}}` of agent `greeter` reads context path `user.nmae`, which context.references does not declare
       |
    10 |       Their name is {{context.user.nmae}}.
       |                     ^^^^^^^^^^^^^^^^^^^^^
    help: did you mean `user.name`?
    ");
    assert_eq!(error.kind(), "descriptor.undeclared");
}
