//! Kind `local-command`: programs run for real in a folder of their own.
//!
//! Programs have the whole environment.

use std::path::Path;
use std::sync::Arc;

use harness::adapters::execution::{ExecutionAdapter as _, ExecutionCx, ExecutionRequest};
use harness::adapters::local::{
    AgentBackend, Exit, Invocation, LocalAgent, LocalCommandAdapter, LocalProgram, OutputFormat,
};
use harness::host::process::Environment;
use harness_core::Cancel;
use serde_json::{Value, json};

use super::clock::Steps;
use super::vectors;
use crate::turn::compare::same;
use crate::turn::convert::{Done, at, json, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, check)
}

fn check(vector: &Value) -> Done<()> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let request: ExecutionRequest = json(at(vector, "input"))?.to().map_err(|e| e.to_string())?;
    let spec = at(vector, "spec");
    let adapter = match text(vector, "preset") {
        "claude-code" => claude(spec, folder.path())?,
        _ => command(spec, folder.path())?,
    };
    let expected = at(vector, "expected");
    if let Some(argv) = expected.get("argv") {
        let given = adapter.invocation(&request).map_err(|e| e.message)?;
        let args: Vec<_> = given.args.iter().map(|arg| arg.to_string_lossy()).collect();
        same("argv", argv, &json!(args))?;
        return same("stdin", at(expected, "stdin"), &json!(given.stdin));
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let result = runtime.block_on(adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())));
    let mut got = serde_json::to_value(&result).map_err(|e| e.to_string())?;
    let want = at(expected, "result");
    vectors::settle_free_texts(want, &mut got);
    same("result", want, &got)
}

/// The vector's own program.
fn command(spec: &Value, folder: &Path) -> Done<LocalCommandAdapter> {
    for (name, content) in at(spec, "files").as_object().into_iter().flatten() {
        std::fs::write(folder.join(name), content.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
    }
    let mut program = program(spec, at(spec, "command").as_str().unwrap_or("sh")).cwd(folder);
    for (name, value) in at(spec, "env").as_object().into_iter().flatten() {
        program = program.env(name, value.as_str().unwrap_or_default());
    }
    let templates: Vec<String> =
        list(spec, "args").iter().filter_map(Value::as_str).map(str::to_owned).collect();
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
    let format = match text(spec, "parser") {
        "plain-text" => OutputFormat::plain_text(),
        _ => OutputFormat::json_object(),
    };
    let capabilities = json(at(spec, "capabilities"))?.to().map_err(|e| e.to_string())?;
    let clock = Arc::new(Steps::default());
    let mut adapter =
        LocalCommandAdapter::new(text(spec, "backendId"), program, build, format, capabilities, clock);
    if let Some(label) = spec.get("commandLabel").and_then(Value::as_str) {
        adapter = adapter.label(label);
    }
    let hopeless: Vec<i64> = list(spec, "nonRetryableExitCodes").iter().filter_map(Value::as_i64).collect();
    Ok(adapter
        .retryable_exit(move |exit: Exit| exit.code.is_none_or(|code| !hopeless.contains(&i64::from(code)))))
}

/// Claude Code's backend with a stand-in for the program, which prints what the vector says.
fn claude(spec: &Value, folder: &Path) -> Done<LocalCommandAdapter> {
    std::fs::write(folder.join("stdout"), text(spec, "stdout")).map_err(|e| e.to_string())?;
    let code = at(spec, "exitCode").as_i64().unwrap_or(0);
    let script = format!("cat \"$(dirname \"$0\")/stdout\"; exit {code}");
    std::fs::write(folder.join("claude.sh"), script).map_err(|e| e.to_string())?;
    let surroundings = Environment::of_process();
    let backend = AgentBackend::new(LocalAgent::ClaudeCode, &surroundings, Arc::new(Steps::default()));
    let script = folder.join("claude.sh");
    Ok(backend.command("sh").with_program(|program| program.leading([script])).adapter())
}

fn program(spec: &Value, command: &str) -> LocalProgram {
    let program = LocalProgram::new(command).pass_all(&Environment::of_process());
    match at(spec, "timeoutMs").as_u64() {
        Some(limit) => program.timeout(std::time::Duration::from_millis(limit)),
        None => program,
    }
}
