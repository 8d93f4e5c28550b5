//! Who a simulated thread works with: a model, tools and a compactor, none of them reliable.

use std::panic::resume_unwind;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall};
use harness_core::port::{
    CompactAsk, CompactReason, Compaction, CompactionNote, Compactor, DeltaPart, Deltas, Model, ModelFault,
    ModelFaultCode, ModelRequest,
};
use harness_core::tool::{DynTool, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::{Plan, Span};
use harness_core::{Cancel, Fault, FaultSource, Json};
use harness_runtime::{ModelChoice, ThreadConfig};

use super::tricks::Trick;
use super::world::{Asked, SimClock, World};
use super::{acts, turns};

/// A panic without noise.
fn blow_up() -> ! {
    resume_unwind(Box::new("a part blew up"))
}

/// The model of one thread.
pub(super) struct SimModel {
    pub(super) world: Arc<World>,
    pub(super) thread: String,
}

/// What a model does once.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Says,
    Calls,
    Fails,
    BreaksOff,
    Hangs,
    HangsAndIsDeaf,
    Acts,
    SaysNothing,
    Panics,
}

const MOODS: [Mood; 16] = [
    Mood::Says,
    Mood::Says,
    Mood::Says,
    Mood::Says,
    Mood::Calls,
    Mood::Calls,
    Mood::Calls,
    Mood::Calls,
    Mood::Fails,
    Mood::BreaksOff,
    Mood::Hangs,
    Mood::HangsAndIsDeaf,
    Mood::Acts,
    Mood::Acts,
    Mood::SaysNothing,
    Mood::Panics,
];

impl Model for SimModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let world = &self.world;
        world.is_asked(&self.thread);
        let asked = self.take_down(&request);
        loop {
            let mood = if world.is_calm() { Mood::Says } else { world.pick(&MOODS) };
            world.log(&self.thread, &format!("the model {mood:?}"));
            match mood {
                Mood::Says => return Ok(self.say(asked, deltas).await),
                Mood::Calls if request.with_tools => return Ok(self.call(asked, deltas).await),
                Mood::Calls => return Ok(self.say(asked, deltas).await),
                Mood::Fails => return Err(ModelFault::new(ModelFaultCode::Provider, "down")),
                Mood::BreaksOff => {
                    let partial = self.say(asked, deltas).await;
                    return Err(ModelFault::new(ModelFaultCode::Provider, "torn").with_partial(partial));
                }
                Mood::Hangs => {
                    request.cancel.cancelled().await;
                    return Err(ModelFault::new(ModelFaultCode::Cancelled, "asked to stop"));
                }
                Mood::HangsAndIsDeaf => {
                    world.sleep(600_000).await;
                    return Err(ModelFault::new(ModelFaultCode::Unknown, "at last"));
                }
                Mood::Acts => acts::inside(world, &self.thread),
                Mood::SaysNothing => return Ok(AssistantMessage::default()),
                Mood::Panics => blow_up(),
            }
        }
    }
}

impl SimModel {
    /// Where the request is noted.
    fn take_down(&self, request: &ModelRequest) -> usize {
        let mut view = Vec::new();
        request.view.for_each(|message| view.push(Arc::clone(message)));
        let mut inner = self.world.lock();
        inner.asked.push(Asked { thread: self.thread.clone(), view, answer: None });
        inner.asked.len() - 1
    }

    fn answered(&self, asked: usize, with: &str) {
        let mut inner = self.world.lock();
        if let Some(asked) = inner.asked.get_mut(asked) {
            asked.answer = Some(with.to_owned());
        }
    }

    async fn say(&self, asked: usize, deltas: &dyn Deltas) -> AssistantMessage {
        let text = format!("answer {}", self.world.count());
        let (a, b) = text.split_at(3);
        deltas.part(DeltaPart::Thinking("hm".to_owned()));
        self.world.pause().await;
        for part in [a, b] {
            deltas.part(DeltaPart::Text(part.to_owned()));
            self.world.pause().await;
        }
        self.answered(asked, &text);
        AssistantMessage::text(text)
    }

