//! Kind `cli-runner`: what the runners of workers are given, and what they make of it.
//!
//! Programs have the whole environment.

use std::time::Duration;

use harness::adapters::local::{LocalAgent, LocalRunner};
use harness::adapters::{CliInput, CliOutcome, CliRunner as _};
use harness::host::process::Environment;
use serde_json::{Value, json};

use super::vectors;
use crate::turn::compare::same;
use crate::turn::convert::{Done, at, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, check)
}

fn check(vector: &Value) -> Done<()> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    for (name, content) in at(vector, "files").as_object().into_iter().flatten() {
        let path = folder.path().join(name);
        std::fs::write(path, content.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
    }
    let name = text(vector, "runner");
    let agent = LocalAgent::parse(name).ok_or_else(|| format!("`{name}` is no runner"))?;
    let config = at(vector, "config");
    let mut runner = LocalRunner::new(agent, &Environment::default())
        .with_program(|program| program.pass_all(&Environment::of_process()));
    if let Some(command) = config.get("command").and_then(Value::as_str) {
        runner = runner.command(command);
    }
    if let Some(script) = config.get("script").and_then(Value::as_str) {
        runner = runner.script(script);
    }
    let (input, expected) = (input(at(vector, "input")), at(vector, "expected"));
    if let Some(spawn) = expected.get("spawn") {
        same("spawn", spawn, &spawned(&runner, &input))?;
        let stdin = runner.invocation(&input).stdin.map(|text| json!({ "text": text, "closed": true }));
        same("stdin", at(expected, "stdin"), &stdin.unwrap_or_default())?;
        // Whatever it is given, the stand-in prints the same.
        runner = runner.with_program(|program| {
            let mut program = program.leading(["-c", "cat >/dev/null; echo done"]);
            program.program = "sh".into();
            program
        });
    }
    let mut run = input;
    run.cwd = Some(folder.path().to_owned());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let mut got = outcome(runtime.block_on(runner.run(run)));
    let want = at(expected, "result");
    vectors::settle_free_texts(want, &mut got);
    same("result", want, &got)
}

fn input(input: &Value) -> CliInput {
    let repeat = at(input, "promptRepeat");
    let times = ["times", "count"].iter().find_map(|key| repeat.get(key)).unwrap_or(repeat).as_u64();
    let unit = ["unit", "text"].iter().find_map(|key| repeat.get(key)?.as_str()).unwrap_or("x");
    let prompt = match times {
        Some(times) => unit.repeat(usize::try_from(times).unwrap_or(0)),
        None => text(input, "prompt").to_owned(),
    };
    let limit = at(input, "timeoutMs").as_u64().unwrap_or(10_000);
    let mut made = CliInput::new(prompt, Duration::from_millis(limit));
    made.model = input.get("model").and_then(Value::as_str).map(str::to_owned);
    made.cwd = input.get("cwd").and_then(Value::as_str).map(Into::into);
    made
}

fn spawned(runner: &LocalRunner, input: &CliInput) -> Value {
    let invocation = runner.invocation(input);
    let program = runner.program();
    let args: Vec<_> = invocation.args.iter().map(|arg| arg.to_string_lossy()).collect();
    let stdin = if invocation.stdin.is_some() { "pipe" } else { "ignore" };
    let inherited = Environment::of_process();
    json!({
        "command": program.program.to_string_lossy(),
        "args": args,
        "stdio": [stdin, "pipe", "pipe"],
        "cwd": input.cwd,
        "envInherited": program.env.iter().eq(inherited.iter()),
    })
}

fn outcome(outcome: CliOutcome) -> Value {
    if let CliOutcome::Completed { text, metadata: None } = outcome {
        json!({ "status": "completed", "text": text })
    } else if let CliOutcome::Failed { error, stderr, exit_code } = outcome {
        let more = [("stderr", stderr.map(Value::from)), ("exitCode", exit_code.map(Value::from))];
        let told = [("status", json!("failed")), ("error", json!(error))];
        let more = more.into_iter().filter_map(|(key, value)| Some((key, value?)));
        told.into_iter().chain(more).map(|(key, value)| (key.to_owned(), value)).collect()
    } else {
        json!({ "unexpected": format!("{outcome:?}") })
    }
}
