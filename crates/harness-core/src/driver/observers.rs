//! Shows finished calls to those who may see them and change nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use super::ports::Ports;
use crate::event::{Event, EventKind};
use crate::ids::GateName;
use crate::outcome::{Fault, FaultSource};
use crate::panics::panic_text;
use crate::port::{BoxFuture, CallHookPoint, Clock, DynPostToolHook, FinishedCall, HookNote};
use crate::time::Millis;

/// Calls that wait for one hook, at most. What comes beyond is not shown to it, and that is told.
const WAITING: usize = 1_024;

/// The post-tool hooks of one drive.
pub(super) struct Observers {
    queues: Vec<ObserverQueue>,
}

/// One hook, which sees calls one after another.
struct ObserverQueue {
    hook: Arc<dyn DynPostToolHook>,
    clock: Arc<dyn Clock>,
    waiting: VecDeque<Arc<FinishedCall>>,
    showing: Option<BoxFuture<'static, HookNote>>,
    /// What it could not be shown.
    missed: VecDeque<HookNote>,
}

impl Observers {
    pub(super) fn new(ports: &Ports) -> Self {
        let queue = |hook: &Arc<dyn DynPostToolHook>| ObserverQueue {
            hook: Arc::clone(hook),
            clock: Arc::clone(&ports.clock),
            waiting: VecDeque::new(),
            showing: None,
            missed: VecDeque::new(),
        };
        Self { queues: ports.post_tool.iter().map(queue).collect() }
    }

    /// Whether there is anybody to show anything to.
    pub(super) fn is_watching(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Takes note of an event.
    pub(super) fn see(&mut self, event: &Event) {
        if !self.is_watching() {
            return;
        }
        let Some(done) = finished(event) else { return };
        let done = Arc::new(done);
        for queue in &mut self.queues {
            queue.take(&done);
        }
    }

    /// What a hook did, if one is ready.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<HookNote> {
        self.queues.iter_mut().find_map(|queue| match queue.poll(cx) {
            Poll::Ready(note) => note,
            Poll::Pending => None,
        })
    }

    /// The run is over: what has begun may end in peace, and nobody is told of it.
    pub(super) fn release(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        while self.poll(&mut cx).is_some() {}
        for queue in self.queues.drain(..).filter(|queue| queue.showing.is_some()) {
            if let Ok(runtime) = Handle::try_current() {
                drop(runtime.spawn(queue.end()));
            } else {
                tracing::warn!(hook = %queue.hook.hook_name(), "a hook was cut off with its run");
            }
        }
    }
}

impl ObserverQueue {
    fn take(&mut self, done: &Arc<FinishedCall>) {
        if self.waiting.len() < WAITING {
            return self.waiting.push_back(Arc::clone(done));
        }
        let text = format!("{WAITING} calls wait for it already");
        let fault = Fault::new(FaultSource::Hook, "missed", text);
        if self.missed.len() < WAITING {
            let name = self.hook.hook_name();
            self.missed.push_back(note(name, done, "missed", Millis(0), Some(fault)));
        }
    }

    /// The next thing that the hook did; none when nothing is left.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<HookNote>> {
        if let Some(missed) = self.missed.pop_front() {
            return Poll::Ready(Some(missed));
        }
        if self.showing.is_none() {
            let Some(done) = self.waiting.pop_front() else { return Poll::Ready(None) };
            self.showing = Some(Box::pin(show(Arc::clone(&self.hook), Arc::clone(&self.clock), done)));
        }
        let Some(showing) = &mut self.showing else { return Poll::Ready(None) };
        let note = ready!(showing.as_mut().poll(cx));
        self.showing = None;
        Poll::Ready(Some(note))
    }

    /// Shows what is left.
    async fn end(mut self) {
        while let Some(note) = poll_fn(|cx| self.poll(cx)).await {
            if let Some(fault) = note.fault {
                tracing::warn!(hook = %note.name, code = %fault.code, "a hook failed: {}", fault.message);
            }
        }
    }
}

/// A call that an event says ran.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other event is about the end of a call")]
fn finished(event: &Event) -> Option<FinishedCall> {
    let (call, outcome, duration) = match &event.kind {
        EventKind::ToolFinished { call, outcome, duration, .. }
        | EventKind::ToolFailed { call, outcome, duration, ran: true, .. } => (call, outcome, *duration),
        _ => return None,
    };
    Some(FinishedCall {
        call: Arc::clone(call),
        outcome: Arc::clone(outcome),
        origin: Arc::clone(&event.origin),
        turn: event.turn,
        iteration: event.iteration,
        duration,
        at: event.at,
    })
}

async fn show(hook: Arc<dyn DynPostToolHook>, clock: Arc<dyn Clock>, done: Arc<FinishedCall>) -> HookNote {
    let began = clock.now();
    let shown = AssertUnwindSafe(async { hook.after_boxed(&done).await }).catch_unwind().await;
    let fault = match shown {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = format!("it panicked: {}", panic_text(&*panic));
            Some(Fault::new(FaultSource::Hook, "panicked", text))
        }
    };
    let decision = if fault.is_some() { "failed" } else { "seen" };
    note(hook.hook_name(), &done, decision, clock.now().since(began), fault)
}

fn note(
    name: GateName,
    done: &FinishedCall,
    decision: &'static str,
    duration: Millis,
    fault: Option<Fault>,
) -> HookNote {
    HookNote {
        point: CallHookPoint::PostTool,
        name,
        call: Some(done.call.id.clone()),
        decision: decision.into(),
        reason: None,
        duration,
        fault,
    }
}
