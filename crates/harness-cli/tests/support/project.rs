//! A descriptor with tools in a temporary folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{Output, Running, harness};

/// A folder with `harness.yaml`, `registry.yaml` and what a test adds.
pub(crate) struct Project {
    folder: TempDir,
}

/// One agent with the tools `look` (pure) and `pay` (unsafe), and one that it can hand over to.
const DESCRIPTOR: &str = "\
runtime: { entry_agent: desk }
tools:
  look: { target: look }
  pay: { target: pay }
agent_defaults: { model: scripted }
agents:
  desk:
    instructions: You are the desk.
    tools: [look, pay]
    handoffs: [expert]
  expert:
    handoffDescription: Knows everything.
    instructions: You are the expert.
    tools: [look]
";

impl Project {
    /// A project whose tools are these scripts; each runs in the project's folder.
    pub(crate) fn new(look: &str, pay: &str) -> Self {
        let registry = registry("");
        let files = [("look.sh", look), ("pay.sh", pay), ("registry.yaml", registry.as_str())];
        let project = Self::of(&files);
        project.write("harness.yaml", DESCRIPTOR);
        project
    }

    /// A project of these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: TempDir::new().unwrap() };
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    /// A project whose tools answer at once.
    pub(crate) fn plain() -> Self {
        Self::new("echo '{\"seen\":1}'", "echo '{\"paid\":1}'")
    }

    /// The same project with further settings of the tool `pay`.
    pub(crate) fn with_pay(self, settings: &str) -> Self {
        self.write("registry.yaml", &registry(settings));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn set_executable(&self, name: &str) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.path().join(name), mode).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Makes a named pipe.
    pub(crate) fn pipe(&self, name: &str) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, self.path().join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// A start of the program in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        harness(self.path(), arguments)
    }

    /// Runs the program to its end.
    pub(crate) fn harness(&self, arguments: &[&str]) -> Output {
        Running::start(self.command(arguments)).end()
    }

    /// `harness run harness.yaml` with a message, against an endpoint.
    pub(crate) fn ask(&self, url: &str, more: &[&str]) -> Output {
        self.harness(&[&["run", "harness.yaml", "hello", "--base-url", url], more].concat())
    }

    /// A run as one text: exit code, standard output, standard error; what differs between two runs is
    /// replaced.
    pub(crate) fn told(&self, output: &Output) -> String {
        let text = format!("exit {}\n{}---\n{}", output.code.unwrap_or(-1), output.stdout, output.stderr);
        let folder = fs::canonicalize(self.path()).unwrap();
        let text = text.replace(&*folder.to_string_lossy(), "[DIR]");
        normal(&text.replace(&*self.path().to_string_lossy(), "[DIR]"))
    }

    /// The lines of a session file.
    pub(crate) fn session(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn registry(pay: &str) -> String {
    format!(
        "\
version: 1
tools:
  look:
    description: Looks at something.
    command: sh
    args: [look.sh]
    class: pure
  pay:
    description: Pays something.
    command: sh
    args: [pay.sh]
    class: unsafe
{pay}"
    )
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Durations, ports, process ids, hosts and times as placeholders.
pub(crate) fn normal(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = replace_numbers(line, "127.0.0.1:", "", "[PORT]");
        for unit in [" ms", " s"] {
            line = replace_before(&line, unit);
        }
        let line = replace_numbers(&line, "process ", "", "[PID]");
        let line = replace_until(&line, "of host `", '`', "[HOST]");
        out.push_str(&replace_until(&line, "since 20", '\n', "[..]"));
    }
    out
}

/// Replaces what stands between `before` and the next `after`.
fn replace_until(text: &str, before: &str, after: char, with: &str) -> String {
    let Some((head, tail)) = text.split_once(before) else { return text.to_owned() };
    let rest = tail.find(after).and_then(|at| tail.get(at..)).unwrap_or_default();
    format!("{head}{before}{with}{rest}")
}

/// Replaces the digits after `before`.
fn replace_numbers(text: &str, before: &str, after: &str, with: &str) -> String {
    let Some((head, tail)) = text.split_once(before) else { return text.to_owned() };
    let rest = tail.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == tail.len() || !rest.starts_with(after) {
        return format!("{head}{before}{}", replace_numbers(tail, before, after, with));
    }
    format!("{head}{before}{with}{}", replace_numbers(rest, before, after, with))
}

/// Replaces a number that stands before a unit of time.
fn replace_before(text: &str, unit: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(unit) {
        let (head, tail) = rest.split_at(at);
        let number = head.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let tail = tail.strip_prefix(unit).unwrap_or(tail);
        let is_time = number.len() < head.len() && !tail.starts_with(|c: char| c.is_alphanumeric());
        out.push_str(number);
        out.push_str(if is_time { "[TIME]" } else { head.get(number.len()..).unwrap_or("") });
        if !is_time {
            out.push_str(unit);
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
