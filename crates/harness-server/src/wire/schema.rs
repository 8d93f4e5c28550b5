//! JSON Schema of the events of a thread's stream.

use std::borrow::Cow;

use harness::core::event::schema_settings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::event::SseEvent;
use super::item::ItemBody;
use crate::follow::{End, Missed, Reset, Text};

/// Returns the JSON Schema of the events, each as an object of its name `event` and its `data`.
pub(crate) fn event_schema() -> Schema {
    schema_settings().into_generator().into_root_schema_for::<ThreadEvent>()
}

/// Event of a thread's stream.
struct ThreadEvent;

impl JsonSchema for ThreadEvent {
    fn schema_name() -> Cow<'static, str> {
        "ThreadEvent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let full = SseEvent::json_schema(generator).to_value();
        let full = full.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        let name = |data: &Value| data.pointer("/properties/type/const").cloned().unwrap_or_default();
        let mut events: Vec<Value> = full.map(|data| event(name(data), data.clone())).collect();
        let text = Text::json_schema(generator).to_value();
        events.extend([
            event("text".into(), text.clone()),
            event("reasoning".into(), text),
            event("item".into(), ItemBody::json_schema(generator).to_value()),
            event("lagged".into(), Missed::json_schema(generator).to_value()),
            event("reset".into(), Reset::json_schema(generator).to_value()),
            event("end".into(), End::json_schema(generator).to_value()),
        ]);
        json_schema!({ "description": "Event of a thread's stream: `event` and `data` of server-sent events.", "oneOf": events })
    }
}

fn event(name: Value, data: Value) -> Value {
    let properties = json!({ "event": { "type": "string", "const": name }, "data": data });
    json!({ "type": "object", "properties": properties, "required": ["event", "data"] })
}
