//! Checking arguments against a JSON Schema.

use std::fmt;
use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::tool::{ArgumentFault, SchemaValidator, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::{Json, Origin};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use jsonschema::{ReferencingError, ValidationError, Validator};
use serde_json::Value;

use crate::error::ToolsError;
use harness_diagnostics::suggest;

/// Maximum number of problems in one message.
const MOST_PROBLEMS: usize = 8;

/// How many characters of a value, a pattern or a list of names are repeated in a message.
const MOST_SHOWN: usize = 120;

/// A compiled JSON Schema of arguments.
///
/// Drafts 4 to 2020-12 are supported (`$schema` selects one, default 2020-12). References must stay inside
/// the schema; nothing is fetched. Numbers that are not integers are compared as 64-bit floats.
///
/// ```
/// use harness_core::Json;
/// use harness_tools::ArgumentSchema;
///
/// let schema = Json::parse(r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#)?;
/// let schema = ArgumentSchema::compile("count", &schema)?;
/// let fault = schema.check(&Json::parse(r#"{"n":"one"}"#)?).unwrap_err();
/// assert_eq!(fault.to_string(), r#"argument `n` is wrong: expected integer, found "one""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ArgumentSchema(Arc<Validator>);

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentSchema").finish_non_exhaustive()
    }
}

impl ArgumentSchema {
    /// Compiles a schema; `tool` names it in errors.
    ///
    /// # Errors
    /// [`ToolsError::Schema`], when it is not a valid schema or refers to something outside itself.
    pub fn compile(tool: &str, schema: &Json) -> Result<Self, ToolsError> {
        let wrong = |path: String, problem: String| ToolsError::Schema {
            tool: tool.to_owned(),
            path,
            problem: short(&problem),
        };
        let schema: Value = schema.to().map_err(|e| wrong(String::new(), e.to_string()))?;
        let compiled = jsonschema::options().build(&schema);
        let validator = compiled.map_err(|e| wrong(e.instance_path().to_string(), problem(&e)))?;
        Ok(Self(Arc::new(validator)))
    }

    /// The compiled schema of a tool, if it has one.
    pub(crate) fn of_tool(def: &ToolDef) -> Result<Option<Self>, ToolsError> {
        let schema = def.input_schema.as_ref();
        schema.map(|schema| Self::compile(def.name.as_str(), schema)).transpose()
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// What is wrong: one problem with its field, or the first eight of several, sorted by field.
    pub fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        let value: Value = arguments.to().map_err(|e| ArgumentFault::new("", e.to_string()))?;
        let mut problems: Vec<(String, String)> =
            self.0.iter_errors(&value).map(|error| (path_of(&error), problem(&error))).collect();
        problems.sort_unstable();
        problems.dedup();
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        let describe: Vec<String> = problems.iter().map(describe).collect();
        match problems.pop() {
            None => Ok(()),
            Some((path, problem)) if problems.is_empty() => Err(ArgumentFault::new(path, problem)),
            Some(_) => {
                let rest = if more == 0 { String::new() } else { format!("; and {more} more") };
                Err(ArgumentFault::new("", format!("{}{rest}", describe.join("; "))))
            }
        }
    }
}

/// A tool whose arguments are checked against its own `input_schema` before it is called.
///
/// For tools that bring a schema and do not check it themselves; [`CommandTool`](crate::CommandTool)
/// needs no such wrapper.
///
/// ```
/// use harness_core::Json;
/// use harness_core::tool::{Tool, ToolCx, ToolDef, ToolOutcome};
/// use harness_tools::Validated;
///
/// struct Echo(ToolDef);
///
/// impl Tool for Echo {
///     fn def(&self) -> &ToolDef {
///         &self.0
///     }
///
///     async fn call(&self, cx: ToolCx) -> ToolOutcome {
///         ToolOutcome::text(cx.call.arguments.text())
///     }
/// }
///
/// let schema = Json::parse(r#"{"type":"object","required":["say"]}"#)?;
/// let echo = Validated::new(Echo(ToolDef::new("echo", "Repeats").with_schema(schema)))?;
/// let fault = echo.check(&Json::empty_object()).unwrap_err();
/// assert_eq!(fault.to_string(), "argument `say` is wrong: it is required and missing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validated<T> {
    tool: T,
    schema: Option<ArgumentSchema>,
}

impl<T: Tool> Validated<T> {
    /// Wraps a tool. One without a schema is only passed through.
    ///
    /// # Errors
    /// [`ToolsError::Schema`], when the tool's schema is not usable.
    pub fn new(tool: T) -> Result<Self, ToolsError> {
        Ok(Self { schema: ArgumentSchema::of_tool(tool.def())?, tool })
    }

    /// The tool inside.
    pub fn into_inner(self) -> T {
        self.tool
    }
}

