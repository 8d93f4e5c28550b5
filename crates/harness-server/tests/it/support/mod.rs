//! What the tests are made of: a model that does what its prompt says, a server, a client.

mod client;
mod desk;

pub(crate) use client::{Client, Frame};
pub(crate) use desk::{Desk, Echo, Server};

use std::time::Duration;

/// Far more than anything here takes, even on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

/// Does something that may hang when the server is wrong, and fails then instead.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|late| panic!("{what} did not happen: {late}"))
}

/// A text of JSON with ids and times replaced, which differ from run to run.
pub(crate) fn redacted(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(text) else { return text.to_owned() };
    redact(&mut value);
    value.to_string()
}

fn redact(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match name.as_str() {
                    "created" | "created_at" => *value = 0.into(),
                    "run" => *value = "run".into(),
                    "id" | "item_id" | "messageId" | "parentMessageId" => {
                        *value = short(value.as_str().unwrap_or_default()).into();
                    }
                    _ => redact(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The parts of an id that are words or numbers of one digit.
fn short(id: &str) -> String {
    id.split(['-', '_']).filter(|part| part.len() < 9).collect::<Vec<_>>().join("_")
}
