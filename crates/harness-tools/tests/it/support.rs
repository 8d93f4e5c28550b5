//! What all topics need.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness_core::message::ToolCall;
use harness_core::tool::{Tool, ToolCx, ToolDef, ToolOutcome, ToolRegistry};
use harness_core::{Json, Origin};
use harness_host::process::{Environment, ProgramSpec};
use harness_tools::{CommandSpec, CommandTool};

/// Longer than any program of these tests takes on a busy machine; only a failing test waits for it.
pub(crate) const LONG: Duration = Duration::from_mins(1);

pub(crate) fn environment() -> Environment {
    Environment::from_iter([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SECRET", "hidden")])
}

/// A shell script; `$1` and so on are `args`.
pub(crate) fn script(text: &str, args: &[&Path]) -> CommandSpec {
    let fixed = ["-c", text, "script"].map(std::ffi::OsString::from);
    let args = args.iter().map(|arg| arg.as_os_str().to_owned());
    let program = ProgramSpec::new("sh").args(fixed.into_iter().chain(args)).pass(&environment(), []);
    with(CommandSpec::new(program), |spec| spec.limits.time = LONG)
}

pub(crate) fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

pub(crate) fn tool(spec: CommandSpec) -> CommandTool {
    CommandTool::new(ToolDef::new("tool", ""), spec).unwrap()
}

pub(crate) fn cx(arguments: &str) -> ToolCx {
    let call = ToolCall::new("call-7", "tool", Json::parse(arguments).unwrap());
    ToolCx::for_call(Arc::new(call))
}

pub(crate) fn call(spec: CommandSpec, arguments: &str) -> ToolOutcome {
    block_on(tool(spec).call(cx(arguments)))
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// `status code? exit? retryable?`, and below it the text for the model.
pub(crate) fn told(outcome: &ToolOutcome) -> String {
    let mut line = outcome.status.as_str().to_owned();
    if let Some(error) = &outcome.error {
        line.extend([" ", &error.code]);
    }
    if let Some(code) = outcome.exit_code {
        line.extend([" exit ", &code.to_string()]);
    }
    if outcome.is_retryable() {
        line.push_str(" retryable");
    }
    let answered = ToolCall::new("call-7", "tool", Json::empty_object());
    let message = outcome.to_message(&answered, None, harness_core::Time(0));
    let text: Vec<&str> = message.content.iter().filter_map(|block| block.as_text()).collect();
    format!("{line}\n{}", text.join("\n---\n"))
}

/// A call of a tool of a registry, in a run of that name.
pub(crate) fn ask_in(run: &str, tools: &impl ToolRegistry, name: &str, arguments: &str) -> ToolOutcome {
    let mut origin = Origin::default();
    origin.run = Some(run.into());
    ask_of(origin, tools, name, arguments)
}

/// A call of a tool of a registry, with these ids.
pub(crate) fn ask_of(origin: Origin, tools: &impl ToolRegistry, name: &str, arguments: &str) -> ToolOutcome {
    let call = ToolCall::new("call-7", name, Json::parse(arguments).unwrap());
    let mut cx = ToolCx::for_call(Arc::new(call));
    cx.origin = Arc::new(origin);
    block_on(tools.call(cx)).unwrap()
}

/// What a model is told of such a call.
pub(crate) fn ask(tools: &impl ToolRegistry, name: &str, arguments: &str) -> String {
    told(&ask_in("run", tools, name, arguments))
}
