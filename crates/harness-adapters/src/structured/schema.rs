//! The schema of an answer.

use harness_core::Json;
use serde::Serialize;

use super::strict;
use crate::AdapterError;

/// Letters of a schema's name, at most.
const LONGEST_NAME: usize = 64;

/// Schema of an answer.
///
/// Strict by default: the provider then guarantees the form, for a restricted language of schemas.
/// The schema is converted to it: every object lists all its keys as required and allows no others,
/// at every level, `oneOf` becomes `anyOf`, and annotations that providers reject (`$schema`,
/// `title`, `default`, formats of whole numbers) are removed. Optional values must therefore be
/// nullable in the schema, as `Option` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSchema {
    name: String,
    schema: Json,
    strict: bool,
}

#[cfg(feature = "http")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    schema: Option<Json>,
    #[serde(default)]
    strict: Option<bool>,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a Json,
}

impl OutputSchema {
    /// A strict schema. The name is for the model; letters, digits, `_` and `-`, at most 64.
    pub fn new(name: impl Into<String>, schema: Json) -> Self {
        Self { name: name.into(), schema, strict: true }
    }

    /// Sends the schema unchanged and without strict enforcement: for schemas that strict mode
    /// cannot express, such as objects with free keys.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.strict = false;
        self
    }

    /// The `response_format` of chat completions, the form in which settings hold it.
    ///
    /// # Errors
    /// [`AdapterError::OutputSchema`] when the name cannot be sent, or strict mode cannot express the
    /// schema.
    pub fn response_format(&self) -> Result<Json, AdapterError> {
        let fault = |reason: String| AdapterError::OutputSchema { reason };
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=LONGEST_NAME).contains(&self.name.len()) || !self.name.chars().all(legal) {
            let name = &self.name;
            return Err(fault(format!(
                "the name `{name}` is not of letters, digits, `_` and `-`, at most 64"
            )));
        }
        let schema = if self.strict { strict::transform(&self.schema)? } else { self.schema.clone() };
        let json_schema = NamedSchema { name: &self.name, strict: self.strict, schema: &schema };
        let format = ResponseFormat { kind: "json_schema", json_schema };
        Json::of(&format).map_err(|error| fault(error.to_string()))
    }

    /// The format of a schema that an agent's answers are validated against: strict where strict mode can express it
    /// unchanged in meaning, else lenient.
    #[cfg(feature = "http")]
    pub(crate) fn of_answer(schema: &Json) -> Result<Json, AdapterError> {
        let strict = Self::from(schema.clone());
        strict.response_format().or_else(|_| strict.lenient().response_format())
    }

    /// Reads the setting `output_schema`: an object with `schema`, and if wished `name` and `strict`.
    #[cfg(feature = "http")]
    pub(crate) fn of_setting(value: &Json) -> Result<Self, AdapterError> {
        let fault = |reason: String| AdapterError::OutputSchema { reason };
        let setting: Setting = value.to().map_err(|error| fault(error.to_string()))?;
        let schema = setting.schema.ok_or_else(|| fault("it has no `schema`".to_owned()))?;
        let schema = Self::from(schema);
        Ok(Self {
            name: setting.name.unwrap_or(schema.name),
            strict: setting.strict.unwrap_or(schema.strict),
            ..schema
        })
    }
}

impl From<Json> for OutputSchema {
    /// A strict schema of the name `answer`.
    fn from(schema: Json) -> Self {
        Self::new("answer", schema)
    }
}

#[cfg(test)]
#[cfg(feature = "http")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(setting: &str, expected: &str) {
        let schema = OutputSchema::of_setting(&Json::parse(setting).unwrap());
        let format = schema.and_then(|schema| schema.response_format());
        let told = format.map_or_else(|fault| fault.to_string(), |format| format.text().to_owned());
        assert_eq!(told, expected);
    }

    #[test]
    fn a_setting_becomes_a_response_format() {
        check(
            r#"{"schema":{"type":"string"}}"#,
            r#"{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"string"}}}"#,
        );
        check(
            r#"{"name":"map","strict":false,"schema":{"type":"object"}}"#,
            r#"{"type":"json_schema","json_schema":{"name":"map","strict":false,"schema":{"type":"object"}}}"#,
        );
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        check("{}", "the output schema cannot be used: it has no `schema`");
        check(
            r#"{"schema":{},"shema":{}}"#,
            "the output schema cannot be used: unknown field `shema`, expected one of `name`, `schema`, `strict` \
             at line 1 column 20",
        );
        check(
            r#"{"name":"my answer","schema":{}}"#,
            "the output schema cannot be used: the name `my answer` is not of letters, digits, `_` and `-`, at most 64",
        );
    }
}
