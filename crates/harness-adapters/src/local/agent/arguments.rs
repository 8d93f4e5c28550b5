//! Invocations of the agents.
//!
//! The prompt is passed on stdin, so it can be long, is not in the process list, and is never an
//! option. Values are in one argument with the name of their option, so that none is parsed as an
//! option either.

use std::ffi::OsString;

use super::LocalAgent;
use super::backend::{Permission, Settings};
use super::session::Session;
use crate::execution::{ExecutionError, ExecutionRequest, trimmed, user_text};
use crate::local::program::Invocation;

/// The longest system prompt that is passed as an argument, in bytes; a longer one goes before the prompt. One
/// argument may have 128 KiB on Linux.
const MOST_ARGUMENT: usize = 96 * 1024;

/// The tools of Claude Code. They are named one by one, because it refuses to skip its permissions for root,
/// whom most containers run as.
const CLAUDE_TOOLS: &str =
    "Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,Task,TodoWrite,WebFetch,WebSearch,Write";

/// The arguments and the stdin of one request.
pub(super) fn invocation(
    agent: LocalAgent,
    settings: &Settings,
    request: &ExecutionRequest,
) -> Result<Invocation, ExecutionError> {
    let session = Session::of(request, agent)?;
    let session = session.as_ref().map(|session| session.id.as_str());
    let system = request.instructions.system_prompt.as_str();
    let system_argument =
        agent == LocalAgent::ClaudeCode && !system.is_empty() && system.len() <= MOST_ARGUMENT;
    let mut args = match agent {
        LocalAgent::ClaudeCode => claude(settings, request, session, system_argument.then_some(system)),
        LocalAgent::Codex => codex(settings, session),
        LocalAgent::OpenCode => opencode(settings, session),
        LocalAgent::Gemini => gemini(settings, session),
        LocalAgent::Bash => vec!["-c".to_owned(), settings.script.clone()],
    };
    if agent == LocalAgent::Codex {
        args.extend(session.map(str::to_owned));
        // The prompt comes over stdin.
        args.push("-".to_owned());
    }
    let text = user_text(request);
    let prompt = if system_argument || agent == LocalAgent::Bash || trimmed(system).is_empty() {
        text
    } else {
        format!("Instructions:\n{system}\n\n{text}")
    };
    Ok(Invocation::new(args.into_iter().map(OsString::from)).stdin(prompt))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn claude(
    settings: &Settings,
    request: &ExecutionRequest,
    session: Option<&str>,
    system: Option<&str>,
) -> Vec<String> {
    let mut args = words(["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    args.extend(settings.model.as_ref().map(|model| format!("--model={model}")));
    args.extend(system.map(|system| format!("--append-system-prompt={system}")));
    let everything = (settings.permission == Permission::Everything).then(|| CLAUDE_TOOLS.to_owned());
    let named = Some(tool_names(request)).filter(|names| !names.is_empty());
    let allowed: Vec<_> = everything.into_iter().chain(named).collect();
    if !allowed.is_empty() {
        args.push(format!("--allowedTools={}", allowed.join(",")));
    }
    if settings.permission != Permission::ReadOnly {
        args.push("--permission-mode=acceptEdits".to_owned());
    }
    args.extend(session.map(|id| format!("--resume={id}")));
    args.extend(settings.args.iter().cloned());
    args
}

/// The names of the request's tools as Claude Code takes them.
fn tool_names(request: &ExecutionRequest) -> String {
    let names = request.tools().iter().map(|tool| trimmed(&tool.name)).filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(",")
}

fn codex(settings: &Settings, session: Option<&str>) -> Vec<String> {
    let mut args = words(["exec"]);
    args.extend(session.map(|_| "resume".to_owned()));
    args.extend(words(["--json", "--skip-git-repo-check"]));
    let mode = match settings.permission {
        Permission::ReadOnly => "read-only",
        Permission::WriteFiles => "workspace-write",
        Permission::Everything => "danger-full-access",
    };
    // `resume` does not know `--sandbox`.
    args.push(format!("--config=sandbox_mode=\"{mode}\""));
    args.extend(settings.model.as_ref().map(|model| format!("--model={model}")));
    args.extend(settings.args.iter().cloned());
    args
}

fn opencode(settings: &Settings, session: Option<&str>) -> Vec<String> {
    let mut args = words(["run", "--format", "json"]);
    args.extend(settings.model.as_ref().map(|model| format!("--model={model}")));
    args.extend((settings.permission == Permission::Everything).then(|| "--auto".to_owned()));
    args.extend(session.map(|id| format!("--session={id}")));
    args.extend(settings.args.iter().cloned());
    args
}

fn gemini(settings: &Settings, session: Option<&str>) -> Vec<String> {
    let mode = match settings.permission {
        Permission::ReadOnly => "default",
        Permission::WriteFiles => "auto_edit",
        Permission::Everything => "yolo",
    };
    let mut args = words(["--output-format", "stream-json", "--skip-trust"]);
    args.push(format!("--approval-mode={mode}"));
    args.extend(settings.model.as_ref().map(|model| format!("--model={model}")));
    args.extend(session.map(|id| format!("--resume={id}")));
    args.extend(settings.args.iter().cloned());
    args
}
