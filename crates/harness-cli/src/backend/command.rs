//! Backend files, which describe a program.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::adapters::execution::{ExecutionCapabilities, ExecutionRequest, ToolUse};
use harness::adapters::local::{Invocation, LocalCommandAdapter, LocalProgram, OutputFormat};
use harness::core::Millis;
use harness::core::port::Clock;
use harness::diagnostics::document::Kind;
use harness::diagnostics::{self, Diagnostic, Fields, Findings, Item, YamlLimits};
use harness::host::process::ProgramSpec;

use super::template::{Filling, Template};
use crate::args::time;
use crate::env;
use crate::error::CliError;

/// Maximum size of a file in bytes.
const LONGEST: u64 = 1 << 20;

/// Newest version of the format.
const VERSION: u64 = 1;

/// Code of an error in the file.
const INVALID: &str = "cli.backend_file";

const KEYS: [&str; 10] =
    ["version", "backend", "command", "args", "stdin", "env", "set", "cwd", "timeout", "output"];

/// Default time limit of a turn.
const TURN: Duration = Duration::from_mins(10);

/// A program as a backend.
#[derive(Debug, Default)]
pub(super) struct CommandFile {
    id: String,
    program: PathBuf,
    args: Vec<Vec<Template>>,
    stdin: Option<Template>,
    pass: Vec<String>,
    set: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    timeout: Duration,
    output: Output,
}

#[derive(Clone, Copy, Debug, Default)]
enum Output {
    /// The answer as plain text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

impl CommandFile {
    /// Reads a file. Relative paths start at its directory.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let fault = |problem: String| CliError::BackendFile { file: path.to_owned(), problem };
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        read.map_err(|source| fault(format!("cannot read the file: {source}")))?;
        if text.len() as u64 > LONGEST {
            return Err(fault(format!("larger than {LONGEST} bytes")));
        }
        Self::parse(&text, path).map_err(CliError::Invalid)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Box<Diagnostic>> {
        let label = path.display().to_string();
        let document = diagnostics::read(text, label, &YamlLimits::for_text(LONGEST), None)
            .map_err(|error| Box::new(error.into()))?;
        let findings = Findings::new(&document, INVALID);
        let folder = path.parent().unwrap_or(Path::new(""));
        let fields = Fields::root(&findings, "the backend file");
        let file = fields.map(|fields| Self::of(&fields.with_nulls_absent(), folder));
        findings.finish(file.unwrap_or_default())
    }

    fn of(fields: &Fields<'_>, folder: &Path) -> Self {
        fields.known(&KEYS);
        match fields.item("version") {
            None => fields.missing("version", &format!("write `version: {VERSION}`")),
            Some(version) => {
                if let Some(found) = version.whole(0, u64::MAX).filter(|found| *found != VERSION) {
                    version.error(format!("unsupported version {found}, expected {VERSION}"), "");
                }
            }
        }
        let stdin = match fields.item("stdin") {
            Some(stdin) if stdin.text().is_some_and(|text| text.is_empty()) => None,
            Some(stdin) => template(&stdin),
            None => Template::parse("{prompt}").ok(),
        };
        let args = fields.item("args").map(|args| args.items("a list", "write it as a list: `[a, b]`"));
        Self {
            id: fields.text("backend").unwrap_or_else(|| "command".to_owned()),
            program: program(&fields.required("command", "set it to the program"), folder),
            args: args.unwrap_or_default().iter().map(arg).collect(),
            stdin,
            pass: fields.texts("env"),
            set: fields.pairs("set").into_iter().collect(),
            cwd: fields.text("cwd").map(|cwd| folder.join(cwd)),
            timeout: fields.item("timeout").and_then(|item| timeout(&item)).unwrap_or(TURN),
            output: fields
                .one_of("output", &[("text", Output::Text), ("json", Output::Json)])
                .unwrap_or_default(),
        }
    }

