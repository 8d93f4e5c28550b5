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
use harness::descriptor::Value;
use harness::diagnostics::typed::from_document;
use harness::diagnostics::{self, Diagnostic, Document, Severity, YamlLimits};
use harness::host::process::ProgramSpec;
use serde::Deserialize;

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

/// Default time limit of a turn.
const TURN: Duration = Duration::from_mins(10);

/// A program as a backend.
#[derive(Debug)]
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

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Output {
    /// The answer as plain text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u64,
    #[serde(default)]
    backend: Option<String>,
    command: String,
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    stdin: Option<String>,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    output: Output,
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
        let written: Written = from_document(&document, INVALID)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of(written, folder).map_err(|(key, problem)| invalid(&document, key, &problem))
    }

    /// The backend as written; an error has its key.
    fn of(written: Written, folder: &Path) -> Result<Self, (&'static str, String)> {
        if written.version != VERSION {
            let version = written.version;
            return Err(("version", format!("unsupported version {version}, expected {VERSION}")));
        }
        if written.command.trim().is_empty() {
            return Err(("command", "the string is empty".to_owned()));
        }
        let template =
            |key: &'static str, text: &str| Template::parse(text).map_err(|problem| (key, problem));
        let args = written.args.iter().map(|arg| {
            let texts = arg_texts(arg).map_err(|problem| ("args", problem))?;
            texts.into_iter().map(|text| template("args", text)).collect::<Result<_, _>>()
        });
        let timeout = written.timeout.as_deref().map(|text| {
            time(text).map_err(|problem| ("timeout", format!("invalid duration `{text}`: {problem}")))
        });
        Ok(Self {
            id: written.backend.unwrap_or_else(|| "command".to_owned()),
            program: program(&written.command, folder),
            args: args.collect::<Result<_, _>>()?,
            stdin: match written.stdin.as_deref() {
                Some("") => None,
                Some(text) => Some(template("stdin", text)?),
                None => Some(template("stdin", "{prompt}")?),
            },
            pass: written.env,
            set: written.set,
            cwd: written.cwd.map(|cwd| folder.join(cwd)),
            timeout: timeout.transpose()?.map_or(TURN, Millis::duration),
            output: written.output,
        })
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

fn invalid(document: &Document, key: &str, problem: &str) -> Box<Diagnostic> {
    let message = format!("{key}: {problem}");
    Box::new(Diagnostic::new(Severity::Error, INVALID, message).at(document.place_at(&[key])))
}

/// An argument, or a group of arguments.
fn arg_texts(arg: &Value) -> Result<Vec<&str>, String> {
    let wrong = || format!("`{}` is not a string or a list of strings; quote it", one_line(arg));
    if let Some(text) = arg.as_str() {
        return Ok(vec![text]);
    }
    let Value::List(texts) = arg else { return Err(wrong()) };
    texts.iter().map(|text| text.as_str().ok_or_else(wrong)).collect()
}

fn one_line(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
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
        refused("command: a", "b.yaml:1:1: missing `version`");
        refused("version: 2\ncommand: a", "b.yaml:1:10: version: unsupported version 2, expected 1");
        refused("version: 1\ncommand: ' '", "b.yaml:2:10: command: the string is empty");
        refused(
            "version: 1\ncommand: a\ncomand: b",
            "b.yaml:3:1: unknown key `comand`; did you mean `command`?",
        );
        refused(
            "version: 1\ncommand: a\nargs: [1]",
            "b.yaml:3:7: args: `1` is not a string or a list of strings; quote it",
        );
        refused(
            "version: 1\ncommand: a\nargs: ['{x}']",
            "b.yaml:3:7: args: `{x}` has an unknown placeholder {x}; expected {prompt}, {message}, {system}, {model}, {tools}",
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
            "b.yaml:3:9: output: expected `text` or `json`, not `xml`",
        );
    }

    #[test]
    fn a_path_is_one_from_the_files_folder_and_a_name_is_one_of_path() {
        assert_eq!(program("./a.sh", Path::new("/x/y")), PathBuf::from("/x/y/a.sh"));
        assert_eq!(program("reviewer", Path::new("/x/y")), PathBuf::from("reviewer"));
    }
}