    async fn call(&self, asked: usize, deltas: &dyn Deltas) -> AssistantMessage {
        let calls: Vec<ToolCall> = (0..=self.world.below(3))
            .map(|_| {
                let number = self.world.count();
                let name =
                    self.world.pick(&["quick", "quick", "listens", "deaf", "fails", "panics", "ghost"]);
                let arguments = Json::parse(&format!(r#"{{"n":{number}}}"#)).unwrap();
                ToolCall::new(format!("c{number}"), name, arguments)
            })
            .collect();
        for (index, call) in (0..).zip(&calls) {
            let (id, name) = (Some(call.id.clone()), call.name.clone());
            deltas.part(DeltaPart::CallStarted { index, id, name });
            self.world.pause().await;
        }
        let text = format!("calls {}", self.world.count());
        self.answered(asked, &text);
        let mut answer = AssistantMessage::calls(calls);
        answer.content.insert(0, Block::text(text));
        answer.stop_reason = FinishReason::ToolUse;
        answer
    }
}

/// A tool that keeps its manner whatever it is asked.
struct SimTool {
    world: Arc<World>,
    def: ToolDef,
    /// Whether a call must not run twice.
    once: bool,
}

impl Tool for SimTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let (world, name) = (&self.world, self.def.name.as_str());
        let thread = cx.origin.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        world.log(&thread, &format!("the tool {name} runs for {}", cx.call.id));
        world.is_called(&thread, &cx.call.id);
        if self.once {
            let ran = {
                let mut inner = world.lock();
                let ran = inner.effects.entry(cx.call.id.to_string()).or_default();
                *ran += 1;
                *ran
            };
            world.expect(ran == 1, || format!("law 5: {} ran {ran} times", cx.call.id));
        }
        cx.emit(vec![Block::text("begun")]);
        match name {
            _ if world.is_calm() => ToolOutcome::text("ok"),
            "listens" => {
                listen(world, &cx.cancel).await;
                ToolOutcome::text("ok")
            }
            "deaf" => {
                world.sleep(world.pick(&[10, 400, 100_000])).await;
                ToolOutcome::text("ok")
            }
            "fails" => ToolOutcome::error("sim.failed", "it does not work"),
            "panics" => blow_up(),
            _ => {
                if world.one_in(2) {
                    acts::inside(world, &thread);
                }
                world.pause().await;
                ToolOutcome::text("ok")
            }
        }
    }
}

/// Works for a while, or until it is asked to stop.
async fn listen(world: &World, cancel: &Cancel) {
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = world.sleep(world.pick(&[10, 300, 100_000])) => {}
    }
}

/// Drops the beginning, up to some prompt.
struct SimCompactor(Arc<World>);

impl Compactor for SimCompactor {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let world = &self.0;
        let requested = matches!(ask.reason, CompactReason::Requested { .. });
        if !requested && (!world.plan.compacts || world.is_calm() || !world.one_in(6)) {
            return Ok(Compaction::unchanged());
        }
        let thread = ask.cx.origin.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        if requested && world.one_in(6) {
            world.sleep(600_000).await;
        }
        world.pause().await;
        if world.one_in(6) {
            return Err(Fault::new(FaultSource::Compactor, "sim.compactor", "it does not work"));
        }
        let log = &ask.cx.log;
        let prompts: Vec<usize> = (1..log.len())
            .filter(|at| matches!(log.get(*at).map(|m| &**m), Some(Message::User(_))))
            .collect();
        if prompts.is_empty() {
            return Ok(Compaction::unchanged());
        }
        let from = world.pick(&prompts);
        world.log(&thread, &format!("made shorter: the first {from} messages go"));
        world.lock().shortened.insert(thread);
        let mut done = Compaction::planned(Plan { spans: Arc::from([Span::Kept(from..usize::MAX)]) });
        let mut note = CompactionNote::default();
        note.first_kept = from as u64;
        done.note = Some(note);
        Ok(done)
    }
}

/// The configuration of a thread, whose model knows its name.
pub(super) fn config(world: &Arc<World>, thread: &str) -> ThreadConfig {
    let model = SimModel { world: Arc::clone(world), thread: thread.to_owned() };
    let mut config =
        ThreadConfig::new(ModelChoice::new(model).named("sim"), Arc::new(SimClock(Arc::clone(world))));
    let tool = |name: &str, class| -> Arc<dyn DynTool> {
        let once = class == RetryClass::Unsafe;
        let said = if world.plays(Trick::ClaimsRepeatable) { RetryClass::Idempotent } else { class };
        let def = ToolDef::new(name, "").with_class(said);
        Arc::new(SimTool { world: Arc::clone(world), def, once })
    };
    config.ports.tools = Arc::new(Toolbox::new([
        tool("quick", RetryClass::Pure),
        tool("listens", RetryClass::Idempotent),
        tool("deaf", RetryClass::Unsafe),
        tool("fails", RetryClass::Unsafe),
        tool("panics", RetryClass::Unsafe),
    ]));
    config.ports.compactor = Some(Arc::new(SimCompactor(Arc::clone(world))));
    let plan = world.plan;
    config.listeners = vec![turns::watch(world)];
    config.ports.grace = plan.grace;
    let limits = &mut config.run.turn.limits;
    (limits.iterations, limits.tool_calls) = (plan.iterations, plan.tool_calls);
    limits.elapsed = Some(plan.elapsed);
    if world.plays(Trick::IsGenerous) {
        (limits.iterations, limits.tool_calls, limits.elapsed) = (100, 100, None);
    }
    (config.steering_mode, config.late_steering) = world.queue_mode();
    config.follow_up_mode = world.queue_mode().0;
    config
}
