//! Kind `local-command`: real programs, each in a separate directory.
//!
//! Programs have the whole environment.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::adapters::execution::{ExecutionAdapter as _, ExecutionCx, ExecutionRequest};
use harness::adapters::local::{
    AgentBackend, Exit, Invocation, LocalAgent, LocalCommandAdapter, LocalProgram, OutputFormat,
};
use harness::host::process::{Environment, ProgramSpec};
use harness_core::Cancel;
use serde_json::json;

use super::clock::Steps;
use super::recorder::Recorder;
use super::vectors;
use super::words::{CommandSpec, CommandVector, Fake, Parser, Preset};
use crate::Done;
use crate::case::block_on;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

fn check(CommandVector { preset, spec, input, expected, .. }: CommandVector) -> Done<()> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let recorder = Recorder::new(folder.path())?;
    let adapter = match (preset, spec.fake) {
        (Preset::None, None) => command(spec, folder.path())?,
        (Preset::ClaudeCode, Some(Fake::PrintsItsArguments)) => claude(recorder.leading()),
        (Preset::ClaudeCode, Some(Fake::PrintsAndExits)) => {
            claude([printing(&spec, folder.path())?.display().to_string()])
        }
        (Preset::None, Some(_)) | (Preset::ClaudeCode, None) => {
            return Err("a preset has a stand-in, and nothing else has one".to_owned());
        }
    };
    let result = block_on(adapter.execute(input.0, ExecutionCx::new(&(), &Cancel::never())))?;
    match (expected.argv, expected.result) {
        (Some(argv), None) => {
            same("argv", &argv, &json!(recorder.arguments()?))?;
            let stdin = recorder.stdin()?;
            same("stdin", &expected.stdin, stdin.get("text").unwrap_or_default())
        }
        (None, Some(want)) => {
            let mut got = serde_json::to_value(&result).map_err(|e| e.to_string())?;
            vectors::settle_free_texts(&want, &mut got);
            same("result", &want, &got)
        }
        (Some(_), Some(_)) | (None, None) => Err("either arguments are expected, or a result".to_owned()),
    }
}

/// The vector's own program.
fn command(spec: CommandSpec, folder: &Path) -> Done<LocalCommandAdapter> {
    vectors::write(folder, spec.files.as_ref())?;
    let command = spec.command.as_deref().unwrap_or("sh");
    let mut program = LocalProgram::new(ProgramSpec::new(command).cwd(folder));
    program.limits.time = spec.timeout_ms.map_or(program.limits.time, Duration::from_millis);
    program.spec.passed = Environment::of_process();
    program.spec.env = spec.env.into_iter().collect();
    let templates = spec.args;
    let build = move |request: &ExecutionRequest| {
        let tools: Vec<_> = request.tools().iter().map(|tool| tool.name.as_str()).collect();
        let fill = |template: &String| {
            template
                .replace("{system}", &request.instructions.system_prompt)
                .replace("{tools}", &tools.join(","))
                .replace("{message}", &request.message.text)
        };
        Ok(Invocation::new(templates.iter().map(fill)))
    };
    let format = match spec.parser.ok_or("a program has a parser")? {
        Parser::PlainText => OutputFormat::plain_text(),
        Parser::JsonObject => OutputFormat::json_object(),
    };
    let capabilities = spec.capabilities.ok_or("a program has capabilities")?.0;
    let clock = Arc::new(Steps::default());
    let mut adapter = LocalCommandAdapter::new(spec.backend_id, program, build, format, capabilities, clock);
    if let Some(label) = spec.command_label {
        adapter = adapter.label(label);
    }
    let hopeless = spec.non_retryable_exit_codes;
    Ok(adapter
        .retryable_exit(move |exit: Exit| exit.code.is_none_or(|code| !hopeless.contains(&i64::from(code)))))
}

/// Claude Code's backend with a stand-in for the program, which a shell runs.
fn claude<const N: usize>(leading: [String; N]) -> LocalCommandAdapter {
    let surroundings = Environment::of_process();
    let mut backend = AgentBackend::new(LocalAgent::ClaudeCode, &surroundings, Arc::new(Steps::default()));
    backend.program.spec.path = "sh".into();
    backend.program.spec = backend.program.spec.args(leading);
    backend.adapter()
}

/// A script that prints what the vector says.
fn printing(spec: &CommandSpec, folder: &Path) -> Done<std::path::PathBuf> {
    let script = folder.join("claude.sh");
    let text = format!("cat \"$(dirname \"$0\")/stdout\"; exit {}", spec.exit_code);
    std::fs::write(folder.join("stdout"), &spec.stdout).map_err(|e| e.to_string())?;
    std::fs::write(&script, text).map_err(|e| e.to_string())?;
    Ok(script)
}
