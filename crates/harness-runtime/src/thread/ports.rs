//! Ports between a run and its thread.

use std::sync::Arc;

use harness_core::driver::Ports;
use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::{Block, Message, ToolCall};
use harness_core::port::{DrainPoint, DynSession, Steering};
use harness_core::tool::ToolUpdates;
use harness_core::{EntryId, Origin};

use super::state::{Shared, Status};
use crate::config::{ResolvedConfig, ThreadConfig};
use crate::model::ThreadModel;

impl Shared {
    /// Origin of the thread's runs, without the run. A thread without a name has no thread id.
    pub(crate) fn origin(&self, config: &ThreadConfig, session: Option<&dyn DynSession>) -> Origin {
        let mut origin = config.origin.clone();
        origin.thread = (!self.id.as_str().is_empty()).then(|| self.id.clone());
        origin.session = session.and_then(DynSession::session_id);
        origin.allowed_tools.clone_from(&config.active_tools);
        origin
    }

    /// Queue of messages between the iterations of a run.
    pub(crate) fn mailbox(self: &Arc<Self>, settled: &Arc<ResolvedConfig>) -> Arc<dyn Steering> {
        Arc::new(Mailbox { thread: Arc::clone(self), settled: Arc::clone(settled) })
    }

    /// The ports of work that begins with `entries` of the queue; a run's agents and steering are its own.
    pub(crate) fn ports(
        self: &Arc<Self>,
        settled: &Arc<ResolvedConfig>,
        session: Option<Arc<dyn DynSession>>,
        entries: Vec<EntryId>,
    ) -> Ports {
        let mut ports = settled.config.ports.clone();
        ports.model = Arc::new(ThreadModel::new(Arc::clone(settled), Some(Arc::clone(self))));
        ports.session = session;
        ports.stored_states = self.lock().stored_states.clone();
        for listen in &settled.config.listeners {
            ports.hub.fold(listen(&self.id));
        }
        ports.updates = Some(Arc::new(Updates(Arc::clone(self))));
        ports.hub.fold(EventForwarder { thread: Arc::clone(self), entries });
        ports
    }
}

/// Forwards the events of a run to the log of its thread.
struct EventForwarder {
    thread: Arc<Shared>,
    /// Messages that started the run, until they are in the transcript.
    entries: Vec<EntryId>,
}

impl Fold for EventForwarder {
    fn apply(&mut self, event: &Event) {
        if !self.entries.is_empty() && matches!(event.kind, EventKind::MessageAppended { .. }) {
            let entries = std::mem::take(&mut self.entries);
            self.thread.lock().queue.delivered(&entries);
        }
        self.thread.event_log.event(event);
    }
}

/// Hands out steering.
struct Mailbox {
    thread: Arc<Shared>,
    settled: Arc<ResolvedConfig>,
}

impl Mailbox {
    /// A queue of the host's own, beside that of the thread.
    fn more(&self) -> Option<&dyn Steering> {
        self.settled.config.ports.steering.as_deref()
    }
}

impl Steering for Mailbox {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        self.waiting_at(DrainPoint::Round)
    }

    fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        let config = &self.settled.config;
        let mut state = self.thread.lock();
        let skips = std::mem::take(&mut state.skip_begin) && point == DrainPoint::Begin;
        // A run that is being stopped takes nothing more: what interrupts it comes first.
        let stops = matches!(state.status, Status::Aborting { .. });
        if skips || stops {
            return Vec::new();
        }
        let mut waiting = state.queue.take_at(point, config.steering_mode, config.late_steering);
        drop(state);
        waiting.extend(self.more().map(|more| more.waiting_at(point)).unwrap_or_default());
        waiting
    }

    fn injected(&self, entries: &[EntryId]) {
        self.thread.lock().queue.delivered(entries);
        if let Some(more) = self.more() {
            more.injected(entries);
        }
    }
}

/// Forwards the progress of tools.
struct Updates(Arc<Shared>);

impl ToolUpdates for Updates {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        self.0.event_log.update(call, content);
    }
}
