//! Tools whose schema is no Rust type.

use std::fmt;

use super::declares::declares;
use super::{ArgumentFault, IntoToolOutcome, Tool, ToolCx, ToolDef, ToolOutcome};
use crate::json::Json;
use crate::tool::function::INVALID_ARGUMENTS;

/// A tool made from a function and a JSON Schema that was written elsewhere: loaded from a file, told by a
/// server, generated.
///
/// The function gets the arguments as exact JSON. Of them only that they are an object is checked here;
/// `harness_tools::Validated` checks them against the schema. For a schema that is a Rust type use
/// [`tool_fn`](super::tool_fn). The result may be anything that is an [`IntoToolOutcome`]. The tool is of
/// class `unsafe` until [`RawTool::pure`] or [`RawTool::idempotent`] says otherwise.
///
/// ```
/// use harness_core::Json;
/// use harness_core::tool::{RawTool, ToolError};
///
/// let schema = Json::parse(r#"{"type":"object","properties":{"say":{"type":"string"}}}"#)?;
/// let echo = RawTool::new("echo", "Repeats", schema, |arguments: Json, _cx| async move {
///     if arguments == Json::empty_object() {
///         return Err(ToolError::new("nothing_said", "there is nothing to repeat"));
///     }
///     Ok(arguments)
/// })
/// .pure();
/// # let _ = echo;
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct RawTool<F> {
    def: ToolDef,
    run: F,
}

impl<F> fmt::Debug for RawTool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawTool").field("def", &self.def).finish_non_exhaustive()
    }
}

impl<F> RawTool<F> {
    /// A tool that runs `run` for each call.
    pub fn new<Fut, O>(name: &str, description: &str, schema: Json, run: F) -> Self
    where
        F: Fn(Json, ToolCx) -> Fut + Send + Sync,
        Fut: Future<Output = O> + Send,
        O: IntoToolOutcome,
    {
        Self { def: ToolDef::new(name, description).with_schema(schema), run }
    }
}

declares!(RawTool<F>);

impl<F, Fut, O> Tool for RawTool<F>
where
    F: Fn(Json, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = O> + Send,
    O: IntoToolOutcome,
{
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        if arguments.is_object() {
            return Ok(());
        }
        Err(ArgumentFault::new("", "expected an object"))
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        match self.check(&cx.call.arguments) {
            Ok(()) => (self.run)(cx.call.arguments.clone(), cx).await.into_tool_outcome(),
            Err(fault) => ToolOutcome::error(INVALID_ARGUMENTS, fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::message::ToolCall;

    #[track_caller]
    fn check(arguments: &str, expected: &str) {
        let tool = RawTool::new("echo", "", Json::empty_object(), |arguments: Json, _| async move {
            arguments.text().to_owned()
        });
        let call = ToolCall::new("c", "echo", Json::parse(arguments).expect("JSON"));
        let outcome = tool.call(ToolCx::for_call(Arc::new(call.clone()))).now_or_never().expect("no waiting");
        let text = outcome.to_message(&call, None, crate::Time(0));
        assert_eq!(text.content.first().and_then(|b| b.as_text()), Some(expected));
    }

    #[test]
    fn arguments_arrive_exactly_and_only_as_an_object() {
        check(r#"{"n":9007199254740993,"x":1.10}"#, r#"{"n":9007199254740993,"x":1.10}"#);
        check("[1]", "the arguments are wrong: expected an object");
    }
}
