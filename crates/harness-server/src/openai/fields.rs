//! Fields of request bodies: honored, ignored and rejected ones.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::fault::Fault;

/// A field that the server cannot honor.
pub(super) struct Rejected {
    name: &'static str,
    /// Values that demand nothing, in addition to `null`, `false` and empty ones.
    harmless: &'static [&'static str],
    reason: &'static str,
}

impl Rejected {
    pub(super) const fn new(
        name: &'static str,
        harmless: &'static [&'static str],
        reason: &'static str,
    ) -> Self {
        Self { name, harmless, reason }
    }

    fn demands(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) if list.is_empty() => false,
            Value::Object(map) if map.is_empty() => false,
            Value::String(text) => !self.harmless.contains(&text.as_str()),
            Value::Number(number) => !self.harmless.contains(&number.to_string().as_str()),
            Value::Array(list) => {
                !list.iter().all(|item| item.as_str().is_some_and(|item| self.harmless.contains(&item)))
            }
            Value::Bool(true) | Value::Object(_) => true,
        }
    }
}

/// Fields of a request that are not part of its type.
pub(super) struct Fields {
    pub(super) ignored: &'static [&'static str],
    pub(super) rejected: &'static [Rejected],
}

impl Fields {
    /// Reads a body without its ignored fields.
    pub(super) fn read<T: DeserializeOwned>(&self, mut body: Map<String, Value>) -> Result<T, Fault> {
        for name in self.ignored {
            body.remove(*name);
        }
        for field in self.rejected {
            if body.remove(field.name).is_some_and(|value| field.demands(&value)) {
                let message = format!("`{}` is not supported: {}", field.name, field.reason);
                return Err(Fault::new(
                    axum::http::StatusCode::BAD_REQUEST,
                    "unsupported_parameter",
                    message,
                )
                .at(field.name));
            }
        }
        body.retain(|_, value| !value.is_null());
        serde_path_to_error::deserialize(Value::Object(body)).map_err(|error| {
            let path = error.path().to_string();
            Fault::unreadable(error.into_inner().to_string()).at(path)
        })
    }
}

/// Reason for the rejection of tools of a client.
pub(crate) const TOOLS: &str =
    "the server runs the tools of the agents, and tools of a client cannot be called";