    /// The program as an adapter.
    pub(super) fn adapter(
        self,
        model: Option<&str>,
        timeout: Option<Duration>,
        clock: Arc<dyn Clock>,
    ) -> LocalCommandAdapter {
        let names = self.pass.iter().map(String::as_str);
        let mut spec = ProgramSpec::new(self.program).pass(&env::surroundings(), names);
        (spec.cwd, spec.env) = (self.cwd, self.set.into_iter().collect());
        let mut program = LocalProgram::new(spec);
        program.limits.time = timeout.unwrap_or(self.timeout);
        let format = match self.output {
            Output::Text => OutputFormat::plain_text(),
            Output::Json => OutputFormat::json_object(),
        };
        let mut capabilities = ExecutionCapabilities::none();
        if self.args.iter().flatten().chain(&self.stdin).any(|template| template.names("tools")) {
            capabilities.tool_use = ToolUse::NativeIterative;
        }
        let (model, args, stdin) = (model.unwrap_or_default().to_owned(), self.args, self.stdin);
        let build = move |request: &ExecutionRequest| {
            let filling = Filling::of(request, &model);
            // Arguments that belong together are left out together.
            let given = args.iter().filter(|group| {
                group.len() < 2 || !group.iter().any(|template| template.lacks_something(&filling))
            });
            let invocation = Invocation::new(given.flatten().map(|template| template.filled(&filling)));
            Ok(match &stdin {
                Some(stdin) => invocation.stdin(stdin.filled(&filling)),
                None => invocation,
            })
        };
        let label = self.id.clone();
        LocalCommandAdapter::new(self.id, program, build, format, capabilities, clock)
            .label(label)
            // An exit says nothing about what the program did before it.
            .retryable_exit(|_| false)
    }
}

fn template(item: &Item<'_>) -> Option<Template> {
    let parsed = Template::parse(&item.text()?);
    parsed.map_err(|problem| item.error(problem, "")).ok()
}

fn timeout(item: &Item<'_>) -> Option<Duration> {
    let text = item.text()?;
    let span = time(&text).map_err(|problem| format!("invalid duration `{text}`: {problem}"));
    span.map(Millis::duration).map_err(|problem| item.error(problem, "")).ok()
}

/// An argument, or a group of arguments.
fn arg(item: &Item<'_>) -> Vec<Template> {
    match item.kind() {
        Kind::Text(_) => template(item).into_iter().collect(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Instant(_) | Kind::List(_) | Kind::Map(_) => {
            let texts = item.items("a string or a list of strings", "put it in quotes");
            texts.iter().filter_map(template).collect()
        }
    }
}

/// A name is looked up in `PATH`; a relative path starts at the file's directory.
fn program(command: &str, folder: &Path) -> PathBuf {
    if !command.contains('/') {
        return PathBuf::from(command);
    }
    let path = folder.join(command);
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = CommandFile::parse(text, Path::new("b.yaml")).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn invalid_file_is_reported_with_place() {
        refused("command: a", "b.yaml:1:1: missing `version` in the backend file; write `version: 1`");
        refused("version: 2\ncommand: a", "b.yaml:1:10: version: unsupported version 2, expected 1");
        refused(
            "version: 1\ncommand: ' '",
            "b.yaml:2:10: command: the string is empty; set it to the program",
        );
        refused(
            "version: 1\ncommand: a\ncomand: b",
            "b.yaml:3:1: unknown key `comand` in the backend file; did you mean `command`?",
        );
        refused(
            "version: 1\ncommand: a\nargs: [1]",
            "b.yaml:3:8: args[0] must be a string or a list of strings, not `1`; put it in quotes",
        );
        refused(
            "version: 1\ncommand: a\nargs: ['{x}']",
            "b.yaml:3:8: args[0]: `{x}` has an unknown placeholder {x}; expected {prompt}, {message}, {system}, {model}, {tools}",
        );
        refused(
            "version: 1\ncommand: a\nstdin: '{'",
            "b.yaml:3:8: stdin: `{` has a single brace; write {{ or }} for a literal brace",
        );
        refused(
            "version: 1\ncommand: a\ntimeout: soon",
            "b.yaml:3:10: timeout: invalid duration `soon`: expected a number and a unit, for example 500ms, 90s, 5m or 1h",
        );
        refused(
            "version: 1\ncommand: a\noutput: xml",
            "b.yaml:3:9: output must be `text` or `json`, not `xml`",
        );
    }

    #[test]
    fn a_path_is_one_from_the_files_folder_and_a_name_is_one_of_path() {
        assert_eq!(program("./a.sh", Path::new("/x/y")), PathBuf::from("/x/y/a.sh"));
        assert_eq!(program("reviewer", Path::new("/x/y")), PathBuf::from("reviewer"));
    }
}
