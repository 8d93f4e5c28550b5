//! Layers that come with the crate: what they keep, what they show.

mod files;
mod history_window;
mod learning;
mod long_term;
mod plan;
mod state;
mod steering;
mod surroundings;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::AppendSource;
use harness_memory::builtin::LayerProbe;
use harness_memory::layer::Layer;

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

/// Runs `work` to its end on a runtime of its own.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

/// An initialised layer.
fn probe<L: Layer>(layer: L) -> LayerProbe<L> {
    let mut probe = LayerProbe::new(layer);
    run(probe.init()).expect("an initialised layer");
    probe
}

/// A layer with changed settings.
fn with<L>(mut layer: L, change: impl FnOnce(&mut L)) -> L {
    change(&mut layer);
    layer
}

fn says<L: Layer>(probe: &mut LayerProbe<L>, text: &str) {
    run(probe.append(AppendSource::Prompt, [Message::user(text)])).expect("an appended message");
}

fn answers<L: Layer>(probe: &mut LayerProbe<L>, text: &str) {
    run(probe.store(AssistantMessage::text(text))).expect("a stored answer");
}

fn shown<L: Layer>(probe: &mut LayerProbe<L>, budget: u64) -> String {
    run(probe.recall("", budget)).expect("a recall")
}

fn state<L>(probe: &LayerProbe<L>) -> String {
    probe.cx.state.as_ref().map_or("nothing".to_owned(), |state| state.text().to_owned())
}
