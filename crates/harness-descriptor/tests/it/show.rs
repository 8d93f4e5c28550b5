//! A graph and its descriptor made visible: pictures, previews, YAML.

use harness_descriptor::{ContextInput, Graph, Map, Registry, Value, load_text};
use proptest::prelude::*;

fn graph(yaml: &str) -> Graph {
    let descriptor = load_text(yaml).unwrap();
    Graph::build(&descriptor, &Registry::stand_in(&descriptor)).unwrap()
}

const DESK: &str = r#"
metadata: { name: desk }
runtime: { entry_agent: front }
context:
  fields:
    late: { default: false }
    known: { default: true }
  references: { late: { type: boolean }, known: { type: boolean }, name: { type: string } }
tools: { find: { target: t/find } }
agent_defaults: { model: small }
agents:
  expert: { name: "Expert", tools: [find, find], instructions: "Ask {{context.name}}." }
  front:
    instructions:
      - text: Be brief.
      - { text: They are late., where: { context: late } }
    handoffs:
      - expert
      - { agent: expert, where: { context: known } }
      - { agent: night, where: { context: late } }
  night: { model: large }
"#;

#[test]
fn a_flowchart_begins_with_the_entry_agent() {
    insta::assert_snapshot!(graph(DESK).to_mermaid(), @r#"
    %%{init: {"flowchart": {"wrappingWidth": 400}}}%%
    flowchart LR
      agent_front("<b>front</b><br/><i>entry agent</i><br/>small"):::entry
      agent_expert("<b>Expert</b><br/>small<br/>• find")
      agent_night("<b>night</b><br/>large")
      agent_front --> agent_expert
      agent_front -.->|"if known"| agent_expert
      agent_front -.->|"if late"| agent_night
      classDef entry stroke-width:4px
    "#);
    insta::assert_snapshot!(graph(DESK).to_dot(), @r#"
    digraph "desk" {
      rankdir=LR
      graph [fontname="Helvetica" nodesep=0.4 ranksep=0.9]
      node [shape=Mrecord fontname="Helvetica" fontsize=12]
      start [shape=point width=0.15 label=""]
      edge [fontname="Helvetica" fontsize=10]
      agent_front [label="front\nsmall" penwidth=3]
      start -> agent_front
      agent_expert [label="Expert\nsmall|find\l"]
      agent_night [label="night\nlarge"]
      agent_front -> agent_expert
      agent_front -> agent_expert [style=dashed label="if known"]
      agent_front -> agent_night [style=dashed label="if late"]
    }
    "#);
}

#[test]
fn names_cannot_break_out_of_a_picture() {
    let graph = graph(
        r#"
metadata: { name: "\"]; x" }
runtime: { entry_agent: "a\"b" }
agents:
  "a\"b": { name: "1. **Dr** \"O'Neil\" <b>&</b> `x` %%{init}%% fa:fa-x\n[new]  {line}\\|", handoffs: [end, 日本] }
  end: { name: "\u001b[31m red $$ \\N" }
  日本: {}
"#,
    );
    insta::assert_snapshot!(graph.to_mermaid(), @r#"
    %%{init: {"flowchart": {"wrappingWidth": 400}}}%%
    flowchart LR
      agent_1("<b>1#46; #42;#42;Dr#42;#42; #34;O'Neil#34; #60;b#62;#38;#60;#47;b#62; #96;x#96; #37;#37;#123;init#125;#37;#37; fa#58;#8203;fa-x<br/>#91;new#93; #123;l…</b><br/><i>entry agent</i><br/>a#34;b"):::entry
      agent_end("<b>�#91;31m red #36;#8203;#36;#8203; #92;N</b><br/>end")
      agent_3("<b>日本</b>")
      agent_1 --> agent_end
      agent_1 --> agent_3
      classDef entry stroke-width:4px
    "#);
    insta::assert_snapshot!(graph.to_dot(), @r#"
    digraph "\"]; x" {
      rankdir=LR
      graph [fontname="Helvetica" nodesep=0.4 ranksep=0.9]
      node [shape=Mrecord fontname="Helvetica" fontsize=12]
      start [shape=point width=0.15 label=""]
      edge [fontname="Helvetica" fontsize=10]
      agent_1 [label="1. **Dr** \"O'Neil\" \<b\>&amp;\</b\> `x` %%\{init\}%% fa:fa-x\n[new]  \{l…\na\"b" penwidth=3]
      start -> agent_1
      agent_end [label="�[31m red $$ \\N\nend"]
      agent_3 [label="日本"]
      agent_1 -> agent_end
      agent_1 -> agent_3
    }
    "#);
}

#[test]
fn a_preview_says_why_something_is_left_out() {
    let graph = graph(DESK);
    let context = graph.create_context(&ContextInput::new("2026-01-01T00:00:00.000Z")).unwrap();
    let shown = |id: &str, context: &Value| {
        let preview = graph.preview(id, context).unwrap();
        let parts = preview.parts.iter().map(|part| format!("{:?}", part.standing));
        let handoffs = preview.handoffs.iter().map(|it| format!("{} {:?}", it.handoff.to(), it.standing));
        let resolved = match &preview.resolved {
            Ok(resolved) => format!("{:?}, {} handoffs", resolved.instructions, resolved.handoffs.len()),
            Err(error) => error.kind().to_owned(),
        };
        std::iter::once(resolved).chain(parts).chain(handoffs).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown("front", &context), @r#"
    Some("Be brief."), 1 handoffs
    Open
    Closed { path: ContextPath { text: "late" } }
    expert Open
    expert Repeated
    night Closed { path: ContextPath { text: "late" } }
    "#);
    insta::assert_snapshot!(shown("front", &Value::Null), @r#"
    context.gate_missing
    Open
    Faulty(GateMissing { used_by: PartGate { agent: "front" }, path: "late" })
    expert Open
    expert Faulty(GateMissing { used_by: HandoffGate { agent: "front", to: "expert" }, path: "known" })
    night Faulty(GateMissing { used_by: HandoffGate { agent: "front", to: "night" }, path: "late" })
    "#);
    insta::assert_snapshot!(shown("expert", &context), @"context.missing");
    assert_eq!(graph.preview("boss", &context).unwrap_err().kind(), "descriptor.unknown_agent");
}

/// Texts that a YAML reader could take for something else.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "word",
        "yes",
        "null",
        "1",
        "0x1f",
        ".5",
        "2020-01-02",
        "~",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n  ",
        "\t",
        "\r\n",
        ": ",
        " #",
        "- ",
        "? ",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a",
        "*a",
        "!",
        "%",
        "@",
        "`",
        "|",
        ">",
        "<<",
        "---",
        "...",
        "=",
        "\u{85}",
        "\u{a0}",
        "\u{feff}",
        "\u{2028}",
        "\u{7f}",
        "\u{1f600}",
        "é",
        "\u{0}",
        "\u{fffe}",
        "{{context.x}}",
    ];
    let pieces = prop::sample::select(pieces.to_vec()).prop_map(str::to_owned);
    prop::collection::vec(prop_oneof![8 => pieces, 1 => "\\PC{0,6}"], 0..6).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => any::<f64>().prop_filter("equal to itself", |number| !number.is_nan()).prop_map(Value::from),
        8 => text().prop_map(|text| Value::from(text.as_str())),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::vec((text(), inner), 0..5).prop_map(map),
        ]
    })
}

fn map(entries: Vec<(String, Value)>) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn yaml_that_we_write_reads_back_as_the_same_value(entries in prop::collection::vec((text(), value()), 1..5)) {
        let value = map(entries);
        let yaml = value.to_yaml();
        let again = load_text(yaml.as_str());
        prop_assert!(again.is_ok(), "{:?}\n{yaml}", again.err());
        prop_assert_eq!(again.unwrap().to_value().to_string(), value.to_string(), "{}", yaml);
    }
}
