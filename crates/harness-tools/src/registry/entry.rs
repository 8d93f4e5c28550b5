//! One tool of the file.

use std::time::Duration;

use harness_core::Json;
use harness_core::tool::RetryClass;

use super::faults::Faults;
use super::sandbox::{self, SandboxEntry};
use super::units;
use super::yaml::{Node, Step};
use crate::command::Input;
use crate::error::ToolsError;
use crate::near;

/// The longest `timeout` that a tool may have: one hour.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);

/// The least that `max_output` may be: 256 bytes.
pub const MIN_OUTPUT: usize = 256;

/// The most that `max_output` may be: 16 MiB.
pub const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// How long a name may be that a model sees; the limit of the providers.
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

/// One tool as the file has it.
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

/// Reads the entry at `path`. What is wrong in it goes to `faults`; `None` if it is no mapping.
pub(crate) fn read(target: &str, node: &Node, path: &[Step], faults: &mut Faults<'_>) -> Option<Entry> {
    let Node::Map(entries) = node else {
        let hint = "write `command` and the tool's other keys below it".to_owned();
        faults.value(path, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return None;
    };
    unknown_keys(entries, &KEYS, path, faults);
    let mut fields = Fields::new(entries, path, faults);
    let command = fields.command();
    let name = fields.name(target);
    Some(Entry {
        target: target.to_owned(),
        name,
        description: fields.text("description").unwrap_or_default(),
        command,
        args: fields.texts("args"),
        input: fields.one_of("input", &[("json-stdin", Input::JsonStdin), ("none", Input::None)]),
        timeout: fields.timeout(),
        max_output: fields.max_output(),
        cwd: fields.text("cwd"),
        env: fields.env(),
        env_pass: fields.texts("env_pass"),
        class: fields.one_of(
            "class",
            &[
                ("unsafe", RetryClass::Unsafe),
                ("pure", RetryClass::Pure),
                ("idempotent", RetryClass::Idempotent),
            ],
        ),
        requires_approval: fields.flag("requires_approval", false),
        sequential: fields.flag("sequential", false),
        parameters: fields.parameters(),
        sandbox: sandbox::read(&mut fields),
    })
}

/// Reports the keys that are not known.
pub(crate) fn unknown_keys(
    entries: &[(String, Node)],
    known: &[&str],
    path: &[Step],
    faults: &mut Faults<'_>,
) {
    for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        faults.key(&child(path, key), format!("unknown key `{key}`"), Some(known_keys(key, known)));
    }
}

/// What to do about an unknown key.
pub(crate) fn known_keys(key: &str, known: &[&str]) -> String {
    near::did_you_mean(key, known.iter().copied())
        .unwrap_or_else(|| format!("known are {}", near::list(known, "and")))
}

/// A path and one key more.
pub(crate) fn child(path: &[Step], key: &str) -> Vec<Step> {
    let mut path = path.to_vec();
    path.push(Step::Key(key.to_owned()));
    path
}

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

/// Whether every provider takes this character in the name of a tool.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The keys of one entry, read with their faults.
pub(crate) struct Fields<'a, 'f, 't> {
    entries: &'a [(String, Node)],
    path: &'a [Step],
    faults: &'f mut Faults<'t>,
}

impl<'a, 'f, 't> Fields<'a, 'f, 't> {
    pub(crate) fn new(entries: &'a [(String, Node)], path: &'a [Step], faults: &'f mut Faults<'t>) -> Self {
        Self { entries, path, faults }
    }

