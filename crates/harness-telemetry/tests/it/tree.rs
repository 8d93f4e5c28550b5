//! A subscriber that keeps spans and shows them as a tree of text.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// All spans of a subscriber, in the order in which they were opened.
#[derive(Clone, Default)]
pub(crate) struct Tree(Arc<Mutex<Vec<Node>>>);

struct Node {
    id: u64,
    parent: Option<u64>,
    fields: Fields,
    notes: Vec<String>,
    is_open: bool,
}

#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: String) {
        self.0.retain(|(known, _)| *known != field.name());
        self.0.push((field.name(), value));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Tree {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        fields.0.push(("name", attributes.metadata().name().to_owned()));
        attributes.record(&mut fields);
        let parent = cx.span(id).and_then(|span| span.parent()).map(|parent| parent.id().into_u64());
        self.0.lock().push(Node { id: id.into_u64(), parent, fields, notes: Vec::new(), is_open: true });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.with_open(id.into_u64(), |node| values.record(&mut node.fields));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let note = format!(
            "{}: {}",
            fields.get("message").unwrap_or_default(),
            fields.get("facts").unwrap_or_default()
        );
        if let Some(parent) = event.parent() {
            self.with_open(parent.into_u64(), |node| node.notes.push(note));
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.with_open(id.into_u64(), |node| node.is_open = false);
    }
}

impl Tree {
    /// Ids are used again when a span is closed.
    fn with_open(&self, id: u64, change: impl FnOnce(&mut Node)) {
        self.0.lock().iter_mut().filter(|node| node.id == id && node.is_open).for_each(change_once(change));
    }

    /// Runs `work` with this as its subscriber.
    pub(crate) fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        let wanted = FilterFn::new(|metadata| {
            metadata.target() == harness_telemetry::TARGET
                || metadata.target().starts_with(module_path!().split("::").next().unwrap())
        });
        tracing::subscriber::with_default(Registry::default().with(self.clone().with_filter(wanted)), work)
    }

    /// Runs `work` with this as its subscriber for the spans of every crate.
    pub(crate) fn watch_all<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::subscriber::with_default(Registry::default().with(self.clone()), work)
    }

    /// Everything that stands in any span.
    pub(crate) fn all(&self) -> String {
        let mut all = String::new();
        for node in &*self.0.lock() {
            let _ = writeln!(all, "{:?} {:?}", node.fields.0, node.notes);
        }
        all
    }

    /// One line for each span below its parent: its name, `open` if it is, the code of its error behind `!`,
    /// its notes, and the fields that are asked for.
    pub(crate) fn show(&self, fields: &[&str]) -> String {
        let nodes = self.0.lock();
        let mut text = String::new();
        let mut stack: Vec<(usize, usize)> =
            (0..nodes.len()).rev().filter(|at| nodes[*at].parent.is_none()).map(|at| (at, 0)).collect();
        while let Some((at, depth)) = stack.pop() {
            let node = &nodes[at];
            let name = node.fields.get("otel.name").or(node.fields.get("name")).unwrap();
            let _ = write!(text, "{}{name}", "  ".repeat(depth));
            if node.is_open {
                text += " OPEN";
            }
            if let Some(code) = node.fields.get("error.type") {
                let _ = write!(text, " !{code}");
            }
            for (field, value) in node.fields.0.iter().filter(|(field, _)| fields.contains(field)) {
                let _ = write!(text, " {}={value}", field.rsplit('.').next().unwrap());
            }
            for note in &node.notes {
                let _ = write!(text, " [{note}]");
            }
            text += "\n";
            // A span's id is its own while it is open: children are opened after it, before the next of the id.
            let next = nodes.iter().skip(at + 1).position(|other| other.id == node.id);
            let until = next.map_or(nodes.len(), |next| at + 1 + next);
            let below = (at + 1..until).filter(|child| nodes[*child].parent == Some(node.id));
            stack.extend(below.rev().map(|child| (child, depth + 1)));
        }
        text
    }
}

fn change_once(change: impl FnOnce(&mut Node)) -> impl FnMut(&mut Node) {
    let mut change = Some(change);
    move |node| {
        if let Some(change) = change.take() {
            change(node);
        }
    }
}
