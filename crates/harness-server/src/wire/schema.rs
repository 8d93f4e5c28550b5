//! JSON Schema of the events of a thread's stream, and of the messages and reports in responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use harness::core::event::schema_settings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::event::SseEvent;
use super::input::Delivery;
use super::item::ItemBody;
use super::report::ReportView;
use super::thread::{Coming, StatusView, ThreadState};
use crate::fault::ErrorDetail;
use crate::follow::{End, Missed, Pending, Reset, Text};

/// Kinds of blocks in a message of a user.
const USER_BLOCKS: [&str; 4] = ["text", "image", "file", "audio"];

/// Types that [`components`] describes: handlers refer to them by name.
macro_rules! described {
    ($($name:ident),+) => { $(
        impl PartialSchema for $name {
            fn schema() -> RefOr<utoipa::openapi::Schema> {
                Ref::from_schema_name(stringify!($name)).into()
            }
        }

        impl ToSchema for $name {}
    )+ };
}

described!(Coming, Delivery, ErrorDetail, ReportView, StatusView, ThreadEvent, ThreadState);

/// Types of the library, for the descriptions of fields.
pub(crate) mod library {
    use utoipa::openapi::{Ref, RefOr};
    use utoipa::{PartialSchema, ToSchema};

    /// Any message.
    pub(crate) struct Message;
    /// Block of a user's message.
    pub(crate) struct UserBlock;
    /// Changes of a compaction.
    pub(crate) struct CompactionNote;

    described!(CompactionNote, Message, UserBlock);
}

/// Returns the JSON Schema of the events, each as an object of its name `event` and its `data`.
pub(crate) fn event_schema() -> Schema {
    schema_settings().into_generator().into_root_schema_for::<ThreadEvent>()
}

/// Returns the schemas of the events, messages and reports, by name, for the OpenAPI description.
pub(crate) fn components() -> BTreeMap<String, Value> {
    let mut generator = schema_settings().into_generator();
    generator.subschema_for::<ThreadEvent>();
    let definitions = generator.take_definitions(true);
    let user_block = definitions.get("Block").map(user_block);
    let mut components: BTreeMap<String, Value> = definitions.into_iter().collect();
    components.extend(user_block.map(|schema| ("UserBlock".to_owned(), schema)));
    components.values_mut().for_each(refer_to_components);
    components
}

/// The blocks that a user's message may contain.
fn user_block(block: &Value) -> Value {
    let is_users = |choice: &&Value| {
        let kind = choice.pointer("/properties/type/const").and_then(Value::as_str);
        kind.is_some_and(|kind| USER_BLOCKS.contains(&kind))
    };
    let choices = block.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let choices: Vec<&Value> = choices.filter(is_users).collect();
    json!({ "description": "Part of a user's message, tagged by `type`.", "oneOf": choices })
}

/// Changes references within a JSON Schema to those of an OpenAPI description.
fn refer_to_components(schema: &mut Value) {
    match schema {
        Value::Object(fields) => refer_fields_to_components(fields),
        Value::Array(items) => items.iter_mut().for_each(refer_to_components),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn refer_fields_to_components(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        let definition = value.as_str().and_then(|text| text.strip_prefix("#/$defs/"));
        match definition.filter(|_| name == "$ref") {
            Some(definition) => *value = format!("#/components/schemas/{definition}").into(),
            None => refer_to_components(value),
        }
    }
}

/// Event of a thread's stream.
pub(crate) struct ThreadEvent;

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
            event("approvals".into(), Pending::json_schema(generator).to_value()),
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
