//! How a call of a tool is shown.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, ToolCallContent, ToolCallLocation, ToolCallUpdateFields, ToolKind,
};
use harness::core::display::shortened;
use harness::core::message::ToolCall;
use serde_json::{Map, Value};

use crate::content::value;

/// The longest title, in characters.
const MOST_TITLE: usize = 120;

/// Maximum reported locations of a call.
const MOST_LOCATIONS: usize = 20;

/// The arguments that say best what a call is about, the best first.
const TELLING: [&str; 9] =
    ["path", "file_path", "file", "command", "query", "pattern", "url", "name", "title"];

/// Fields of a call before it runs.
pub(crate) fn fields(call: &ToolCall, cwd: &Path) -> ToolCallUpdateFields {
    let input = value(&call.arguments);
    let none = Map::new();
    let arguments = input.as_ref().and_then(Value::as_object).unwrap_or(&none);
    let mut fields = ToolCallUpdateFields::new()
        .kind(kind(call.name.as_str()))
        .title(title(call.name.as_str(), arguments))
        .name(call.name.as_str().to_owned());
    let locations = locations(arguments, cwd);
    if !locations.is_empty() {
        fields = fields.locations(locations);
    }
    if let Some(diff) = diff(arguments, cwd) {
        fields = fields.content(vec![ToolCallContent::from(diff)]);
    }
    fields.raw_input = input;
    fields
}

/// The picture that an editor shows beside a call, by the words of the tool's name. Nothing rests on it.
pub(crate) fn kind(name: &str) -> ToolKind {
    if name == "mode_set" {
        return ToolKind::SwitchMode;
    }
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.find_map(kind_of_word).unwrap_or(ToolKind::Other)
}

fn kind_of_word(word: &str) -> Option<ToolKind> {
    Some(match word {
        "todo" | "todos" | "plan" | "think" | "scratchpad" | "note" | "notes" | "memory" => ToolKind::Think,
        "read" | "open" | "cat" | "view" | "show" => ToolKind::Read,
        "search" | "find" | "grep" | "glob" | "list" | "ls" | "lookup" | "query" => ToolKind::Search,
        "write" | "edit" | "create" | "patch" | "replace" | "insert" | "append" | "update" => ToolKind::Edit,
        "delete" | "remove" | "rm" => ToolKind::Delete,
        "move" | "rename" | "mv" => ToolKind::Move,
        "shell" | "run" | "exec" | "execute" | "bash" | "command" | "terminal" => ToolKind::Execute,
        "fetch" | "http" | "web" | "download" | "browse" => ToolKind::Fetch,
        _ => return None,
    })
}

fn title(name: &str, arguments: &Map<String, Value>) -> String {
    let telling = TELLING.iter().find_map(|key| arguments.get(*key).and_then(Value::as_str));
    let title = match telling {
        Some(text) => format!("{name}: {}", text.lines().next().unwrap_or_default()),
        None => name.to_owned(),
    };
    shortened(&title, MOST_TITLE)
}

fn locations(arguments: &Map<String, Value>, cwd: &Path) -> Vec<ToolCallLocation> {
    let line = ["line", "start_line", "startLine"].iter().find_map(|key| arguments.get(*key)?.as_u64());
    let line = line.and_then(|line| u32::try_from(line).ok());
    let one = ["path", "file_path", "file"].iter().filter_map(|key| arguments.get(*key)?.as_str());
    let many = ["paths", "files"].iter().filter_map(|key| arguments.get(*key)?.as_array());
    let many = many.flatten().filter_map(Value::as_str);
    let paths = one.chain(many).filter(|path| !path.is_empty()).take(MOST_LOCATIONS);
    paths.map(|path| ToolCallLocation::new(absolute(path, cwd)).line(line)).collect()
}

/// Diff of an edit, if its arguments contain it.
fn diff(arguments: &Map<String, Value>, cwd: &Path) -> Option<Diff> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = absolute(text("path")?, cwd);
    Some(Diff::new(path, text("new_string")?).old_text(text("old_string")?.to_owned()))
}

fn absolute(path: &str, cwd: &Path) -> PathBuf {
    cwd.join(path)
}

#[cfg(test)]
mod tests {
    use harness::core::Json;

    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: &str) {
        let call = ToolCall::new("c", name, Json::parse(arguments).unwrap());
        let fields = fields(&call, Path::new("/desk"));
        let places: Vec<String> = fields.locations.unwrap_or_default().iter().map(place).collect();
        let changes = if fields.content.is_some() { " diff" } else { "" };
        let shown =
            format!("{:?} `{}` {}{changes}", fields.kind.unwrap(), fields.title.unwrap(), places.join(","));
        assert_eq!(shown.trim_end(), expected);
    }

    fn place(location: &ToolCallLocation) -> String {
        let line = location.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}", location.path.display())
    }

    #[test]
    fn a_call_says_what_it_is_about_and_where() {
        check("read_file", r#"{"path":"a.rs","line":7}"#, "Read `read_file: a.rs` /desk/a.rs:7");
        check("workspace_search", r#"{"query":"x\ny"}"#, "Search `workspace_search: x`");
        check(
            "edit_file",
            r#"{"path":"/b","old_string":"1","new_string":"2"}"#,
            "Edit `edit_file: /b` /b diff",
        );
        check("complete_todo", r#"{"id":"a"}"#, "Think `complete_todo`");
        check("mode_set", r#"{"mode":"plan"}"#, "SwitchMode `mode_set`");
        check("orders.lookup", r#"{"files":["a","b"]}"#, "Search `orders.lookup` /desk/a,/desk/b");
        check("weather", "[]", "Other `weather`");
    }

    #[test]
    fn a_title_is_bounded() {
        let call =
            ToolCall::new("c", "t", Json::parse(&format!(r#"{{"query":"{}"}}"#, "ä".repeat(500))).unwrap());
        assert_eq!(fields(&call, Path::new("/")).title.unwrap().chars().count(), MOST_TITLE + 1);
    }
}
