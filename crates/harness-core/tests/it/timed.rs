//! Tools with a time of their own, on virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::Clock;
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{DynTool, Timed, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, Json, Millis, Origin, Time};

use crate::bare::bare;

/// Tells `halfway` when it may, and never answers unless it `hurries`; asked to stop, it says `parting` or goes on.
struct Slow {
    def: ToolDef,
    hurries: bool,
    tells: bool,
    parting: Option<&'static str>,
    dropped: Arc<AtomicBool>,
}

struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Tool for Slow {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let _gone = Gone(Arc::clone(&self.dropped));
        if self.tells {
            cx.emit(vec![harness_core::message::Block::text("halfway")]);
        }
        if self.hurries {
            return ToolOutcome::text("done");
        }
        cx.cancel.cancelled().await;
        match self.parting {
            Some(parting) => ToolOutcome::text(parting),
            None => std::future::pending().await,
        }
    }
}

fn slow() -> Slow {
    let def = ToolDef::new("slow", "s");
    Slow { def, hurries: false, tells: false, parting: None, dropped: Arc::default() }
}

/// What comes of a call that may take two seconds, and when.
#[track_caller]
fn check(prepare: impl FnOnce(&mut Slow), expected: &str) {
    let clock = VirtualClock::jumping(Time(0));
    let mut tool = slow();
    prepare(&mut tool);
    let dropped = Arc::clone(&tool.dropped);
    let timed = Timed::new(Arc::new(tool), Millis(2_000), Arc::new(clock.clone()));
    let call = ToolCx::for_call(Arc::new(ToolCall::new("c", "slow", Json::empty_object())));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let outcome = runtime.block_on(timed.call_boxed(call));
    assert!(dropped.load(Ordering::Relaxed), "the call goes on");
    let code = outcome.error.as_ref().map_or("ok", |error| error.code.as_str());
    let texts: Vec<_> = outcome.content.iter().filter_map(|block| block.as_text()).skip(1).collect();
    let first = outcome.content.first().and_then(|block| block.as_text()).map_or("", |text| &text[..4]);
    let said = format!("{} {code} {first:?} {texts:?} at {}", outcome.status.as_str(), clock.now().0);
    assert_eq!(said, expected);
}

#[test]
fn a_call_in_time_is_as_it_was() {
    check(|tool| tool.hurries = true, "success ok \"done\" [] at 0");
}

#[test]
fn a_call_that_takes_too_long_ends_as_a_timeout() {
    check(|_| (), "timeout timeout \"\" [] at 3000");
}

#[test]
fn what_came_so_far_is_in_the_result() {
    check(|tool| tool.tells = true, "timeout timeout \"`slo\" [\"halfway\"] at 3000");
}

#[test]
fn what_the_tool_says_when_it_is_told_to_stop_is_in_the_result() {
    let parting = |tool: &mut Slow| (tool.tells, tool.parting) = (true, Some("three of five"));
    check(parting, "timeout timeout \"`slo\" [\"three of five\"] at 2000");
}

#[tokio::test]
async fn a_turn_goes_on_after_a_timeout() {
    let clock = VirtualClock::jumping(Time(0));
    let calls = AssistantMessage::calls([ToolCall::new("c", "slow", Json::empty_object())]);
    let steps = [ModelStep::answer(calls), ModelStep::answer(AssistantMessage::text("I will ask later."))];
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(clock.clone()));
    let tools = Toolbox::new([Arc::new(slow()) as Arc<dyn DynTool>]);
    ports.tools = Arc::new(tools.within(Millis(1_500), &ports.clock));
    let mut spec = bare();
    // The tool alone waits on the clock, which jumps.
    spec.limits.elapsed = None;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(end.answer.as_deref(), Some("I will ask later."));
    let result = turn.log().get(2).and_then(|message| message.as_tool_result()).unwrap();
    insta::assert_snapshot!(
        result.content[0].as_text().unwrap(),
        @"`slow` did not finish within 1.5 s. It may have taken effect: check before it is repeated."
    );
}
