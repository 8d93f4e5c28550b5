//! Entries that run a program.

use std::time::Duration;

use harness_core::Json;
use harness_core::tool::RetryClass;
use harness_diagnostics::Fields;

use super::sandbox::{self, SandboxEntry};
use crate::command::Input;

/// Maximum `timeout` of a tool: one hour.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);

/// Minimum `max_output`: 256 bytes.
pub const MIN_OUTPUT: usize = 256;

/// Maximum `max_output`: 16 MiB.
pub const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// Maximum length of a tool name; the limit of the providers.
pub(crate) const MAX_NAME: usize = 64;

const KEYS: [&str; 15] = [
    "name",
    "description",
    "command",
    "args",
    "input",
    "timeout",
    "max_output",
    "cwd",
    "env",
    "env_pass",
    "class",
    "requires_approval",
    "sequential",
    "parameters",
    "sandbox",
];

/// Entry of a program, as written.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) input: Input,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: Option<usize>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) env_pass: Vec<String>,
    pub(crate) class: RetryClass,
    pub(crate) requires_approval: bool,
    pub(crate) sequential: bool,
    pub(crate) parameters: Option<Json>,
    pub(crate) sandbox: Option<SandboxEntry>,
}

/// Reads an entry; errors are reported to its fields.
pub(crate) fn read(target: &str, fields: &Fields<'_>) -> Entry {
    fields.known(&KEYS);
    Entry {
        target: target.to_owned(),
        name: tool_name(fields, target),
        description: fields.text("description").unwrap_or_default(),
        command: command(fields),
        args: fields.texts("args"),
        input: fields
            .one_of("input", &[("json-stdin", Input::JsonStdin), ("none", Input::None)])
            .unwrap_or_default(),
        timeout: timeout(fields),
        max_output: max_output(fields),
        cwd: fields.text("cwd"),
        env: env(fields),
        env_pass: fields.texts("env_pass"),
        class: fields.one_of("class", &CLASSES).unwrap_or_default(),
        requires_approval: fields.flag("requires_approval").unwrap_or(false),
        sequential: fields.flag("sequential").unwrap_or(false),
        parameters: parameters(fields),
        sandbox: sandbox::read(fields),
    }
}

const CLASSES: [(&str, RetryClass); 3] =
    [("unsafe", RetryClass::Unsafe), ("pure", RetryClass::Pure), ("idempotent", RetryClass::Idempotent)];

/// A name that every provider accepts, made from a target.
pub(crate) fn name_of(target: &str) -> String {
    let mut name = String::new();
    for c in target.chars() {
        let c = if is_name_char(c) { c } else { '_' };
        if !(c == '_' && name.ends_with('_')) {
            name.push(c);
        }
    }
    let name: String = name.trim_matches('_').chars().take(MAX_NAME).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Whether every provider accepts this character in the name of a tool.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether every provider accepts this name of a tool.
pub(crate) fn is_tool_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_name_char)
}

/// Name of the tool for the model.
pub(crate) fn tool_name(fields: &Fields<'_>, target: &str) -> String {
    let Some(name) = fields.text("name") else { return name_of(target) };
    if !is_tool_name(&name) {
        let hint = format!("use 1 to {MAX_NAME} letters, digits, `_` and `-`, such as `{}`", name_of(&name));
        fields.expected("name", "a tool name", &hint);
    }
    name
}

/// Prefix of the names of several tools.
pub(crate) fn prefix(fields: &Fields<'_>) -> String {
    const MAX_PREFIX: usize = 32;
    let Some(prefix) = fields.text("prefix") else { return String::new() };
    if prefix.len() > MAX_PREFIX || !prefix.chars().all(is_name_char) {
        let hint = format!("use at most {MAX_PREFIX} letters, digits, `_` and `-`, such as `docs_`");
        fields.expected("prefix", "a prefix of tool names", &hint);
    }
    prefix
}

pub(crate) fn timeout(fields: &Fields<'_>) -> Option<Duration> {
    fields.duration("timeout", MAX_TIMEOUT)
}

pub(crate) fn max_output(fields: &Fields<'_>) -> Option<usize> {
    let size = fields.size("max_output", MIN_OUTPUT as u64, MAX_OUTPUT as u64)?;
    usize::try_from(size).ok()
}

/// Environment variables that the file sets.
pub(crate) fn env(fields: &Fields<'_>) -> Vec<(String, String)> {
    let variables = fields.pairs("env");
    if let Some(env) = fields.section("env", "").filter(|_| !variables.is_empty()) {
        for (name, _) in &variables {
            if name.is_empty() || name.contains(['=', '\0']) {
                let hint = "a variable name is not empty and contains no `=`";
                env.key_error(name, format!("invalid variable name `{name}`"), hint);
            } else if name.starts_with("HARNESS_") {
                let hint = "names that start with `HARNESS_` are set by the program itself";
                env.key_error(name, format!("the variable `{name}` is reserved"), hint);
            }
        }
    }
    variables
}

fn command(fields: &Fields<'_>) -> String {
    let is_list = fields.node("command").is_some_and(|node| fields.document().list(node).is_some());
    if is_list {
        let hint = "write the program in `command`, and its arguments in `args`";
        fields.expected("command", "a string", hint);
        return String::new();
    }
    fields.required("command", "set it to the program that the tool runs")
}

fn parameters(fields: &Fields<'_>) -> Option<Json> {
    json_schema(fields, "parameters")
}

/// JSON Schema of an object.
pub(crate) fn json_schema(fields: &Fields<'_>, key: &str) -> Option<Json> {
    const FORM: &str = "write a JSON Schema of an object: `type: object`, `properties`, `required`";
    let schema = fields.section(key, FORM)?;
    let document = fields.document();
    let allows_object = |node| document.string(node) == Some("object");
    let is_object = schema.node("type").is_none_or(|kind| {
        let kinds = document.list(kind);
        kinds.map_or_else(|| allows_object(kind), |kinds| kinds.iter().any(|kind| allows_object(*kind)))
    });
    if !is_object {
        schema.expected("type", "`object`", FORM);
        return None;
    }
    let json = document.json(fields.node(key)?);
    if json.is_none() {
        fields.error(key, "the schema contains a number that JSON does not have", "remove infinities");
    }
    json
}
