//! When an agent is told: whenever model requests begin to be made with it.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, Fault, Json, Origin, Time};

use crate::bare::bare;

/// `desk` can hand over to `expert`, and is told of the half in which an iteration is.
struct Desk {
    changes: bool,
}

impl AgentSource for Desk {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let agent = ask.agent.clone().unwrap_or_else(|| "desk".into());
        let half = if ask.iteration < 3 { "first" } else { "second" };
        let mut config = AgentConfig::new(agent, format!("It is the {half} half."));
        config.changes = self.changes;
        config.handoffs = vec![ToolDef::handoff("to_expert", "", "expert".into())];
        Ok(config)
    }
}

/// Calls these tools, one per step, and answers then; gives what is told of agents and model requests.
async fn check(changes: bool, calls: &[&str], expected: &[&str]) {
    let steps = calls.iter().enumerate().map(|(n, name)| {
        AssistantMessage::calls([ToolCall::new(format!("c{n}"), *name, Json::empty_object())])
    });
    let model = ScriptedModel::new(steps.chain([AssistantMessage::text("done")]));
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
    ports.agents = Arc::new(Desk { changes });
    let looked = calls.iter().map(|_| ToolStep::outcome(ToolOutcome::text("seen")).of("look"));
    ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("look", "")]).answering(looked));
    let log = EventLog::default();
    ports.hub.fold(log.clone());
    let mut spec = bare();
    spec.longest_cycle = 0;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let told = log.events().into_iter().filter_map(|event| match event.kind {
        EventKind::AgentPrepared { prepared } => {
            Some(format!("{}: {} {} tools", prepared.agent, prepared.instructions, prepared.tools.len()))
        }
        EventKind::ModelStepStarted { agent, .. } => Some(format!("{agent} asks")),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_agent_is_told_at_the_start_and_after_a_handoff() {
    let first = "desk: It is the first half. 2 tools";
    let second = "expert: It is the first half. 2 tools";
    let expected = [first, "desk asks", second, "expert asks", "expert asks"];
    check(false, &["to_expert", "look"], &expected).await;
}

#[tokio::test]
async fn an_agent_that_is_prepared_again_is_told_only_when_it_has_changed() {
    let (first, second) = ("desk: It is the first half. 2 tools", "desk: It is the second half. 2 tools");
    let expected = [first, "desk asks", "desk asks", second, "desk asks", "desk asks"];
    check(true, &["look", "look", "look"], &expected).await;
}
