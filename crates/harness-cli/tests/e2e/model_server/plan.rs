//! What the server says to what it is asked.

use serde_json::{Value, json};

/// The command that the server asks the shell tool of an agent to run.
pub(super) const COMMAND: &str = "cat note.txt";

/// How the line begins that the answer quotes.
pub(crate) const NOTE: &str = "The note says";

/// What every answer reports to have used.
pub(super) const INPUT_TOKENS: u64 = 100;
/// See [`INPUT_TOKENS`].
pub(super) const OUTPUT_TOKENS: u64 = 20;

/// What a request asks, whatever its protocol.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The model that is asked.
    pub(super) model: String,
    /// The names of the tools that are offered.
    pub(super) tools: Vec<String>,
    /// What tools have returned so far, as text.
    pub(super) results: Vec<String>,
    /// Whether the answer is to be streamed.
    pub(super) streamed: bool,
    /// Whether the answer has to be a JSON object.
    pub(super) json: bool,
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Say {
    /// One call of a tool.
    Call { name: String, arguments: Value },
    /// Text, and the end of the turn.
    Text(String),
}

/// Makes the arguments of a shell tool out of a command.
type Arguments = fn(&str) -> Value;

/// The shell tools of the agents, and how each takes its command. The first that is offered is used.
const SHELLS: &[(&str, Arguments)] = &[
    ("Bash", described),
    ("bash", described),
    ("run_shell_command", described),
    ("exec_command", |command| json!({ "cmd": command })),
    ("shell_command", |command| json!({ "command": command })),
    ("shell", |command| json!({ "command": ["bash", "-lc", command] })),
];

fn described(command: &str) -> Value {
    json!({ "command": command, "description": "Reads the note" })
}

impl Asked {
    /// What is said to it.
    pub(super) fn say(&self) -> Say {
        if let Some(line) = self.results.iter().rev().find_map(|result| note_in(result)) {
            return Say::Text(format!("I have read it. {line}"));
        }
        if !self.results.is_empty() {
            return Say::Text("The tool did not show me a note.".to_owned());
        }
        if self.json {
            return Say::Text("{}".to_owned());
        }
        let offered = |name: &str| self.tools.iter().any(|tool| tool == name);
        match SHELLS.iter().find(|(name, _)| offered(name)) {
            Some((name, arguments)) => Say::Call { name: (*name).to_owned(), arguments: arguments(COMMAND) },
            None => Say::Text("A note".to_owned()),
        }
    }
}

/// The line of a result that holds the note. A result may be JSON text with its line breaks escaped.
fn note_in(result: &str) -> Option<&str> {
    let line = result.get(result.find(NOTE)?..)?;
    Some(line.split(['\n', '\r', '\\', '"']).next().unwrap_or(line).trim_end())
}

/// The text in which a value speaks: a string itself, of lists and objects what their `text`, `content` and
/// `output` hold.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let spoken = ["text", "content", "output"].iter().filter_map(|key| fields.get(*key));
            spoken.map(text_of).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The items of a list under a key; none when there is no list.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The text under a key; empty when there is none.
pub(super) fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The words of a text, each with the space that follows it: what is streamed one by one.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[&str], results: &[&str], expected: Say) {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let asked = Asked { tools: owned(tools), results: owned(results), ..Asked::default() };
        assert_eq!(asked.say(), expected);
    }

    #[test]
    fn the_shell_of_the_agent_is_asked_first() {
        let call = |name: &str, arguments| Say::Call { name: name.to_owned(), arguments };
        check(&["Read", "Bash"], &[], call("Bash", described("cat note.txt")));
        check(&["exec_command"], &[], call("exec_command", json!({ "cmd": "cat note.txt" })));
        check(&["view"], &[], Say::Text("A note".to_owned()));
    }

    #[test]
    fn the_answer_quotes_what_the_tool_returned() {
        let said = |text: &str| Say::Text(text.to_owned());
        check(
            &["bash"],
            &["Exit code 0\nThe note says: seven\n"],
            said("I have read it. The note says: seven"),
        );
        check(&["bash"], &[r#"{"output":"The note says: x\n"}"#], said("I have read it. The note says: x"));
        check(&["bash"], &["denied"], said("The tool did not show me a note."));
    }

    #[test]
    fn text_is_found_in_every_form_of_a_result() {
        assert_eq!(text_of(&json!([{ "type": "text", "text": "a" }, { "output": "b" }])), "a\nb");
    }
}
