//! Conversion of a function's result to a tool outcome.

use serde::Serialize;

use super::{ToolError, ToolOutcome, ToolStatus};
use crate::json::Json;
use crate::message::Block;

/// Result of a tool's function.
///
/// | type | text for the model | data |
/// |---|---|---|
/// | `String`, `&str` | the text | |
/// | [`Json`], [`serde_json::Value`], [`Structured`] | the JSON text | the value |
/// | [`Block`], `Vec<Block>` | the blocks: text, images, files | |
/// | `()` | `done` | |
/// | [`ToolOutcome`] | its content | its data |
/// | `Result<T, ToolError>` | `T`, or the error's message | the error's code and data |
/// | `Result<T, E>`, `E: Display` | `T`, or the error's text, with the code `tool_execution_failed` | |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool result",
    note = "return a String, a Json, a Structured, blocks, a ToolOutcome, or a Result of one of these with a ToolError or \
            an error that implements Display"
)]
pub trait IntoToolOutcome {
    /// Converts the result.
    fn into_tool_outcome(self) -> ToolOutcome;
}

/// Result as data of any serializable type. A value without a JSON form is an error result (`tool_execution_failed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoToolOutcome for Structured<T> {
    fn into_tool_outcome(self) -> ToolOutcome {
        Json::of(&self.0).map(ToolOutcome::structured).into_tool_outcome()
    }
}

impl IntoToolOutcome for ToolOutcome {
    fn into_tool_outcome(self) -> ToolOutcome {
        self
    }
}

macro_rules! outcomes {
    ($($ty:ty: $value:pat_param => $outcome:expr),* $(,)?) => {$(
        impl IntoToolOutcome for $ty {
            fn into_tool_outcome(self) -> ToolOutcome {
                let $value = self;
                $outcome
            }
        }
    )*};
}

outcomes! {
    String: text => ToolOutcome::text(text),
    &str: text => ToolOutcome::text(text),
    (): () => ToolOutcome::text("done"),
    Json: value => ToolOutcome::structured(value),
    serde_json::Value: value => Structured(value).into_tool_outcome(),
    Block: block => ToolOutcome::blocks(vec![block]),
    Vec<Block>: blocks => ToolOutcome::blocks(blocks),
}

impl<T: IntoToolOutcome, E: Into<ToolError>> IntoToolOutcome for Result<T, E> {
    fn into_tool_outcome(self) -> ToolOutcome {
        match self {
            Ok(value) => value.into_tool_outcome(),
            Err(error) => ToolOutcome {
                status: ToolStatus::Failed,
                error: Some(Box::new(error.into())),
                ..ToolOutcome::default()
            },
        }
    }
}
