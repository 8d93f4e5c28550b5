//! Requests about files: to read one that the message names, to list a directory, to search for a text.
//!
//! The tools are found by the words of their names and by the arguments that they require.

use harness::core::display::shortened;
use harness::core::tool::{ToolDef, ToolKind};
use serde_json::Value;

use super::answer::failure;
use super::decide::{Next, acts, schema};
use super::fill::quoted;
use super::situation::{Done, Situation};

/// Lines and characters of a file in an answer.
const LINES: usize = 20;
const CHARACTERS: usize = 1_500;

/// Entries of a listing or hits of a search in an answer.
const ENTRIES: usize = 20;

/// Characters of the text of a hit.
const PREVIEW: usize = 120;

/// Words of politeness before the verb of a request.
const POLITE: [&str; 8] = ["please", "can", "could", "would", "you", "now", "then", "just"];

/// First words of requests to change something or to run something, which no rule here serves.
const ACTING: [&str; 22] = [
    "add", "build", "call", "change", "copy", "create", "delete", "edit", "fix", "insert", "make", "move",
    "refactor", "remove", "rename", "replace", "run", "save", "test", "update", "use", "write",
];

const SEARCHING: [&str; 9] =
    ["search", "find", "grep", "where", "which", "look", "contains", "contain", "mentions"];

/// Words before the text of a search that is not quoted.
const SEARCH_FOR: [&str; 4] = ["search for ", "look for ", "grep for ", "grep "];

const LISTING: [&str; 7] = ["list", "ls", "show", "what", "what's", "what’s", "which"];
const LISTED: [&str; 7] = ["files", "folder", "directory", "dir", "tree", "contents", "content"];

/// Words of a place that name no directory.
const HERE: [&str; 13] = [
    "the",
    "this",
    "that",
    "my",
    "our",
    "here",
    "current",
    "working",
    "project",
    "repository",
    "repo",
    "folder",
    "directory",
];

/// Names of files without an extension.
const PLAIN_NAMES: [&str; 5] = ["makefile", "dockerfile", "justfile", "license", "readme"];

/// A request about files.
#[derive(Debug, PartialEq)]
pub(super) enum FileRequest {
    /// Read this file.
    Read(String),
    /// List this directory.
    List(String),
    /// Find this text.
    Search(String),
}

impl FileRequest {
    /// The request of a message, if it is one about files that changes nothing.
    pub(super) fn of(asked: &str) -> Option<Self> {
        let lower = asked.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().map(bare).collect();
        let first = words.iter().find(|word| !POLITE.contains(word))?;
        if ACTING.contains(first) {
            return None;
        }
        let has = |some: &[&str]| words.iter().any(|word| some.contains(word));
        let text = || quoted(asked).find(|text| !is_file(text)).or_else(|| searched(asked));
        if let Some(text) = text().filter(|_| has(&SEARCHING)) {
            return Some(Self::Search(text.to_owned()));
        }
        let paths = || asked.split_whitespace().map(bare).map(|word| word.trim_start_matches('@'));
        if let Some(path) = paths().find(|word| is_file(word)) {
            return Some(Self::Read(path.to_owned()));
        }
        if let Some(path) = paths().find(|word| is_folder(word) && (word.ends_with('/') || has(&LISTING))) {
            return Some(Self::List(path.to_owned()));
        }
        let is_list =
            has(&LISTING) && (has(&LISTED) || lower.contains("is here") || lower.contains("s here"));
        (is_list || *first == "ls").then(|| Self::List(place(asked).unwrap_or(".").to_owned()))
    }
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    let marks = |c: char| ",;:!?()\"'`“”<>[]".contains(c);
    word.trim_matches(marks).trim_end_matches('.').trim_matches(marks)
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_./+-@".contains(c))
        && word.chars().any(char::is_alphanumeric)
}

/// Whether a word is the path of a file: its last name has an extension, or is one that needs none.
fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word).trim_start_matches('@');
    if !is_plain(word) || name.contains('@') || matches!(name, "e.g" | "i.e") {
        return false;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return PLAIN_NAMES.contains(&&*name.to_lowercase()) && name.starts_with(char::is_uppercase);
    };
    let is_extension = extension.len() <= 12 && extension.chars().any(char::is_alphabetic);
    is_extension && (stem.is_empty() || stem.chars().any(char::is_alphanumeric))
}

fn is_folder(word: &str) -> bool {
    is_plain(word) && word.contains('/') && !word.contains('@')
}

/// The text of a search that is not quoted: `tax rate` of `Search for the text tax rate in src.`
fn searched(asked: &str) -> Option<&str> {
    let lower = asked.to_ascii_lowercase();
    let start = SEARCH_FOR.iter().find_map(|before| Some(lower.find(before)? + before.len()))?;
    let rest = asked.get(start..)?.lines().next()?;
    let rest = rest.split([',', '?', '!']).next()?.split(" in ").next()?;
    let rest =
        ["the word ", "the text ", "the "].iter().find_map(|the| rest.strip_prefix(the)).unwrap_or(rest);
    Some(bare(rest.trim())).filter(|text| !text.is_empty())
}

