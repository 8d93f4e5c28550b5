//! Formats of answers.

use harness::core::Json;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::fault::Fault;

/// Format of the answer.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Format {
    /// `text`, `json_object` or `json_schema`.
    r#type: String,
    /// Schema of `json_schema`, in chat completions.
    json_schema: Option<Named>,
    /// Schema of `json_schema`, in responses.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

/// A schema with its name.
#[derive(Debug, Deserialize, ToSchema)]
struct Named {
    /// JSON Schema.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

impl Format {
    /// Schema that the answer must match; `None` for text.
    pub(super) fn output(self, at: &str) -> Result<Option<Json>, Fault> {
        match self.r#type.as_str() {
            "text" => Ok(None),
            "json_object" => Ok(Some(serde_json::json!({ "type": "object" }).into())),
            "json_schema" => {
                let schema = self.schema.or(self.json_schema.and_then(|named| named.schema));
                let schema = schema.filter(Value::is_object);
                let missing =
                    || Fault::unreadable("missing field `schema`, an object").at(format!("{at}.schema"));
                schema.map(Json::from).ok_or_else(missing).map(Some)
            }
            other => Err(Fault::unreadable(format!("unknown format `{other}`"))
                .at(format!("{at}.type"))
                .hint("use `text`, `json_object` or `json_schema`")),
        }
    }
}