    pub(crate) fn path(&self) -> &'a [Step] {
        self.path
    }

    pub(crate) fn faults(&mut self) -> &mut Faults<'t> {
        self.faults
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(crate) fn fault(&mut self, key: &str, problem: impl Into<String>, hint: impl Into<String>) {
        self.faults.value(&child(self.path, key), problem, Some(hint.into()));
    }

    fn expected(&mut self, key: &str, what: &str, found: &Node, hint: impl Into<String>) {
        self.fault(key, format!("expected {what}, found {}", found.kind()), hint);
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let node = self.get(key)?;
        let Some(text) = node.as_text() else {
            self.expected(key, "a text", node, "write it in quotes");
            return None;
        };
        self.without_nul(key, text)
    }

    fn without_nul(&mut self, key: &str, text: &str) -> Option<String> {
        if text.contains('\0') {
            self.fault(key, "the text contains a NUL character", "remove it");
            return None;
        }
        Some(text.to_owned())
    }

    fn command(&mut self) -> String {
        if let Some(Node::List(_)) = self.get("command") {
            let hint = "write the program in `command`, and its arguments in `args`";
            self.fault("command", "expected a text, found a list", hint);
            return String::new();
        }
        self.required("command", "write the program that the tool runs")
    }

    /// A text that must be there and not blank.
    pub(crate) fn required(&mut self, key: &str, hint: &str) -> String {
        if self.get(key).is_none() {
            self.missing(key, hint);
            return String::new();
        }
        let text = self.text(key);
        if text.as_deref().is_some_and(|text| text.trim().is_empty()) {
            self.fault(key, "the text is empty", hint);
        }
        text.unwrap_or_default()
    }

    /// Reports a key that must be there.
    pub(crate) fn missing(&mut self, key: &str, hint: &str) {
        self.faults.key(self.path, format!("`{key}` is missing"), Some(hint.to_owned()));
    }

    /// Something before the names of several tools.
    pub(crate) fn prefix(&mut self) -> String {
        const LONGEST: usize = 32;
        let Some(prefix) = self.text("prefix") else { return String::new() };
        if prefix.len() > LONGEST || !prefix.chars().all(is_name_char) {
            let hint = format!("use at most {LONGEST} letters, digits, `_` and `-`, such as `docs_`");
            self.fault("prefix", format!("`{prefix}` cannot begin the name of a tool"), hint);
        }
        prefix
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let node = self.get(key)?;
        let form = format!("write a whole number from {least} to {most}");
        match node {
            Node::Number(_, Some(number)) if (least..=most).contains(number) => Some(*number),
            Node::Number(written, _) => {
                self.fault(key, format!("`{written}` is out of bounds"), form);
                None
            }
            Node::Null | Node::Bool(_) | Node::Text(_) | Node::List(_) | Node::Map(_) | Node::Other => {
                self.expected(key, "a whole number", node, form);
                None
            }
        }
    }

    /// Rules of a shell; the one that cannot be used is told.
    pub(crate) fn rules<T>(
        &mut self,
        key: &str,
        rules: &[String],
        make: impl FnOnce(&[String]) -> Result<T, ToolsError>,
    ) -> Option<T> {
        match make(rules) {
            Ok(policy) => Some(policy),
            Err(ToolsError::ShellRule { rule, problem }) => {
                let at = rules.iter().position(|known| *known == rule).unwrap_or_default();
                let mut path = child(self.path, key);
                path.push(Step::Index(at));
                let hint = "write the first words of a command, such as `git log`".to_owned();
                self.faults.value(&path, format!("the rule has {problem}"), Some(hint));
                None
            }
            Err(other) => {
                self.fault(key, other.to_string(), other.hint().unwrap_or_default());
                None
            }
        }
    }

    pub(crate) fn name(&mut self, target: &str) -> String {
        let Some(name) = self.text("name") else { return name_of(target) };
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_name_char) {
            let problem = format!("`{name}` is no name that models can call");
            let hint =
                format!("use 1 to {MAX_NAME} letters, digits, `_` and `-`, such as `{}`", name_of(&name));
            self.fault("name", problem, hint);
        }
        name
    }

    pub(crate) fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Some(items) = node.as_list() else {
            self.expected(key, "a list of texts", node, "write it as a list: `[a, b]`");
            return Vec::new();
        };
        let path = child(self.path, key);
        let at = |index| path.iter().cloned().chain([Step::Index(index)]).collect::<Vec<_>>();
        items.iter().enumerate().filter_map(|(index, item)| self.item(&at(index), item)).collect()
    }

    /// A text in a list or mapping.
    fn item(&mut self, path: &[Step], node: &Node) -> Option<String> {
        let text = node.as_text().filter(|text| !text.contains('\0')).map(str::to_owned);
        if text.is_none() {
            let problem = format!("expected a text without NUL, found {}", node.kind());
            self.faults.value(path, problem, Some("write it in quotes".to_owned()));
        }
        text
    }

    /// A mapping of texts.
    pub(crate) fn pairs(&mut self, key: &str) -> Vec<(String, String)> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Some(entries) = node.as_map() else {
            self.expected(key, "a mapping of texts", node, "write it as `{ NAME: value }`");
            return Vec::new();
        };
        let path = child(self.path, key);
        let pair =
            |(name, node): &(String, Node)| Some((name.clone(), self.item(&child(&path, name), node)?));
        entries.iter().filter_map(pair).collect()
    }

    pub(crate) fn env(&mut self) -> Vec<(String, String)> {
        let variables = self.pairs("env");
        for (name, _) in &variables {
            let path = child(&child(self.path, "env"), name);
            if name.is_empty() || name.contains(['=', '\0']) {
                let hint = "a name has no `=` and is not empty".to_owned();
                self.faults.key(&path, format!("`{name}` is no name of a variable"), Some(hint));
            } else if name.starts_with("HARNESS_") {
                let hint = "names that begin with `HARNESS_` are set by the program itself".to_owned();
                self.faults.key(&path, format!("`{name}` cannot be set here"), Some(hint));
            }
        }
        variables
    }

    pub(crate) fn flag(&mut self, key: &str, default: bool) -> bool {
        let Some(node) = self.get(key) else { return default };
        let value = node.as_bool();
        if value.is_none() {
            self.expected(key, "a boolean", node, "write `true` or `false`");
        }
        value.unwrap_or(default)
    }

    pub(crate) fn one_of<T: Copy + Default>(&mut self, key: &str, words: &[(&str, T)]) -> T {
        let Some(word) = self.text(key) else { return T::default() };
        if let Some((_, value)) = words.iter().find(|(known, _)| *known == word) {
            return *value;
        }
        let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
        let hint = near::did_you_mean(&word, known.iter().copied())
            .unwrap_or_else(|| format!("write {}", near::list(&known, "or")));
        self.fault(key, format!("unknown word `{word}`"), hint);
        T::default()
    }

    pub(crate) fn timeout(&mut self) -> Option<Duration> {
        self.span("timeout")
    }

    /// A span of time.
    pub(crate) fn span(&mut self, key: &str) -> Option<Duration> {
        const FORM: &str = "write a number and `ms`, `s`, `m` or `h`, from `1ms` to `1h`";
        let node = self.get(key)?;
        if let Node::Number(number, _) = node {
            self.fault(key, format!("`{number}` has no unit"), FORM);
            return None;
        }
        let Some(text) = node.as_text() else {
            self.expected(key, "a span of time", node, FORM);
            return None;
        };
        let Some(span) = units::duration(text) else {
            self.fault(key, format!("`{text}` is no span of time"), FORM);
            return None;
        };
        if span.is_zero() || span > MAX_TIMEOUT {
            self.fault(key, format!("`{text}` is out of bounds"), FORM);
            return None;
        }
        Some(span)
    }

    pub(crate) fn max_output(&mut self) -> Option<usize> {
        let size = self.bytes("max_output", MIN_OUTPUT as u64, MAX_OUTPUT as u64)?;
        usize::try_from(size).ok()
    }

    /// An amount of bytes within bounds.
    pub(crate) fn bytes(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let form = || {
            let (least, most) = (units::shown(least), units::shown(most));
            format!("write a number and `B`, `KiB` or `MiB`, from `{least}` to `{most}`")
        };
        let node = self.get(key)?;
        let (written, size) = if let Node::Number(text, size) = node {
            (text.as_str(), *size)
        } else if let Some(text) = node.as_text() {
            (text, units::bytes(text))
        } else {
            self.expected(key, "an amount of bytes", node, form());
            return None;
        };
        let Some(size) = size else {
            self.fault(key, format!("`{written}` is no amount of bytes"), form());
            return None;
        };
        let size = Some(size).filter(|size| (least..=most).contains(size));
        if size.is_none() {
            self.fault(key, format!("`{written}` is out of bounds"), form());
        }
        size
    }

    fn parameters(&mut self) -> Option<Json> {
        self.json_schema("parameters")
    }

    /// The JSON Schema of an object.
    pub(crate) fn json_schema(&mut self, key: &str) -> Option<Json> {
        const FORM: &str = "write a JSON Schema of an object: `type: object`, `properties`, `required`";
        let node = self.get(key)?;
        let Node::Map(entries) = node else {
            self.expected(key, "a JSON Schema", node, FORM);
            return None;
        };
        if let Some((_, kind)) = entries.iter().find(|(name, kind)| name == "type" && !allows_object(kind)) {
            let kind = kind.to_json().map_or_else(|| kind.kind().to_owned(), |json| json.to_string());
            let problem = format!("the schema's type is {kind}, and an object is required");
            self.fault(key, problem, FORM);
            return None;
        }
        let json = node.to_json();
        if json.is_none() {
            let hint = "remove tags, infinities and keys that are no text";
            self.fault(key, "the schema holds a value that JSON does not have", hint);
        }
        json
    }
}

fn allows_object(kind: &Node) -> bool {
    kind.as_text() == Some("object") || kind.as_list().is_some_and(|words| words.iter().any(allows_object))
}
