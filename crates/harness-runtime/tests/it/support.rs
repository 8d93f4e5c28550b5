//! What the tests are made of: a model that does what it is told, and short lines for what happened.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::message::{AssistantMessage, FinishReason, Message, ToolCall};
use harness_core::port::{DeltaPart, Deltas, Ids, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::testing::VirtualClock;
use harness_core::{Json, RunId, Time};
use harness_runtime::{Limits, ModelChoice, Runtime, RuntimeBuilder, Thread, ThreadConfig};
use parking_lot::Mutex;

/// Run ids in their order.
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

impl Ids for Counted {
    fn run_id(&self) -> RunId {
        RunId::from(format!("run-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

type During = Box<dyn FnOnce(&Thread) + Send>;

/// What the model does once.
pub(crate) enum Step {
    /// Says this, in two halves.
    Say(&'static str),
    /// Calls the tool `t` under this id.
    Call(&'static str),
    /// Fails.
    Fail(&'static str),
    /// Waits until it is cancelled.
    Hang,
    /// Does this, then goes on with the next step.
    During(During),
}

pub(crate) fn during(act: impl FnOnce(&Thread) + Send + 'static) -> Step {
    Step::During(Box::new(act))
}

#[derive(Clone, Default)]
pub(crate) struct Scripted {
    steps: Arc<Mutex<VecDeque<Step>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    thread: Arc<Mutex<Option<Thread>>>,
}

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: Arc::new(Mutex::new(steps.into_iter().collect())), ..Self::default() }
    }

    pub(crate) fn for_thread(&self, thread: &Thread) {
        *self.thread.lock() = Some(thread.clone());
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().clone()
    }

    /// One line per request: the messages.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.requests().iter().map(lines_of).collect()
    }
}

fn lines_of(request: &ModelRequest) -> String {
    let mut messages = Vec::new();
    request.view.for_each(|message| messages.push(short(message)));
    messages.join(" ")
}

impl Model for Scripted {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.requests.lock().push(request.clone());
        loop {
            let step = self.steps.lock().pop_front();
            match step {
                Some(Step::Say(text)) => {
                    let (a, b) = text.split_at(text.len().div_ceil(2));
                    for part in [a, b] {
                        deltas.part(DeltaPart::Text(part.to_owned()));
                    }
                    return Ok(AssistantMessage::text(text));
                }
                Some(Step::Call(id)) => {
                    let mut answer = AssistantMessage::calls([ToolCall::new(id, "t", Json::empty_object())]);
                    answer.stop_reason = FinishReason::ToolUse;
                    return Ok(answer);
                }
                Some(Step::Fail(why)) => return Err(ModelFault::new(ModelFaultCode::Provider, why)),
                Some(Step::Hang) => {
                    request.cancel.cancelled().await;
                    return Err(ModelFault::new(ModelFaultCode::Cancelled, "asked to stop"));
                }
                Some(Step::During(act)) => {
                    let thread = self.thread.lock().clone().expect("a thread");
                    act(&thread);
                }
                None => return Err(ModelFault::new(ModelFaultCode::Unknown, "the script is over")),
            }
        }
    }
}

pub(crate) fn builder(config: ThreadConfig) -> RuntimeBuilder {
    Runtime::builder(config, Arc::new(Counted::default()))
}

/// Time stands still.
pub(crate) fn still() -> Arc<VirtualClock> {
    Arc::new(VirtualClock::still(Time(0)))
}

pub(crate) fn config(model: &Scripted) -> ThreadConfig {
    ThreadConfig::new(ModelChoice::new(model.clone()).named("m1"), still())
}

/// A thread with a scripted model.
pub(crate) fn thread_of(steps: impl IntoIterator<Item = Step>) -> (Thread, Scripted) {
    thread_with(steps, |_| {})
}

pub(crate) fn thread_with(
    steps: impl IntoIterator<Item = Step>,
    change: impl FnOnce(&mut ThreadConfig),
) -> (Thread, Scripted) {
    let model = Scripted::new(steps);
    let mut config = config(&model);
    change(&mut config);
    let runtime = builder(config).limits(|limits: &mut Limits| limits.queue = 64).build();
    let thread = runtime.thread("t");
    model.for_thread(&thread);
    (thread, model)
}

/// `u:text`, `a:text`, `c:id`, `o:id=text`, and `!reason` of an answer that never came.
pub(crate) fn short(message: &Message) -> String {
    let text = message.joined_text();
    match message {
        Message::Assistant(answer) => {
            let mut line = if text.is_empty() { String::new() } else { format!("a:{text}") };
            for call in answer.tool_calls() {
                write!(line, "{}c:{}", if line.is_empty() { "" } else { "," }, call.id).expect("a text");
            }
            if line.is_empty() { format!("!{}", answer.stop_reason.as_str()) } else { line }
        }
        Message::ToolResult(result) => format!("o:{}={text}", result.tool_call_id),
        _ => format!("u:{text}"),
    }
}

pub(crate) async fn history(thread: &Thread) -> String {
    let messages = thread.messages().await.expect("a transcript");
    messages.iter().map(|message| short(message)).collect::<Vec<_>>().join(" ")
}
