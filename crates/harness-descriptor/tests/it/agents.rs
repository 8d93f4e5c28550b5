//! A graph behind core's agent port.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
use harness_core::tool::ToolKind;
use harness_core::transcript::Transcript;
use harness_core::{AgentId, Fault};
use harness_descriptor::{Graph, GraphAgents, Registry, Value, load_text};

const YAML: &str = "
runtime: { entry_agent: desk }
context: { references: { who: true, open: { type: boolean } } }
tools: { find: { target: t } }
agent_defaults: { model: ' small ', modelSettings: { temperature: 0.5, top_k: 3 } }
agents:
  desk:
    instructions: 'Greet {{context.who}}.'
    tools: [find, find]
    handoffs: [{ agent: expert, where: { context: open } }]
  expert: { name: Expert }
";

fn agents(context: &str) -> GraphAgents {
    let registry = Registry::new().bind("t", "find_it", "Finds.");
    let graph = Graph::build(&load_text(YAML).unwrap(), &registry).unwrap();
    GraphAgents::new(Arc::new(graph), serde_json::from_str(context).unwrap())
}

/// The graph answers at once, so one poll is enough.
fn prepare(agents: &GraphAgents, agent: Option<&str>) -> Result<AgentConfig, Fault> {
    let ask = PrepareAsk {
        agent: agent.map(AgentId::from),
        origin: Arc::default(),
        iteration: 1,
        log: Transcript::default().prefix(),
    };
    let mut answer = pin!(agents.prepare(&ask));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the graph waits"),
    }
}

#[test]
fn a_brief_holds_everything_of_a_turn() {
    let agents = agents(r#"{"who":"Ada","open":true}"#);
    let config = prepare(&agents, None).unwrap();
    assert_eq!(config.agent, "desk");
    assert_eq!(&*config.instructions, "Greet Ada.");
    assert_eq!(config.tools.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>(), ["find_it"]);
    assert_eq!(config.model.unwrap(), "small");
    assert_eq!(config.settings.unwrap().text(), r#"{"temperature":0.5,"top_k":3}"#);
    let [handoff] = config.handoffs.as_slice() else { panic!("one handoff") };
    assert_eq!(handoff.name, "handoff_to_expert");
    assert_eq!(handoff.kind, ToolKind::Handoff("expert".into()));
}

#[test]
fn the_context_may_change_between_turns() {
    let agents = agents(r#"{"who":"Ada","open":true}"#);
    agents.set_context(serde_json::from_str(r#"{"who":"Bo","open":false}"#).unwrap());
    let config = prepare(&agents, Some("desk")).unwrap();
    assert_eq!(&*config.instructions, "Greet Bo.");
    assert!(config.handoffs.is_empty());
}

#[test]
fn faults_carry_code_and_advice() {
    let agents = agents("{}");
    agents.set_context(Value::Null);
    let fault = prepare(&agents, None).unwrap_err();
    assert_eq!(&*fault.code, "context.gate_missing");
    assert!(
        fault.message.ends_with("a gate requires `true` or `false` in every context"),
        "{}",
        fault.message
    );
    assert_eq!(&*prepare(&agents, Some("nobody")).unwrap_err().code, "descriptor.unknown_agent");
}

#[test]
fn a_model_can_be_given_to_all_agents() {
    let agents = agents(r#"{"who":1,"open":false}"#).with_model("other");
    assert_eq!(prepare(&agents, Some("expert")).unwrap().model.unwrap(), "other");
}
