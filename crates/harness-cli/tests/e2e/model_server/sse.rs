//! Event streams as text.

use std::fmt::Write as _;

use serde_json::Value;

/// Events without a name, one after the other.
pub(super) fn unnamed(events: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for event in events {
        let _ = write!(text, "data: {event}\n\n");
    }
    text
}

/// Events that are named after their `type`.
pub(super) fn named(events: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for event in events {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let _ = write!(text, "event: {name}\ndata: {event}\n\n");
    }
    text
}
