//! Typed tools: a function and an argument type.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

use super::declares::declares;
use super::{ArgumentFault, IntoToolOutcome, Tool, ToolCx, ToolDef, ToolOutcome};
use crate::json::Json;

/// Code of the result that answers wrong arguments.
pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Makes a tool from a function and the type of its arguments.
///
/// The schema that the model is told comes from the type; arguments that do not fit never reach the
/// function, the model is answered with the wrong field instead. The function's result may be anything
/// that is an [`IntoToolOutcome`]: text, [`Json`], a [`ToolOutcome`], or a `Result` of these whose error
/// prints.
///
/// The tool is of class `unsafe` until [`FnTool::pure`] or [`FnTool::idempotent`] says otherwise.
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
/// let tool = tool_fn("weather", "The weather of a city", |args: Weather, _cx| async move {
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
    FnTool { def: ToolDef::new(name, description).with_schema(schema_of::<A>()), run, arguments: PhantomData }
}

/// The JSON Schema of a type, as models like it: draft 7, without references, titles and integer formats.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Weather {
///     celsius: f64,
/// }
///
/// let schema = harness_core::tool::schema_of::<Weather>();
/// assert!(schema.text().contains(r#""required":["celsius"]"#));
/// ```
pub fn schema_of<A: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft07().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    tidy(&mut schema);
    schema.into()
}

fn tidy(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(map) => {
            map.remove("$schema");
            if map.get("title").is_some_and(serde_json::Value::is_string) {
                map.remove("title");
            }
            if map.get("format").and_then(|f| f.as_str()).is_some_and(|f| f.contains("int")) {
                map.remove("format");
            }
            map.values_mut().for_each(tidy);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(tidy),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

/// A tool made by [`tool_fn`].
///
/// ```
/// use harness_core::tool::{FnTool, RetryClass, Tool, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct City {
///     name: String,
/// }
///
/// let weather: FnTool<City, _> = tool_fn("weather", "The weather", |city: City, _| async move { city.name }).pure();
/// assert_eq!(weather.def().class, RetryClass::Pure);
/// ```
pub struct FnTool<A, F> {
    def: ToolDef,
    run: F,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> fmt::Debug for FnTool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("def", &self.def).finish_non_exhaustive()
    }
}

declares!(FnTool<A, F>);

/// Decodes arguments, naming the wrong field.
fn decode<A: DeserializeOwned>(arguments: &Json) -> Result<A, ArgumentFault> {
    let mut reader = serde_json::Deserializer::from_str(arguments.text());
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let problem = e.inner().to_string();
        // The position in the one-line text says nothing that the path does not say better.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        ArgumentFault::new(path, problem)
    })
}

impl<A, F, Fut, O> Tool for FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = O> + Send,
    O: IntoToolOutcome,
{
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        decode::<A>(arguments).map(|_| ())
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        match decode::<A>(&cx.call.arguments) {
            Ok(arguments) => (self.run)(arguments, cx).await.into_tool_outcome(),
            Err(fault) => ToolOutcome::error(INVALID_ARGUMENTS, fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::ToolCall;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Order {
        /// The order's number.
        number: u32,
        #[serde(default)]
        #[expect(dead_code, reason = "only its schema matters here")]
        items: Vec<Item>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    struct Item {
        #[expect(dead_code, reason = "only its schema matters here")]
        price: u64,
    }

    #[track_caller]
    fn check(arguments: &str, expected: &str) {
        let tool = tool_fn("order", "", |order: Order, _| async move { order.number.to_string() });
        let call = ToolCall::new("c", "order", Json::parse(arguments).expect("JSON"));
        let outcome = futures_util::FutureExt::now_or_never(tool.call(ToolCx::for_call(Arc::new(call))))
            .expect("it never waits");
        let text = outcome.to_message(&ToolCall::new("c", "order", Json::default()), None, crate::Time(0));
        assert_eq!(text.content.first().and_then(|b| b.as_text()), Some(expected));
        assert_eq!(tool.check(&Json::parse(arguments).expect("JSON")).is_err(), outcome.is_error());
    }

    #[test]
    fn arguments_reach_the_function_or_the_model_learns_the_wrong_field() {
        check(r#"{"number":7}"#, "7");
        check(r#"{"number":"7"}"#, r#"argument `number` is wrong: invalid type: string "7", expected u32"#);
        check(
            r#"{"number":1,"items":[{"price":1},{"price":-2}]}"#,
            "argument `items[1].price` is wrong: invalid value: integer `-2`, expected u64",
        );
        check("{}", "the arguments are wrong: missing field `number`");
        check("7", "the arguments are wrong: invalid type: integer `7`, expected struct Order");
    }

    #[test]
    fn the_schema_is_inlined_and_bare() {
        insta::assert_snapshot!(schema_of::<Order>(), @r#"{"properties":{"items":{"items":{"properties":{"price":{"minimum":0,"type":"integer"}},"required":["price"],"type":"object"},"type":"array"},"number":{"description":"The order's number.","minimum":0,"type":"integer"}},"required":["number"],"type":"object"}"#);
    }
}
