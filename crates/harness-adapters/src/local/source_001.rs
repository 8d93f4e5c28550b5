//! The presets of source 001, exactly as it has them.

use std::ffi::OsString;
use std::sync::Arc;

use harness_core::port::execution::{ContextStrategy, ToolUse};
use harness_core::port::{Clock, ExecutionCapabilities, ExecutionRequest};

use super::adapter::LocalCommandAdapter;
use super::fields::Fields;
use super::output::{OutputFormat, ParsedOutput};
use super::program::{Invocation, LocalProgram};
use crate::execution::{trimmed, user_text};

/// Source 001's `ClaudeCodeExecutionAdapter`: one JSON document at the end, the prompt as an argument, no
/// sessions, no usage, and an answer that says that it failed counts as completed. `program` is its `claude`.
///
/// [`AgentBackend`](super::AgentBackend) is the product's own.
pub fn claude_code(program: LocalProgram, clock: Arc<dyn Clock>) -> LocalCommandAdapter {
    let mut capabilities = ExecutionCapabilities::none().with_notes([
        "Bounded local CLI invocation only",
        "No cloud routing or continuation resume ownership",
    ]);
    capabilities.tool_use = ToolUse::NativeIterative;
    capabilities.structured_tool_calls = true;
    capabilities.max_context_strategy = Some(ContextStrategy::Large);
    LocalCommandAdapter::new(
        "claude-code",
        program,
        |request| Ok(Invocation::new(arguments(request))),
        OutputFormat::whole(parse),
        capabilities,
        clock,
    )
    .label("Claude Code CLI")
    .retryable_exit(|exit| exit.code != Some(2))
    .traces_degraded(false)
}

fn arguments(request: &ExecutionRequest) -> Vec<OsString> {
    let mut args = vec!["--print", "--output-format", "json", "--system-prompt"];
    args.push(&request.instructions.system_prompt);
    let names = tool_names(request);
    if !request.tools().is_empty() && !names.is_empty() {
        args.extend(["--allowedTools", &names]);
    }
    let prompt = user_text(request);
    args.push(&prompt);
    args.into_iter().map(OsString::from).collect()
}

/// The names of the request's tools as Claude Code takes them.
pub(super) fn tool_names(request: &ExecutionRequest) -> String {
    let names = request.tools().iter().map(|tool| trimmed(&tool.name)).filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(",")
}

fn parse(stdout: &str) -> Option<ParsedOutput> {
    let fields = Fields::parse(stdout)?;
    let parsed = ParsedOutput {
        text: ["text", "result", "output_text"].iter().find_map(|key| fields.text(key)),
        structured: ["structured", "result", "output"]
            .iter()
            .find_map(|key| fields.json(key).filter(|value| value.is_object()))
            .cloned(),
        tool_calls: ["toolCalls", "tool_calls"].iter().find_map(|key| fields.list(key)),
        ..ParsedOutput::default()
    };
    let anything = parsed.text.is_some() || parsed.structured.is_some() || parsed.tool_calls.is_some();
    anything.then_some(parsed)
}

#[cfg(test)]
mod tests {
    use harness_core::Json;

    use super::*;

    #[track_caller]
    fn check(stdout: &str, expected: &str) {
        let parsed = parse(stdout);
        let shown = parsed.map(|parsed| {
            let calls = parsed.tool_calls.map(|calls| calls.len());
            format!("{:?} {:?} {calls:?}", parsed.text, parsed.structured.as_ref().map(Json::text))
        });
        assert_eq!(shown.as_deref().unwrap_or("malformed"), expected);
    }

    #[test]
    fn the_first_key_that_fits_counts() {
        check(r#"{"text":1,"result":"R","output_text":"O"}"#, r#"Some("R") None None"#);
        check(r#"{"structured":[],"output":{"o":1}}"#, r#"None Some("{\"o\":1}") None"#);
        check(r#"{"toolCalls":{},"tool_calls":[1,2]}"#, "None None Some(2)");
    }

    #[test]
    fn what_holds_nothing_is_malformed() {
        for stdout in ["", "[]", "\"hi\"", "{}", r#"{"text":null}"#, r#"{"text":"a"} x"#] {
            check(stdout, "malformed");
        }
    }
}