/// The directory that a request to list names: `src` of `List the files in the src folder.`
fn place(asked: &str) -> Option<&str> {
    let mut words = asked.split_whitespace().map(bare);
    words.find(|word| ["in", "of", "under", "below", "inside"].contains(word))?;
    words
        .find(|word| !HERE.contains(&&*word.to_lowercase()))
        .filter(|word| is_plain(word) && !word.contains('@'))
}

/// A tool and the argument that it requires.
#[derive(Clone, Copy)]
struct FileTool<'t> {
    def: &'t ToolDef,
    argument: &'static str,
}

impl<'t> FileTool<'t> {
    /// The tool with one of these words in the shortest name that changes nothing and requires at most one of
    /// these arguments.
    fn find(tools: &'t [ToolDef], verbs: &[&str], arguments: &[&'static str]) -> Option<Self> {
        let parts = |def: &ToolDef| def.name.as_str().split(['_', '-', '.']).map(str::to_lowercase).collect();
        let fitting = tools.iter().filter_map(|def| {
            let parts: Vec<String> = parts(def);
            if acts(def)
                || matches!(def.kind, ToolKind::Handoff(_))
                || !parts.iter().any(|part| verbs.contains(&part.as_str()))
            {
                return None;
            }
            let schema = schema(def);
            let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let own = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
            let argument = arguments.iter().copied().find(|name| own(name))?;
            let is_enough = required.iter().all(|name| name == argument);
            is_enough.then_some((parts.len(), Self { def, argument }))
        });
        fitting.min_by_key(|(words, _)| *words).map(|(_, tool)| tool)
    }

    fn reader(tools: &'t [ToolDef]) -> Option<Self> {
        Self::find(tools, &["read", "cat", "view", "open"], &["path", "file_path", "file", "filename"])
    }

    fn lister(tools: &'t [ToolDef]) -> Option<Self> {
        Self::find(tools, &["list", "ls"], &["path", "directory", "folder", "dir"])
    }

    fn searcher(tools: &'t [ToolDef]) -> Option<Self> {
        Self::find(tools, &["search", "grep"], &["query", "pattern", "text"])
    }

    fn arguments(self, value: &str) -> Value {
        [(self.argument.to_owned(), Value::from(value))].into_iter().collect::<serde_json::Map<_, _>>().into()
    }

    /// This call, unless it was made.
    fn call(self, value: &str, situation: &Situation<'_>) -> Option<Next> {
        let arguments = self.arguments(value);
        let is_new = !situation.was_made(self.def, &arguments);
        is_new.then(|| Next::Call(vec![(self.def.name.to_string(), arguments)]))
    }

    /// Results of the tool, in their order.
    fn results<'s>(self, situation: &'s Situation<'_>) -> impl Iterator<Item = &'s Done> {
        situation.results().filter(move |done| done.call.name == self.def.name)
    }
}

/// The next action for a request about files; `None` if the message is none, or no tool fits.
pub(super) fn decide(situation: &Situation<'_>) -> Option<Next> {
    let tools = situation.tools;
    let next = match FileRequest::of(&situation.asked)? {
        FileRequest::Read(path) => {
            let reader = FileTool::reader(tools)?;
            reader.call(&path, situation).or_else(|| search_file(reader, &path, situation))
        }
        FileRequest::List(path) => FileTool::lister(tools)?.call(&path, situation),
        FileRequest::Search(text) => FileTool::searcher(tools)?.call(&text, situation),
    };
    Some(next.unwrap_or(Next::Answer))
}

/// After a failed read: a search for the file, then a read of the file that was found.
fn search_file(reader: FileTool<'_>, path: &str, situation: &Situation<'_>) -> Option<Next> {
    if reader.results(situation).any(|done| !done.result.is_error) {
        return None;
    }
    let searcher = FileTool::searcher(situation.tools)?;
    let name = path.rsplit('/').next().unwrap_or(path);
    searcher
        .call(name, situation)
        .or_else(|| reader.call(same_name(searcher, path, situation).first()?, situation))
}

/// Paths that a search found and that end with a path, the shortest first.
fn same_name(searcher: FileTool<'_>, path: &str, situation: &Situation<'_>) -> Vec<String> {
    let end = format!("/{path}");
    let found = searcher.results(situation).flat_map(|done| entries(done).unwrap_or_default());
    let mut paths: Vec<String> =
        found.map(|entry| entry.path).filter(|found| format!("/{found}").ends_with(&end)).collect();
    paths.sort_by_key(String::len);
    paths
}

/// An entry of a listing, or a hit of a search.
struct Entry {
    path: String,
    is_folder: bool,
    preview: Option<String>,
}

/// The entries of a result, if it is a list of objects with paths.
fn entries(done: &Done) -> Option<Vec<Entry>> {
    let items: Vec<Value> =
        serde_json::from_str(done.text().trim()).ok().filter(|_| !done.result.is_error)?;
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let entry = |item: &Value| {
        let is_folder = text(item, "type").is_some_and(|kind| kind.starts_with("dir"));
        Some(Entry { path: text(item, "path")?, is_folder, preview: text(item, "preview") })
    };
    let found: Vec<Entry> = items.iter().filter_map(entry).collect();
    (items.is_empty() || !found.is_empty()).then_some(found)
}

