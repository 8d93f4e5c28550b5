//! Runs to watch.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::Execution;
use harness_core::{Cancel, End, Json, Origin, Time};

/// A word that stands in every message, argument and result of [`two_tools`].
pub(crate) const SECRET: &str = "hunter2";

fn object(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(crate) fn ports(steps: impl IntoIterator<Item = ModelStep>, tools: ScriptedTools) -> Ports {
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::jumping(Time(0))));
    ports.tools = Arc::new(tools);
    ports
}

pub(crate) fn origin() -> Origin {
    let mut origin = Origin::default();
    (origin.thread, origin.run) = (Some("t1".into()), Some("r1".into()));
    origin
}

pub(crate) fn answered(mut answer: AssistantMessage, input: u64, output: u64) -> ModelStep {
    let mut usage = Usage::tokens(input, output).with_cost("0.25".parse().unwrap());
    usage.cache_read = Some(100);
    answer.usage = Some(Arc::new(usage));
    answer.provider = Some("openrouter".into());
    answer.model = Some("vendor/model".into());
    answer.response_model = Some("vendor/model-1".into());
    answer.response_id = Some("gen-1".into());
    ModelStep::answer(answer)
}

/// Two calls at once, of which the second fails, and an answer.
pub(crate) fn two_tools() -> Ports {
    let calls = AssistantMessage::calls([
        ToolCall::new("c1", "read", object(&format!(r#"{{"path":"{SECRET}"}}"#))),
        ToolCall::new("c2", "write", object(&format!(r#"{{"path":"{SECRET}"}}"#))),
    ]);
    let failed = ToolOutcome::error("read_only", format!("no room for {SECRET}"));
    let tools = ScriptedTools::new([ToolDef::new("read", ""), ToolDef::new("write", "")]).answering([
        ToolStep::outcome(ToolOutcome::text(format!("the file says {SECRET}"))).of("read"),
        ToolStep::outcome(failed).of("write"),
    ]);
    let last = AssistantMessage::text(format!("It says {SECRET}."));
    ports([answered(calls, 10, 5), answered(last, 20, 7)], tools)
}

pub(crate) async fn run(ports: &Ports, cancel: &Cancel) -> Arc<End> {
    let mut spec = RunSpec::default();
    spec.turn.execution = Execution::Parallel { max: 4 };
    let spec = Arc::new(spec);
    let mut run = Run::new(spec, origin(), Transcript::default());
    let said = format!("What does {SECRET} say?");
    drive(&mut run, ports, cancel, Start::prompt(Message::user(&*said))).await
}

/// Runs a future to its end, on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
