//! Tools made from functions.

use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

use super::{ArgumentFault, IntoToolOutcome, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome};
use crate::json::Json;
use crate::limits::Amount;

/// Error code of invalid arguments.
pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Creates a tool from a function and the type of its arguments.
///
/// The schema for the model comes from the type. Invalid arguments never reach the function: the model receives the
/// invalid field instead. The function may return any [`IntoToolOutcome`]. The tool is of class `unsafe` until
/// [`FnTool::pure`] or [`FnTool::idempotent`] declares otherwise.
///
/// ```
/// use harness_core::tool::tool_fn;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Weather {
///     /// The city's name.
///     city: String,
/// }
///
/// let tool = tool_fn("weather", "Reports the weather of a city", |args: Weather, _cx| async move {
///     format!("4 °C in {}", args.city)
/// })
/// .pure();
/// # let _ = tool;
/// ```
pub fn tool_fn<A, F, Fut, O>(name: &str, description: &str, run: F) -> FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = O> + Send,
    O: IntoToolOutcome,
{
    FnTool { def: ToolDef::new(name, description).with_schema(schema_of::<A>()), decode: typed, run }
}

/// Returns the JSON Schema of a type: draft 7, without references, titles and integer formats.
pub fn schema_of<A: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft07().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    tidy(&mut schema);
    schema.into()
}

fn tidy(schema: &mut serde_json::Value) {
    if let Some(map) = schema.as_object_mut() {
        map.remove("$schema");
        if map.get("title").is_some_and(serde_json::Value::is_string) {
            map.remove("title");
        }
        if map.get("format").and_then(|f| f.as_str()).is_some_and(|f| f.contains("int")) {
            map.remove("format");
        }
        map.values_mut().for_each(tidy);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(tidy);
    }
}

/// Tool made from a function, with typed arguments ([`tool_fn`]) or with a given schema ([`FnTool::with_schema`]).
pub struct FnTool<A, F> {
    def: ToolDef,
    decode: fn(&Json) -> Result<A, ArgumentFault>,
    run: F,
}

impl<A, F> fmt::Debug for FnTool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("def", &self.def).finish_non_exhaustive()
    }
}

impl<F> FnTool<Json, F> {
    /// Creates a tool from a function and a given JSON Schema: from a file, a server, or generated.
    ///
    /// The function receives exact JSON, which is only checked to be an object; `harness_tools::Validated` checks it against
    /// the schema.
    ///
    /// ```
    /// use harness_core::Json;
    /// use harness_core::tool::{FnTool, ToolError};
    ///
    /// let schema = Json::parse(r#"{"type":"object","properties":{"say":{"type":"string"}}}"#)?;
    /// let echo = FnTool::with_schema("echo", "Repeats the arguments", schema, |arguments: Json, _cx| async move {
    ///     if arguments == Json::empty_object() {
    ///         return Err(ToolError::new("empty", "nothing to repeat"));
    ///     }
    ///     Ok(arguments)
    /// });
    /// # let _ = echo.pure();
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn with_schema<Fut, O>(name: &str, description: &str, schema: Json, run: F) -> Self
    where
        F: Fn(Json, ToolCx) -> Fut + Send + Sync,
        Fut: Future<Output = O> + Send,
        O: IntoToolOutcome,
    {
        Self { def: ToolDef::new(name, description).with_schema(schema), decode: object, run }
    }
}

impl<A, F> FnTool<A, F> {
    /// Declares that calls have no effects and may be repeated freely.
    pub fn pure(mut self) -> Self {
        self.def.class = RetryClass::Pure;
        self
    }

    /// Declares that repeats with the same [`ToolCx::idempotency_key`] have their effects once.
    pub fn idempotent(mut self) -> Self {
        self.def.class = RetryClass::Idempotent;
        self
    }

    /// Requires approval of each call.
    pub fn needs_approval(mut self) -> Self {
        self.def.requires_approval = true;
        self
    }

    /// Runs calls alone in their batch.
    pub fn sequential(mut self) -> Self {
        self.def.sequential = true;
        self
    }

    /// Declares that the tool is polled: equal results of equal calls are not a loop.
    pub fn polling(mut self) -> Self {
        self.def.polling = true;
        self
    }

    /// Declares that the tool changes only its own state.
    pub fn internal(mut self) -> Self {
        self.def.internal = true;
        self
    }

    /// Ends the turn after a batch with a successful result.
    pub fn terminal(mut self) -> Self {
        self.def.terminal = true;
        self
    }

    /// Sets the maximum further usage of a call.
    pub fn share(mut self, share: Amount) -> Self {
        self.def.share = share;
        self
    }

    /// Sets the caller data.
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.def.metadata = Some(metadata);
        self
    }
}

/// Decodes arguments of a type; the error names the invalid field.
fn typed<A: DeserializeOwned>(arguments: &Json) -> Result<A, ArgumentFault> {
    let mut reader = serde_json::Deserializer::from_str(arguments.text());
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let problem = e.inner().to_string();
        // The path replaces the position in the text.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        ArgumentFault::new(path, problem)
    })
}

fn object(arguments: &Json) -> Result<Json, ArgumentFault> {
    if arguments.is_object() {
        Ok(arguments.clone())
    } else {
        Err(ArgumentFault::new("", "expected an object"))
    }
}

impl<A, F, Fut, O> Tool for FnTool<A, F>
where
    A: Send + 'static,
    F: Fn(A, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = O> + Send,
    O: IntoToolOutcome,
{
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        (self.decode)(arguments).map(|_| ())
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        match (self.decode)(&cx.call.arguments) {
            Ok(arguments) => (self.run)(arguments, cx).await.into_tool_outcome(),
            Err(fault) => ToolOutcome::error(INVALID_ARGUMENTS, fault.to_string()),
        }
    }
}