/// The answer to a request about files whose tools were called.
pub(super) fn report(situation: &Situation<'_>) -> Option<String> {
    let request = FileRequest::of(&situation.asked)?;
    let tool = match request {
        FileRequest::Read(_) => FileTool::reader(situation.tools),
        FileRequest::List(_) => FileTool::lister(situation.tools),
        FileRequest::Search(_) => FileTool::searcher(situation.tools),
    }?;
    let last = tool.results(situation).last()?;
    if last.result.is_error {
        return Some(match &request {
            FileRequest::Read(path) if situation.results().count() > 1 => {
                format!(
                    "{}\nA search found no file of that name. Is `{path}` spelled correctly?",
                    failure(last)
                )
            }
            FileRequest::Read(_) | FileRequest::List(_) | FileRequest::Search(_) => failure(last),
        });
    }
    Some(match &request {
        FileRequest::Read(path) => file(path, last, tool, situation),
        FileRequest::List(path) => match entries(last)? {
            found if found.is_empty() => format!("`{path}` is empty or does not exist."),
            found => listing(&found),
        },
        FileRequest::Search(text) => match entries(last)? {
            found if found.is_empty() => format!("The search found no `{text}`."),
            found => listing(&found),
        },
    })
}

fn listing(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let slash = if entry.is_folder { "/" } else { "" };
        let preview =
            entry.preview.as_ref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let preview = preview.map(|text| format!(": {}", shortened(&text, PREVIEW))).unwrap_or_default();
        format!("- `{}{slash}`{preview}", entry.path)
    };
    let mut lines: Vec<String> = entries.iter().take(ENTRIES).map(line).collect();
    if let Some(more) = entries.len().checked_sub(ENTRIES).filter(|more| *more > 0) {
        lines.push(format!("- … and {more} more"));
    }
    lines.join("\n")
}

/// The start of a file that was read, as a block of code.
fn file(asked: &str, done: &Done, reader: FileTool<'_>, situation: &Situation<'_>) -> String {
    let text = done.text();
    let made: Value = done.call.arguments.to().unwrap_or_default();
    let path = made.get(reader.argument).and_then(Value::as_str).unwrap_or(asked);
    let shown: Vec<&str> = text.lines().take(LINES).collect();
    let shown = shortened(&shown.join("\n"), CHARACTERS);
    let (lines, hidden) = (text.lines().count(), text.lines().count().saturating_sub(shown.lines().count()));
    let language = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end);
    let fence = if text.contains("```") { "~~~~~~" } else { "```" };
    let count = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    let more = if hidden > 0 { format!("\n\n… {hidden} more lines") } else { String::new() };
    let others = FileTool::searcher(situation.tools).map(|tool| same_name(tool, asked, situation).len());
    let others = match others.unwrap_or_default() {
        0 | 1 => String::new(),
        found => format!("\n\n{} more files have that name.", found - 1),
    };
    format!("`{path}` has {count}:\n\n{fence}{language}\n{shown}\n{fence}{more}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: &str, expected: FileRequest) {
        assert_eq!(FileRequest::of(asked), Some(expected), "{asked}");
    }

    #[track_caller]
    fn check_none(asked: &str) {
        assert_eq!(FileRequest::of(asked), None, "{asked}");
    }

    fn read(path: &str) -> FileRequest {
        FileRequest::Read(path.to_owned())
    }

    fn list(path: &str) -> FileRequest {
        FileRequest::List(path.to_owned())
    }

    fn search(text: &str) -> FileRequest {
        FileRequest::Search(text.to_owned())
    }

    #[test]
    fn named_file_is_read() {
        check("What is in main.rs?", read("main.rs"));
        check("Please explain `src/tax.rs`.", read("src/tax.rs"));
        check("Show me @docs/menu.md", read("docs/menu.md"));
        check("Read .gitignore, please", read(".gitignore"));
        check("What does the Makefile do?", read("Makefile"));
        check_none("What is 1.5 times 3.0, e.g. in euros?");
        check_none("Write to ada@example.com about it");
    }

    #[test]
    fn folder_is_listed() {
        check("What is here?", list("."));
        check("List files", list("."));
        check("what's in this folder", list("."));
        check("List the files in the src folder.", list("src"));
        check("What is in src/?", list("src/"));
        check("ls crates/core", list("crates/core"));
        check_none("What can you do?");
    }

    #[test]
    fn quoted_or_named_text_is_searched() {
        check("Where is \"fn main\" defined?", search("fn main"));
        check("Which files mention `tax rate`?", search("tax rate"));
        check("Search for the word berth in the project", search("berth"));
        check("Look for it in note.txt", search("it"));
        check_none("Say \"hello\"");
    }

    #[test]
    fn request_to_change_or_run_something_is_none() {
        for asked in
            ["Edit main.rs", "Please delete src/tax.rs", "run sh x.sh", "call read {\"path\":\"a.rs\"}"]
        {
            check_none(asked);
        }
    }
}
