//! One operation, performed away from its machine.

use std::sync::Arc;

use harness_core::driver::{OpScope, Ports, perform};
use harness_core::limits::{Amount, Grant};
use harness_core::machine::{Op, Reply};
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{DeltaPart, PreparedAgent, Progress, Secret};
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, OpId, Origin, Redactor, Time};

fn ask() -> Op {
    let (progress, prepared) = (Progress::start(), Arc::new(PreparedAgent::new("main", "", [])));
    Op::Model { progress, plan: None, prepared, with_tools: true, grant: Grant::default() }
}

async fn performed(model: ScriptedModel, op: Op, cancel: &Cancel) -> Reply {
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::frozen(Time(0))));
    ports.redactor = Some(Redactor::new([Secret::new("sk-0123456789")]));
    let log: Transcript = [Arc::new(Message::user("Hi"))].into_iter().collect();
    let origin = Arc::new(Origin::default());
    let scope = OpScope { log: &log, origin: &origin, turn: 1, deadline: None, left: Amount::UNLIMITED };
    perform(&ports, OpId(7), op, scope, cancel).await.reply
}

fn text(reply: Reply) -> String {
    match reply {
        Reply::Model(Ok(answer)) | Reply::Interrupted { partial: Some(answer) } => answer.joined_text(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn the_reply_has_no_secrets() {
    let model = ScriptedModel::new([AssistantMessage::text("key sk-0123456789")]);
    assert_eq!(text(performed(model, ask(), &Cancel::never()).await), "key [redacted]");
}

#[tokio::test]
async fn a_cancelled_operation_replies_with_what_it_has() {
    let model = ScriptedModel::new([ModelStep::hang().with_deltas([DeltaPart::Text("It is".to_owned())])]);
    let cancel = Cancel::new();
    let later = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(performed(model, ask(), &cancel), later);
    assert_eq!(text(reply), "It is");
}

#[tokio::test]
async fn a_missing_port_is_an_error_and_not_a_panic() {
    let reply =
        performed(ScriptedModel::default(), Op::Facts { ask: Arc::default() }, &Cancel::never()).await;
    assert_eq!(reply, Reply::Facts(Ok(harness_core::Json::null())));
    let op = Op::Gate { gate: 3, proposed: Box::new(proposed()) };
    let Reply::Gate(asked) = performed(ScriptedModel::default(), op, &Cancel::never()).await else {
        panic!("a gate replies as a gate")
    };
    assert_eq!(asked.answer.unwrap_err().message, "panicked: its port is not configured");
}

fn proposed() -> harness_core::port::ProposedCall {
    let call = harness_core::message::ToolCall::new("c1", "pay", harness_core::Json::empty_object());
    let def = harness_core::tool::ToolDef::new("pay", "Pays");
    harness_core::port::ProposedCall::new(Arc::new(call), def, "main".into(), 1)
}
