//! Descriptors that a program builds.

use harness_descriptor::source::{
    Agent, AgentDefaults, AgentHarnessDescriptor, Condition, Context, ContextField, Declaration, Handoff,
    HandoffItem, Metadata, ModelSettings, Reference, Runtime, SequenceItem, Tool, ValueType, Version,
};
use harness_descriptor::{Graph, Registry, TextSource, Value};

const FILE: &str = "
descriptor_version: aioc.agent_graph.v0
metadata: { name: desk, owner: support }
runtime: { entry_agent: desk, max_iterations: 12 }
context:
  fields: { customer.premium: { type: boolean, default: true } }
  references: { customer.premium: { type: boolean }, customer.name: true }
instruction_parts: { tone: Be brief. }
tools: { find: { target: orders.find } }
agent_defaults: { model: small, modelSettings: { temperature: 0.5, top_a: 1 } }
run: { limits: { turns: 3 } }
agents:
  desk:
    instructions_sequence: [{ file: desk.md }, { ref: tone, where: { context: customer.premium } }]
    tools: [find]
    handoffs: [expert, { agent: expert, where: { context: customer.premium } }]
  expert: { instructions: Be exact. }
";

#[expect(clippy::too_many_lines, reason = "one case after another")]
fn typed() -> AgentHarnessDescriptor {
    let premium = || Condition { context: "customer.premium".into() };
    AgentHarnessDescriptor {
        descriptor_version: Some(Version::V0),
        metadata: Some(Metadata {
            name: Some("desk".into()),
            other: [("owner".into(), "support".into())].into(),
            ..Metadata::default()
        }),
        runtime: Runtime {
            entry_agent: "desk".into(),
            max_iterations: 12.try_into().ok(),
            ..Runtime::default()
        },
        context: Some(Context {
            fields: [(
                "customer.premium".into(),
                ContextField {
                    value_type: Some(ValueType::Boolean),
                    default: Some(true.into()),
                    ..ContextField::default()
                },
            )]
            .into(),
            references: [
                (
                    "customer.premium".into(),
                    Reference::Declared(Declaration {
                        value_type: Some(ValueType::Boolean),
                        ..Declaration::default()
                    }),
                ),
                ("customer.name".into(), Reference::Flag(true)),
            ]
            .into(),
        }),
        instruction_parts: [("tone".into(), "Be brief.".into())].into(),
        tools: [("find".into(), Tool { target: "orders.find".into(), ..Tool::default() })].into(),
        agent_defaults: Some(AgentDefaults {
            model: Some("small".into()),
            model_settings: Some(ModelSettings {
                temperature: Some(0.5),
                other: [("top_a".into(), Value::Number(1.0))].into(),
                ..ModelSettings::default()
            }),
            ..AgentDefaults::default()
        }),
        run: serde_json::from_str(r#"{ "limits": { "turns": 3 } }"#).ok(),
        agents: [
            (
                "desk".into(),
                Agent {
                    instructions_sequence: vec![
                        SequenceItem { file: Some("desk.md".into()), ..SequenceItem::default() },
                        SequenceItem {
                            part: Some("tone".into()),
                            condition: Some(premium()),
                            ..SequenceItem::default()
                        },
                    ],
                    tools: vec!["find".into()],
                    handoffs: vec![
                        "expert".into(),
                        Handoff::Conditional(HandoffItem {
                            agent: "expert".into(),
                            condition: Some(premium()),
                        }),
                    ],
                    ..Agent::default()
                },
            ),
            ("expert".into(), Agent { instructions: Some("Be exact.".into()), ..Agent::default() }),
        ]
        .into(),
        ..AgentHarnessDescriptor::default()
    }
}

#[test]
fn typed_descriptor_has_the_text_and_hash_of_a_file() {
    let prompts = [("desk.md", "Help.")];
    let file = TextSource::new(FILE).prompts(prompts).load().unwrap();
    let built = typed().source().prompts(prompts).load().unwrap();
    assert_eq!(built.canonical_text(), file.canonical_text());
    assert_eq!(built.hash(), file.hash());
    let registry = Registry::new().bind("orders.find", "find", "Finds an order");
    assert_eq!(Graph::build(&built, &registry).unwrap().entry_agent().id(), "desk");
}

#[test]
fn all_errors_of_a_typed_descriptor_are_reported() {
    let agent = Agent { tools: vec!["fnd".into()], handoffs: vec!["exprt".into()], ..Agent::default() };
    let descriptor = AgentHarnessDescriptor {
        runtime: Runtime { entry_agent: "dsk".into(), ..Runtime::default() },
        tools: [("find".into(), Tool { target: "orders.find".into(), ..Tool::default() })].into(),
        agents: [("desk".into(), Agent { model: Some("small".into()), ..agent })].into(),
        ..AgentHarnessDescriptor::default()
    };
    let report = descriptor.build().unwrap_err();
    let codes: Vec<&str> = report.faults().map(|error| error.code).collect();
    assert_eq!(
        codes,
        ["descriptor.unknown_entry_agent", "descriptor.unknown_tool", "descriptor.unknown_handoff"]
    );
    assert!(report.to_string().contains("did you mean `find`?"), "{report}");
}
