//! How often the loop allocates.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, Fold};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, Usage};
use harness_core::port::{Deltas, Model, ModelFault, ModelRequest, SingleAgent};
use harness_core::testing::VirtualClock;
use harness_core::tool::{RetryClass, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, Json, Origin, Time};

use crate::bare::bare;

/// Asks for `tide` again and again, then answers. Of its own it allocates one list of blocks a call.
struct Captain {
    calls: Vec<Arc<ToolCall>>,
    usage: Arc<Usage>,
}

impl Model for Captain {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut answer = AssistantMessage::default();
        match self.calls.get(request.progress.iteration as usize - 1) {
            Some(call) => {
                answer.content = vec![Block::ToolCall(Arc::clone(call))];
                answer.stop_reason = FinishReason::ToolUse;
            }
            None => answer.content.push(Block::text("done")),
        }
        answer.usage = Some(Arc::clone(&self.usage));
        Ok(answer)
    }
}

/// Allocates a text and a list of blocks a call.
struct Tide(ToolDef);

impl Tool for Tide {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        ToolOutcome::text(format!("level {}", cx.iteration))
    }
}

/// What the model and the tool allocate in an iteration.
const PAYLOAD: u64 = 3;

struct Nothing;

impl Fold for Nothing {
    fn apply(&mut self, _: &Event) {}
}

/// Allocations of a turn of so many iterations.
fn allocations(iterations: u32, listened: bool) -> u64 {
    let calls = (0..iterations).map(|n| ToolCall::new(n.to_string(), "tide", Json::empty_object()));
    let model = Captain { calls: calls.map(Arc::new).collect(), usage: Arc::new(Usage::tokens(10, 5)) };
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::frozen(Time(0))));
    let def = ToolDef::new("tide", "The tide").with_class(RetryClass::Pure);
    ports.tools = Arc::new(Toolbox::new([Arc::new(Tide(def)) as _]));
    ports.agents = Arc::new(SingleAgent::new("You track a harbor."));
    if listened {
        ports.hub.fold(Nothing);
    }
    let mut spec = bare();
    (spec.limits.iterations, spec.limits.tool_calls) = (iterations + 1, iterations + 1);
    let spec = Arc::new(spec);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut end = None;
    let counted = allocation_counter::measure(|| {
        end = Some(runtime.block_on(async {
            let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
            drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("status?"))).await
        }));
    });
    assert_eq!(end.map(|end| end.reason().as_str()), Some("answer_finalized"));
    counted.count_total
}

#[track_caller]
fn check(listened: bool, most: u64) {
    const MORE: u32 = 1_000;
    let (few, many) = (allocations(1_000, listened), allocations(1_000 + MORE, listened));
    let own = (many - few).div_ceil(u64::from(MORE)) - PAYLOAD;
    assert!(own <= most, "{own} allocations in an iteration, at most {most}");
}

#[test]
fn an_iteration_allocates_at_most_fifteen_times_beside_the_payload() {
    check(false, 15);
    check(true, 15);
}