impl<T: Tool> Tool for Validated<T> {
    fn def(&self) -> &ToolDef {
        self.tool.def()
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        if let Some(schema) = &self.schema {
            schema.check(arguments)?;
        }
        self.tool.check(arguments)
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.check(&call.arguments).is_ok() && self.tool.delegates(call, origin)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        // The turn asks `check` only where a gate or an approval follows.
        match self.check(&cx.call.arguments) {
            Ok(()) => self.tool.call(cx).await,
            Err(fault) => ToolOutcome::error(crate::command::INVALID_ARGUMENTS, fault.to_string()),
        }
    }
}

fn describe((path, problem): &(String, String)) -> String {
    if path.is_empty() { problem.clone() } else { format!("`{path}`: {problem}") }
}

/// All of JSON Schema, for contracts: what [`ArgumentSchema`] understands, held against any data.
///
/// ```
/// use harness_core::tool::SchemaValidator;
/// use harness_tools::JsonSchemas;
/// use serde_json::json;
///
/// let schema = json!({ "properties": { "files": { "type": "integer", "minimum": 1 } } });
/// assert_eq!(JsonSchemas.check(&schema, &json!({ "files": 3 })), Ok(()));
/// let fault = JsonSchemas.check(&schema, &json!({ "files": 0 })).unwrap_err();
/// assert!(fault.starts_with("`files`: expected"), "{fault}");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonSchemas;

impl SchemaValidator for JsonSchemas {
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String> {
        let validator = compiled(schema)?;
        let Some(error) = validator.iter_errors(data).next() else { return Ok(()) };
        let unexpected =
            matches!(error.kind(), Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. });
        let problem = if unexpected { "it is not expected".to_owned() } else { problem(&error) };
        match path_of(&error).as_str() {
            "" => Err(problem),
            path => Err(format!("`{path}`: {problem}")),
        }
    }

    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        if !schema.is_object() {
            return Err("expected an object".to_owned());
        }
        compiled(schema).map(|_| ())
    }
}

fn compiled(schema: &Value) -> Result<Validator, String> {
    let compiled = jsonschema::options().build(schema);
    compiled.map_err(|error| match path_of(&error).as_str() {
        "" => format!("invalid JSON Schema: {}", problem(&error)),
        path => format!("invalid JSON Schema: `{path}`: {}", problem(&error)),
    })
}

/// The wrong field: `items[2].price`. A missing or unexpected field is itself the wrong one.
fn path_of(error: &ValidationError<'_>) -> String {
    let mut path = String::new();
    for segment in error.instance_path() {
        match segment {
            LocationSegment::Property(name) => push_name(&mut path, &name),
            LocationSegment::Index(index) => path.extend(["[", &index.to_string(), "]"]),
        }
    }
    if let Kind::Required { property: Value::String(name) } = error.kind() {
        push_name(&mut path, name);
    }
    if let Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } =
        error.kind()
        && let [name] = unexpected.as_slice()
    {
        push_name(&mut path, name);
    }
    short(&path)
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// The expected and the found value.
fn problem(error: &ValidationError<'_>) -> String {
    let value = error.instance();
    let found = || format!("found {}", short(&value.to_string()));
    let sized =
        |what: &str, limit: u64, unit: &str| format!("expected {what} {limit} {unit}, found {}", size(value));
    match error.kind() {
        Kind::Type { kind } => format!("expected {}, {}", types(kind), found()),
        Kind::Required { .. } => "it is required and missing".to_owned(),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            match unexpected.as_slice() {
                [_] => "it is not an argument of this tool".to_owned(),
                names => format!("not known here are {}", short(&suggest::list(names, "and"))),
            }
        }
        Kind::Enum { options } => format!("expected one of {}, {}", short(&options.to_string()), found()),
        Kind::Constant { expected_value } => {
            format!("expected {}, {}", short(&expected_value.to_string()), found())
        }
        Kind::Minimum { limit } => format!("expected at least {limit}, {}", found()),
        Kind::Maximum { limit } => format!("expected at most {limit}, {}", found()),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}, {}", found()),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}, {}", found()),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}, {}", found()),
        Kind::MinLength { limit } => sized("at least", *limit, "characters"),
        Kind::MaxLength { limit } => sized("at most", *limit, "characters"),
        Kind::MinItems { limit } => sized("at least", *limit, "items"),
        Kind::MaxItems { limit } => sized("at most", *limit, "items"),
        Kind::AdditionalItems { limit } => sized("at most", *limit as u64, "items"),
        Kind::MinProperties { limit } => sized("at least", *limit, "properties"),
        Kind::MaxProperties { limit } => sized("at most", *limit, "properties"),
        Kind::UniqueItems => "expected items that all differ".to_owned(),
        Kind::Pattern { pattern } => format!("expected a match of `{}`, {}", short(pattern), found()),
        Kind::Format { format } => format!("expected the format `{format}`, {}", found()),
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("expected one of several forms, and none fits; {}", found())
        }
        Kind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            format!("it refers to `{}`, which is outside of it, and nothing is fetched", short(uri))
        }
        Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Not { .. }
        | Kind::OneOfMultipleValid { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => short(&error.to_string()),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

/// How many characters, items or properties a value has.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(properties) => properties.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The beginning of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", text.split_at(end).0),
        None => text.to_owned(),
    }
}
