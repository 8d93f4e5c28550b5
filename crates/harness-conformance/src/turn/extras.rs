//! Parts of vectors of kind `turn-ext` only: cancellation, transforms of the view, sinks that fail, streams.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use harness_core::Cancel;
use harness_core::event::{Event, Fold};
use harness_core::message::AssistantMessage;
use harness_core::port::{CompactAsk, Compaction, Compactor, Deltas, Model, ModelFault, ModelRequest};
use harness_core::testing::{ScriptedModel, ScriptedTools};
use harness_core::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::transcript::{Plan, Span};
use harness_core::{Fault, FaultSource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

use super::flat::Trace;
use super::hooks::Hooks;
use super::words::{self, Place, ThrowOn};

/// Fires the turn's cancellation at the place that the vector names.
#[derive(Clone)]
pub(super) struct Abort {
    place: Option<Place>,
    nth: u64,
    seen: Arc<Mutex<u64>>,
    cancel: Cancel,
}

impl Abort {
    pub(super) fn of(words: Option<words::Abort>, cancel: &Cancel) -> Self {
        let (place, nth) = words.map(|abort| (abort.r#where, abort.nth)).unzip();
        let nth = nth.flatten().unwrap_or(1);
        let made = Self { place, nth, seen: Arc::default(), cancel: cancel.clone() };
        made.at(Place::Before);
        made
    }

    pub(super) fn at(&self, place: Place) {
        if self.place == Some(place) {
            let mut seen = self.seen.lock();
            *seen += 1;
            if *seen == self.nth {
                self.cancel.cancel();
            }
        }
    }
}

/// The scripted model, during whose step the turn may be cancelled.
pub(super) struct AbortingModel(pub(super) ScriptedModel, pub(super) Abort);

impl Model for AbortingModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.1.at(Place::Model);
        self.0.step(request, deltas).await
    }
}

/// The scripted tools, during whose calls the turn may be cancelled, and others may overtake.
pub(super) struct AbortingTools {
    pub(super) tools: ScriptedTools,
    pub(super) abort: Abort,
    /// How many turns of the scheduler each call waits before it ends, in the order of the calls.
    pub(super) yields: Arc<Mutex<VecDeque<u64>>>,
}

impl ToolRegistry for AbortingTools {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.tools.list(scope).await
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        self.abort.at(Place::Tool);
        let yields = self.yields.lock().pop_front();
        let done = self.tools.call(cx).await;
        for _ in 0..yields.unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        done
    }
}

/// `transformTranscript` as a compactor: keeps the last steps of the view.
pub(super) struct Transform {
    pub(super) hooks: Arc<Hooks>,
    pub(super) words: words::Transform,
    /// Messages before the turn's own steps.
    pub(super) begin: usize,
}

impl Compactor for Transform {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let view = &ask.view;
        let steps = view.len().saturating_sub(self.begin);
        self.hooks.note(json!({ "hook": "transformTranscript", "length": steps }));
        let Some(keep) = self.words.keep_last else {
            let thrown = self.words.throw.as_ref().map(|thrown| thrown.message.clone());
            let why = thrown.unwrap_or_else(|| "the transform gave no list".to_owned());
            return Err(Fault::new(FaultSource::Compactor, "no_list", why));
        };
        let from = view.len() - keep.min(steps);
        let spans = Arc::from([Span::Kept(0..self.begin), Span::Kept(from..usize::MAX)]);
        Ok(Compaction::planned(Plan { spans }))
    }
}

/// The vector's trace sink: records every event, and fails where the vector requires it.
pub(super) struct Sink {
    pub(super) trace: Trace,
    pub(super) words: words::Trace,
    pub(super) flushed: bool,
    /// How often each type of event was seen.
    pub(super) seen: BTreeMap<String, u64>,
}

impl Fold for Sink {
    fn apply(&mut self, event: &Event) {
        self.trace.take(event);
        let seen = self.seen.entry(event.kind.name().to_owned()).or_default();
        *seen += 1;
        let fails = |on: &ThrowOn| on.r#type == event.kind.name() && on.nth.unwrap_or(1) == *seen;
        fail_if(self.words.throw_on.iter().flatten().any(fails));
    }

    fn flush(&mut self) {
        self.flushed = self.words.flush.is_some();
        fail_if(self.words.flush.as_ref().is_some_and(|flush| flush.fails));
    }
}

/// The product's own log of failing observers. The source writes a line for each of the turn's end.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    /// The message of each, at its place in a line of the source; the source does not mention sinks.
    pub(super) fn lines(&self) -> Vec<Value> {
        let told = self.0.lock();
        told.iter().filter(|said| *said != SINK).map(|said| json!([null, null, said])).collect()
    }
}

impl Visit for Complaints {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "panic" {
            self.0.lock().push(value.to_owned());
        }
    }
}

impl Subscriber for Complaints {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Message of a sink that fails as the vector defines.
const SINK: &str = "the sink fails as scripted";

/// Fails like a listener that panics, without the message of one on the terminal.
fn fail_if(scripted: bool) {
    if scripted {
        std::panic::resume_unwind(Box::new(SINK));
    }
}
