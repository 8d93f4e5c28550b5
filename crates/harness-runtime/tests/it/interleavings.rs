//! Every way in which two others can come between the steps of a run.
//!
//! All that a thread shares lies behind one lock, and no lock is held while a part of a run is asked or told. So
//! what others do falls between two such points: an event that is told, a model that is asked, a session that is
//! written, a task that gives way. Each pair of acts is tried at each pair of points.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use harness_core::event::{Event, Fold};
use harness_core::message::{AssistantMessage, FinishReason, Message, ToolCall};
use harness_core::port::{Deltas, Model, ModelFault, ModelRequest};
use harness_core::{Json, ThreadId};
use harness_runtime::{DeliveryMode, ModelChoice, Status, Thread, ThreadConfig};
use parking_lot::Mutex;

use crate::support::{builder, history, still};

/// More points than a run has.
const MOST: u32 = 60;

#[derive(Clone, Copy, Debug)]
enum Act {
    NextTurn,
    BetweenRounds,
    Interrupt,
    Steer,
    Abort,
    Close,
}

const ACTS: [Act; 6] =
    [Act::NextTurn, Act::BetweenRounds, Act::Interrupt, Act::Steer, Act::Abort, Act::Close];

/// Acts with the points at which they come, and what became of them.
#[derive(Default)]
struct Script {
    acts: [Option<(u32, Act)>; 2],
    at: AtomicU32,
    thread: Mutex<Option<Thread>>,
    accepted: Mutex<Vec<&'static str>>,
    closed: Mutex<bool>,
}

impl Script {
    /// A point at which others may come in between.
    fn point(&self) {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        for ((when, act), name) in self.acts.iter().flatten().zip(["first", "second"]) {
            if *when == at {
                self.perform(*act, name);
            }
        }
    }

    fn is_over(&self) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        self.acts.iter().flatten().all(|(when, _)| *when < at)
    }

    fn perform(&self, act: Act, name: &'static str) {
        let thread = self.thread.lock().clone().expect("a thread");
        let message = Message::user(name);
        let queued = match act {
            Act::NextTurn => thread.execute(message, DeliveryMode::NextTurn),
            Act::BetweenRounds => thread.execute(message, DeliveryMode::BetweenRounds),
            Act::Interrupt => thread.interrupt(message),
            Act::Steer => thread.steer(message),
            Act::Abort => {
                thread.abort("stop");
                return;
            }
            Act::Close => {
                *self.closed.lock() = true;
                let _ = thread.close().now_or_never();
                return;
            }
        };
        if queued.is_ok() {
            self.accepted.lock().push(name);
        }
    }
}

/// Calls a tool that nobody has, then answers.
struct Twice(Arc<Script>);

impl Model for Twice {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.0.point();
        tokio::task::yield_now().await;
        self.0.point();
        if request.progress.iteration > 1 {
            return Ok(AssistantMessage::text("ok"));
        }
        let mut answer = AssistantMessage::calls([ToolCall::new("c", "ghost", Json::empty_object())]);
        answer.stop_reason = FinishReason::ToolUse;
        Ok(answer)
    }
}

struct Listener(Arc<Script>);

impl Fold for Listener {
    fn apply(&mut self, event: &Event) {
        // Between the others nothing is done that others see.
        if ["message_appended", "model_step_finished", "turn_finished"].contains(&event.kind.name()) {
            self.0.point();
        }
    }
}

/// Plays the acts; how many points there were.
fn play(tokio: &tokio::runtime::Runtime, acts: [Option<(u32, Act)>; 2]) -> u32 {
    let script = Arc::new(Script { acts, ..Script::default() });
    let mut config = ThreadConfig::new(ModelChoice::new(Twice(Arc::clone(&script))), still());
    let listening = Arc::clone(&script);
    config.listeners.push(Arc::new(move |_: &ThreadId| Box::new(Listener(Arc::clone(&listening)))));
    tokio.block_on(async {
        let runtime = builder(config).build();
        let thread = runtime.thread("t");
        *script.thread.lock() = Some(thread.clone());
        let mut prompt = tokio::spawn({
            let thread = thread.clone();
            async move { thread.prompt("go").await }
        });
        let (mut answered, mut rest) = (None, 0);
        for _ in 0..MOST {
            tokio::task::yield_now().await;
            script.point();
            answered = answered.or_else(|| (&mut prompt).now_or_never());
            rest = if answered.is_some() && thread.status() == Status::Idle { rest + 1 } else { 0 };
            if rest > 1 && script.is_over() {
                break;
            }
        }
        assert!(answered.is_some(), "{acts:?}: the prompt is not answered");
        assert_eq!(thread.status(), Status::Idle, "{acts:?}");
        let wakes = thread.queue().iter().filter(|entry| entry.wakes).count();
        assert_eq!(wakes, 0, "{acts:?}: a message fell between the end of a run and idleness");
        if *script.closed.lock() {
            assert_eq!(thread.queue_len(), 0, "{acts:?}: left in a closed thread");
        } else {
            thread.prompt("last").await.unwrap();
            assert_eq!(thread.queue_len(), 0, "{acts:?}");
            let history = history(&thread).await;
            for name in script.accepted.lock().iter() {
                let times = history.split(' ').filter(|line| *line == format!("u:{name}")).count();
                assert_eq!(times, 1, "{acts:?}: {name} in {history}");
            }
        }
        *script.thread.lock() = None;
        script.at.load(Ordering::Relaxed)
    })
}

#[test]
fn nothing_is_lost_wherever_two_others_come_in_between() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let points = play(&tokio, [None, None]);
    assert!(points > 15, "{points} points are not all that a run has");
    for first in ACTS {
        for second in ACTS {
            for when in 0..points {
                for then in when..points {
                    play(&tokio, [Some((when, first)), Some((then, second))]);
                }
            }
        }
    }
}
