//! Kind `cli-runner`: what the runners of workers are given, and what they make of it.
//!
//! Programs have the whole environment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::adapters::local::{LocalAgent, LocalRunner};
use harness::adapters::{CliInput, CliOutcome, CliRunner as _};
use harness::host::process::Environment;
use serde_json::{Value, json};

use super::recorder::Recorder;
use super::vectors;
use super::words::{CliMode, CliVector, CliWords};
use crate::Done;
use crate::case::block_on;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

fn check(vector: CliVector) -> Done<()> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    vectors::write(folder.path(), vector.files.as_ref())?;
    let name = &vector.runner;
    let agent = LocalAgent::parse(name).ok_or_else(|| format!("unknown runner `{name}`"))?;
    let mut runner = LocalRunner::new(agent, &Environment::default());
    runner.program.spec.passed = Environment::of_process();
    if let Some(command) = vector.config.command {
        runner.program.spec.path = command.into();
    }
    if let Some(script) = vector.config.script {
        runner = runner.script(script);
    }
    let expected = vector.expected;
    let mut got = match (vector.mode, &expected.spawn) {
        (CliMode::Argv, Some(spawn)) => {
            let recorder = Recorder::new(folder.path())?;
            let command = runner.program.spec.name().into_owned();
            let wanted = vector.input.cwd.clone();
            let cwd = wanted.as_ref().map(|cwd| folder.path().join(cwd.trim_start_matches('/')));
            cwd.as_ref().map_or(Ok(()), std::fs::create_dir_all).map_err(|e| e.to_string())?;
            runner.program.spec = runner.program.spec.args(recorder.leading());
            runner.program.spec.path = "sh".into();
            let outcome = block_on(runner.run(input(vector.input, cwd)?))?;
            let started = json!({
                "command": command,
                "args": recorder.arguments()?,
                "stdio": recorder.streams()?,
                "cwd": started_in(&recorder, folder.path())?,
                "envInherited": recorder.inherits()?,
            });
            same("spawn", spawn, &started)?;
            same("stdin", &expected.stdin, &recorder.stdin()?)?;
            told(outcome)
        }
        (CliMode::Process, None) => {
            let run = input(vector.input, Some(folder.path().to_owned()))?;
            told(block_on(runner.run(run))?)
        }
        (CliMode::Argv, None) | (CliMode::Process, Some(_)) => {
            return Err("what is spawned is compared in mode `argv`".to_owned());
        }
    };
    vectors::settle_free_texts(&expected.result, &mut got);
    same("result", &expected.result, &got)
}

fn input(words: CliWords, cwd: Option<PathBuf>) -> Done<CliInput> {
    let prompt = match (words.prompt, words.prompt_repeat) {
        (Some(prompt), None) => prompt,
        (None, Some(repeat)) => repeat.text.repeat(repeat.times),
        (Some(_), Some(_)) | (None, None) => return Err("an input has one prompt".to_owned()),
    };
    let mut made = CliInput::new(prompt, Duration::from_millis(words.timeout_ms));
    (made.model, made.cwd) = (words.model, cwd);
    Ok(made)
}

/// Working directory of the program, relative to the directory of the case; null for that of this process.
fn started_in(recorder: &Recorder, folder: &Path) -> Done<Value> {
    let canonical = |path: &Path| path.canonicalize().map_err(|e| e.to_string());
    let (cwd, folder) = (canonical(&recorder.cwd()?)?, canonical(folder)?);
    if let Ok(below) = cwd.strip_prefix(folder) {
        return Ok(json!(Path::new("/").join(below)));
    }
    let is_ours = std::env::current_dir().is_ok_and(|own| own == cwd);
    Ok(if is_ours { Value::Null } else { json!(cwd) })
}

fn told(outcome: CliOutcome) -> Value {
    match outcome {
        CliOutcome::Completed { text, metadata: None } => json!({ "status": "completed", "text": text }),
        CliOutcome::Failed { error, stderr, exit_code } => vectors::present([
            ("status", Some(json!("failed"))),
            ("error", Some(json!(error))),
            ("stderr", stderr.map(Value::from)),
            ("exitCode", exit_code.map(Value::from)),
        ]),
        unknown @ (CliOutcome::Completed { .. } | _) => json!({ "status": format!("{unknown:?}") }),
    }
}
