//! Graphs: bindings, handoffs, instructions, contexts (reference sections 7 to 11).

use std::num::NonZeroU32;

use harness_descriptor::{ContextInput, DescriptorError, Graph, Registry, Value, load_text};

fn build(yaml: &str) -> Result<Graph, DescriptorError> {
    let registry = Registry::new().bind("t://1", "handoff_to_b", "First.").bind("7", "seven", "Seven.");
    Graph::build(&load_text(yaml)?, &registry)
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

#[track_caller]
fn check_fault(yaml: &str, expected: &str) {
    let error = build(yaml).unwrap_err();
    assert_eq!(error.to_string().replace("<inline descriptor>:", ""), expected);
}

#[test]
fn faults_have_places() {
    check_fault("agents: { a: {} }", "1:1: runtime must be a mapping");
    check_fault("runtime: { entry_agent: a }\nagents: {}", "2:9: agents must have at least one agent");
    let head = "runtime: { entry_agent: a }\n";
    check_fault(&format!("{head}agents: {{ b: {{}} }}"), "1:25: unknown agent `a` in `runtime.entry_agent`");
    check_fault(
        &format!("{head}agents: {{ a: {{ tools: [x] }} }}"),
        "2:24: agent `a` lists undeclared tool `x`",
    );
    check_fault(
        &format!("{head}tools: {{ x: {{ target: y }} }}\nagents: {{ a: {{ tools: [x] }} }}"),
        "2:23: target `y` of tool `x` is not bound",
    );
    check_fault(&format!("{head}agents: {{ a: {{ tools: x }} }}"), "2:23: agents.a.tools must be a list");
    check_fault(
        &format!("{head}agents: {{ a: {{ instructions: 5 }} }}"),
        "2:30: agents.a.instructions must be a string or a list of parts",
    );
    check_fault(
        &format!("{head}agent_defaults: {{ instructions: ~ }}\nagents: {{ a: {{}} }}"),
        "2:33: agents.a.instructions must be a string or a list of parts",
    );
    check_fault(
        &format!("{head}agents: {{ a: {{ handoffs: [a, {{ agent: c }}] }} }}"),
        "2:39: agent `a` hands off to unknown agent `c`",
    );
}

#[test]
fn tools_are_looked_up_by_text() {
    let graph = build(
        "runtime: { entry_agent: a }\ntools: { 7: { target: '7' } }\nagents: { a: { model: m, tools: [7, '7'] } }",
    )
    .unwrap();
    let resolved = graph.resolve("a", &Value::Null).unwrap();
    assert_eq!(resolved.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["seven", "seven"]);
}

const HANDOFFS: &str = r"
runtime: { entry_agent: hub }
context: { references: { open: { type: boolean } } }
tools: { one: { target: 't://1' } }
agents:
  hub:
    model: m
    tools: [one]
    handoffs: [{ agent: b, where: { context: open } }, b, two words, b]
  b: { name: B, handoffDescription: Knows b. }
  two words: { name: 'Two  Words!' }
";

#[track_caller]
fn check_handoffs(open: bool, expected: &[&str]) {
    let graph = build(HANDOFFS).unwrap();
    let resolved = graph.resolve("hub", &value(&format!(r#"{{"open":{open}}}"#))).unwrap();
    let found: Vec<String> = resolved
        .handoffs
        .iter()
        .map(|handoff| format!("{} {}", handoff.tool_name, handoff.description))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn handoff_tools_have_the_ids_of_agents_and_keep_their_names() {
    let expected = [
        "handoff_to_b_3e23e816 Handoff to agent \"B\". Knows b.",
        "handoff_to_two_words_a03f1d61 Handoff to agent \"Two  Words!\".",
    ];
    check_handoffs(true, &expected);
    check_handoffs(false, &expected);
}

#[test]
fn gates_come_before_the_model_and_the_model_before_instructions() {
    let yaml = "runtime: { entry_agent: a }\ncontext: { references: { g: { type: boolean }, x: true } }\n\
                agents: { a: { handoffs: [{ agent: a, where: { context: g } }], instructions: '{{context.x}}' } }";
    let graph = build(yaml).unwrap();
    let kind = |context: &str| graph.resolve("a", &value(context)).unwrap_err().kind();
    assert_eq!(kind("{}"), "context.gate_missing");
    assert_eq!(kind(r#"{"g":1}"#), "context.gate_not_boolean");
    assert_eq!(kind(r#"{"g":true}"#), "descriptor.no_model");
    let error = graph.resolve_with("a", &value(r#"{"g":true}"#), Some("m")).unwrap_err();
    assert_eq!(error.kind(), "context.missing");
    assert_eq!(error.place().map(|place| place.line), Some(3));
}

#[test]
fn built_in_names_of_another_language_are_no_values() {
    let yaml = "runtime: { entry_agent: a }\ncontext: { references: { x.constructor: true } }\n\
                agents: { a: { model: m, instructions: '{{context.x.constructor}}' } }";
    let graph = build(yaml).unwrap();
    assert!(graph.resolve("a", &value(r#"{"x":{}}"#)).is_err());
    check_fault(
        "runtime: { entry_agent: a }\nagents: { a: { tools: [toString] } }",
        "2:24: agent `a` lists undeclared tool `toString`",
    );
}

#[track_caller]
fn check_context(fields: &str, overrides: &str, expected: &str) {
    let yaml =
        format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{}} }}\ncontext: {{ fields: {fields} }}");
    let graph = build(&yaml).unwrap();
    let input = ContextInput::new("NOW").message("hi").overrides(value(overrides).as_map().unwrap().clone());
    let found = match graph.create_context(&input) {
        Ok(context) => context.to_string(),
        Err(error) => error.fault().to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn contexts() {
    check_context(
        "{ a.b: { default: 1 }, a.c: { type: x }, m: { default: '{{input.message}}' } }",
        "{}",
        r#"{"a":{"b":1},"m":"hi"}"#,
    );
    check_context(
        "{ t: { default: '{{runtime.now_iso}}' }, u: { default: '{{ input.message }}' } }",
        "{}",
        r#"{"t":"NOW","u":"{{ input.message }}"}"#,
    );
    check_context(
        "{ l: { default: [1, 2] }, l.0: { default: 9 }, l.3: { default: 8 } }",
        "{}",
        r#"{"l":[9,2,null,8]}"#,
    );
    check_context("{ s: { default: x }, s.t: { default: ~ } }", "{}", r#"{"s":{"t":null}}"#);
    check_context(
        "{ o: { default: { a: 1, b: .nan } } }",
        r#"{"o":{"a":[2]},"p":null}"#,
        r#"{"o":{"a":[2],"b":null},"p":null}"#,
    );
    check_context("{ '..': { default: 1 } }", "{}", "the key of a context field is an empty path");
    check_context("{ x: ~ }", "{}", "context.fields.x must be a mapping");
    check_context(
        "{ l: { default: [] }, l.4000000000: { default: 1 } }",
        "{}",
        "position in a list of the context of 4000000000 exceeds the limit of 1000",
    );
    let deep = format!("{{ {}: {{ default: 1 }} }}", "a.".repeat(101));
    check_context(&deep, "{}", "context field path in segments of 101 exceeds the limit of 100");
}

#[test]
fn prototype_keys_are_plain_data() {
    check_context(
        "{ __proto__.x: { default: 1 } }",
        r#"{"__proto__":{"y":2}}"#,
        r#"{"__proto__":{"x":1,"y":2}}"#,
    );
}

#[track_caller]
fn check_max_turns(written: &str, expected: Result<Option<u32>, &str>) {
    let yaml = format!("runtime: {{ entry_agent: a, max_turns: {written} }}\nagents: {{ a: {{}} }}");
    let built = build(&yaml);
    let found = built.map(|graph| graph.max_iterations().map(NonZeroU32::get));
    assert_eq!(found.map_err(|error| error.fault().to_string()), expected.map_err(ToOwned::to_owned));
}

#[test]
fn fault_20_max_iterations_and_its_alias_are_one_limit() {
    let limit = |runtime: &str| {
        let yaml = format!("runtime: {{ entry_agent: a, {runtime} }}\nagents: {{ a: {{}} }}");
        let graph = Graph::build(&load_text(&yaml).unwrap(), &Registry::new());
        graph
            .map(|graph| graph.max_iterations().map(NonZeroU32::get))
            .map_err(|error| error.fault().to_string())
    };
    assert_eq!(limit("max_iterations: 3"), Ok(Some(3)));
    assert_eq!(limit("max_turns: 3"), Ok(Some(3)));
    assert_eq!(limit("max_turns: 3, max_iterations: 4"), Ok(Some(4)));
    let fault = "runtime.max_iterations must be a positive integer, not `0`";
    assert_eq!(limit("max_iterations: 0"), Err(fault.to_owned()));
}

#[test]
fn max_turns_is_a_limit_or_a_fault() {
    check_max_turns("1", Ok(Some(1)));
    check_max_turns("4294967295", Ok(Some(u32::MAX)));
    check_max_turns("12.0", Ok(Some(12)));
    check_max_turns("~", Ok(None));
    for bad in ["0", "-3", "2.5", "4294967296", ".inf", ".nan", "seven", "'7'", "true"] {
        let found = bad.trim_matches('\'').replace(".inf", "Infinity").replace(".nan", "NaN");
        let fault = format!("runtime.max_turns must be a positive integer, not `{found}`");
        check_max_turns(bad, Err(&fault));
    }
}
