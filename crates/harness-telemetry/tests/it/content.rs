//! What was said and done stands in spans only when that is asked for, and bounded.

use harness_core::Cancel;
use harness_telemetry::{SpanOptions, Spans};

use crate::tree::Tree;
use crate::world::{SECRET, block_on, run, two_tools};

fn watched(options: SpanOptions) -> Tree {
    let tree = Tree::default();
    let mut ports = two_tools();
    ports.hub.fold(Spans::new(options));
    tree.watch(|| block_on(run(&ports, &Cancel::never())));
    tree
}

#[test]
fn without_being_asked_spans_hold_no_content() {
    let all = watched(SpanOptions::new()).all();
    assert!(all.contains("execute_tool write"));
    assert!(!all.contains(SECRET), "{all}");
}

#[test]
fn when_asked_they_hold_what_was_said_and_done() {
    let shown = watched(SpanOptions::new().content(true)).show(&[
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "otel.status_description",
    ]);
    insta::assert_snapshot!(shown, @r#"
    invoke_agent main messages=[{"role":"user","parts":[{"type":"text","content":"What does hunter2 say?"}]}] messages=[{"role":"assistant","parts":[{"type":"text","content":"It says hunter2."}]}]
      turn 1
        chat vendor/model messages=[{"role":"user","parts":[{"type":"text","content":"What does hunter2 say?"}]}] messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"read","arguments":{"path":"hunter2"}},{"type":"tool_call","id":"c2","name":"write","arguments":{"path":"hunter2"}}]}]
        execute_tool read arguments={"path":"hunter2"} result=the file says hunter2
        execute_tool write !read_only arguments={"path":"hunter2"} status_description=no room for hunter2
        chat vendor/model messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"read","arguments":{"path":"hunter2"}},{"type":"tool_call","id":"c2","name":"write","arguments":{"path":"hunter2"}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"the file says hunter2"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c2","response":"no room for hunter2"}]}] messages=[{"role":"assistant","parts":[{"type":"text","content":"It says hunter2."}]}]
    "#);
}

#[test]
fn content_is_bounded() {
    let shown = watched(SpanOptions::new().content(true).content_bytes(16))
        .show(&["gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]);
    insta::assert_snapshot!(shown, @r#"
    invoke_agent main
      turn 1
        chat vendor/model
        execute_tool read arguments={"path":"hunt… result=the file says…
        execute_tool write !read_only arguments={"path":"hunt…
        chat vendor/model
    "#);
}
