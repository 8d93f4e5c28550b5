//! Answers as JSON of a schema.
//!
//! Pass an [`OutputSchema`] to a model's builder, or set `output_schema: {name, schema, strict}` in an
//! agent's settings; every protocol sends it in its own form. An answer that is not JSON is marked
//! invalid, and the turn repeats the request within its limit of invalid outputs. [`read_answer`]
//! parses an answer as a type.
//!
//! ```
//! use harness_adapters::{OutputSchema, read_answer};
//! use harness_core::Json;
//! use harness_core::message::AssistantMessage;
//!
//! #[derive(serde::Deserialize)]
//! struct Weather {
//!     celsius: f64,
//! }
//!
//! let schema = Json::parse(r#"{"type":"object","properties":{"celsius":{"type":"number"}}}"#)?;
//! let schema = OutputSchema::new("weather", schema);
//! assert!(schema.response_format()?.text().contains(r#""additionalProperties":false"#));
//!
//! let answer = AssistantMessage::text(r#"{"celsius":-3.5}"#);
//! assert_eq!(read_answer::<Weather>(&answer)?.celsius, -3.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a type that derives `JsonSchema`, `harness_core::tool::schema_of` makes the schema.

mod answer;
#[cfg(feature = "http")]
mod check;
mod schema;
mod strict;

pub use answer::read_answer;
#[cfg(feature = "http")]
pub(crate) use check::{checked, expects_json};
pub use schema::OutputSchema;
