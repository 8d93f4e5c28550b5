//! One owner of spans, and what parts of a run spent in them.

use std::sync::Arc;

use harness_core::Cancel;
use harness_core::message::Usage;
use harness_core::port::{ContextPipeline, ViewCx};
use harness_telemetry::{SpanOptions, Spans};

use crate::tree::Tree;
use crate::world::{block_on, run, two_tools};

#[test]
fn fault_44_every_call_of_a_model_or_tool_has_one_span() {
    let (tree, mut ports) = (Tree::default(), two_tools());
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tree.watch_all(|| block_on(run(&ports, &Cancel::never())));
    insta::assert_snapshot!(tree.show(&[]), @r"
    invoke_agent main
      turn 1
        chat vendor/model
        execute_tool read
        execute_tool write !read_only
        chat vendor/model
    ");
}

struct Costly;

impl ContextPipeline for Costly {
    async fn begin(&self, cx: &ViewCx) -> Result<(), harness_core::Fault> {
        cx.ledger.charge(&Usage::tokens(1_000, 5));
        Ok(())
    }
}

#[test]
fn fault_16_spans_tell_what_parts_spent() {
    let (tree, mut ports) = (Tree::default(), two_tools());
    ports.layers = Some(Arc::new(Costly));
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tree.watch(|| block_on(run(&ports, &Cancel::never())));
    let shown = tree.show(&["gen_ai.usage.input_tokens", "harness.usage_by_purpose"]);
    let run = shown.lines().next().unwrap_or_default();
    assert!(run.contains("input_tokens=1230"), "{run}");
    let share = r#""layer":{"modelCalls":1,"inputTokens":1000,"outputTokens":5,"totalTokens":1005}"#;
    assert!(run.contains(share), "{run}");
    assert!(tree.all().contains("layer: 1 model calls, 1005 tokens"), "{}", tree.all());
}
