//! Functions of layers from argument types.

use harness_core::Json;
use harness_core::tool::{ArgumentFault, Tool as _, tool_fn};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::MemoryError;
use crate::layer::FunctionDef;

/// A function whose arguments are an `A`.
pub(crate) fn function<A>(name: &str, description: &str) -> FunctionDef
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
{
    let tool = tool_fn(name, description, |_: A, _| async {});
    let def = FunctionDef::new(name, description);
    match tool.def().input_schema.clone() {
        Some(schema) => def.with_input(schema),
        None => def,
    }
}

/// Whether arguments are an `A`.
pub(crate) fn check<A: DeserializeOwned>(arguments: &Json) -> Result<(), ArgumentFault> {
    arguments.to::<A>().map(|_| ()).map_err(|error| ArgumentFault::new("", error.to_string()))
}

/// The arguments as an `A`.
pub(crate) fn parsed<A: DeserializeOwned>(arguments: &Json) -> Result<A, MemoryError> {
    arguments.to().map_err(|error| MemoryError::failed(format!("the arguments are wrong: {error}")))
}
