//! Answers as JSON of a schema.
//!
//! An [`OutputSchema`] is given to a model's builder, or stands in an agent's settings as
//! `output_schema: {name, schema, strict}`; every protocol sends it in its own form. An answer that is no
//! JSON is then marked invalid, so that the turn asks again within its limit of invalid outputs.
//! [`read_answer`] gives it as a type of one's own.
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
