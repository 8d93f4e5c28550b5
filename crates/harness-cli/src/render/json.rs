//! Events as JSON Lines.

use std::borrow::Cow;
use std::io::{self, Write};

use harness::core::End;
use harness::core::display::mask_secrets;
use harness::core::event::{Delta, Event, Seen, schema_settings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::Render;
use crate::error::CliError;

/// Events as lines; the last line is the result.
pub(crate) struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    fn line<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// The last line of a program that ended before a run started.
    pub(crate) fn error(&mut self, error: &CliError) -> io::Result<()> {
        let message = mask_secrets(&error.to_string()).into_owned();
        let hint = error.hint().map(|hint| mask_secrets(&hint).into_owned());
        self.line(&Tagged {
            r#type: "error",
            fields: Failure { kind: error.kind().to_owned(), message, hint },
        })
    }
}

/// Events that a slow reader lost.
#[derive(Serialize, JsonSchema)]
struct Missed {
    /// Number of lost events and deltas.
    missed: u64,
}

/// Error of a command that ended before a run started.
#[derive(Serialize, JsonSchema)]
struct Failure {
    /// Stable code.
    kind: String,
    /// Human-readable message.
    message: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Nothing was left to resume: no model was called.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NothingToResume {
    /// Human-readable message.
    pub(crate) message: String,
}

/// Returns the JSON Schema of the lines of `harness run --json`.
pub(crate) fn schema() -> Schema {
    schema_settings().into_generator().into_root_schema_for::<Line>()
}

/// Line of `harness run --json`.
struct Line;

impl JsonSchema for Line {
    fn schema_name() -> Cow<'static, str> {
        "Line of `harness run --json`".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let lines = [
            generator.subschema_for::<Event>(),
            tagged("delta", Delta::json_schema(generator)),
            tagged("lagged", Missed::json_schema(generator)),
            tagged("result", End::json_form_schema(generator)),
            tagged("error", Failure::json_schema(generator)),
            tagged("nothing_to_resume", NothingToResume::json_schema(generator)),
        ];
        json_schema!({ "anyOf": lines })
    }
}

/// The schema of an object with a `type` before its own fields.
fn tagged(name: &str, mut schema: Schema) -> Schema {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("type".to_owned(), json!({ "type": "string", "const": name }));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("type".into());
    }
    schema
}

/// A JSON object with a `type` before its own fields.
#[derive(Serialize)]
pub(crate) struct Tagged<T> {
    /// Kind of the object.
    pub(crate) r#type: &'static str,
    /// Its own fields.
    #[serde(flatten)]
    pub(crate) fields: T,
}

impl<W: Write + Send> Render for JsonLines<W> {
    fn see(&mut self, seen: &Seen) -> io::Result<()> {
        match seen {
            Seen::Event(event) => self.line(event),
            Seen::Delta(delta) => self.line(&Tagged { r#type: "delta", fields: delta }),
            Seen::Lagged { missed } => {
                self.line(&Tagged { r#type: "lagged", fields: Missed { missed: *missed } })
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let end = end.to_json()?;
        let fields = end.text().strip_prefix('{').unwrap_or("}");
        writeln!(self.out, r#"{{"type":"result",{fields}"#)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seen: &Seen, expected: &str) {
        let mut out = Vec::new();
        JsonLines::new(&mut out).see(seen).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_no_event_has_a_type_of_its_own() {
        let delta: Delta =
            serde_json::from_str(r#"{"op":1,"n":2,"after":3,"part":{"text":"a\nb"}}"#).unwrap();
        let line = r#"{"type":"delta","op":1,"n":2,"after":3,"part":{"text":"a\nb"}}"#.to_owned() + "\n";
        check(&Seen::Delta(delta), &line);
        check(&Seen::Lagged { missed: 7 }, "{\"type\":\"lagged\",\"missed\":7}\n");
    }
}
