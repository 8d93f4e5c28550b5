//! The command of a call, for display before it runs.

use harness_core::port::ProposedCall;
use serde_json::Value;

use super::tool::command_schema;
use super::words::words;

/// Command of a pending call of a [`ShellTool`](crate::ShellTool): what would run, for a prompt.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::port::ProposedCall;
/// use harness_core::tool::Tool;
/// use harness_tools::{ShellCommand, ShellPolicy, ShellTool};
///
/// let tool = ShellTool::new(ShellPolicy::any(), ".");
/// let call = ToolCall::new("c", "shell", Json::parse(r#"{"command":"grep -n 'a b' x"}"#)?);
/// let proposed = ProposedCall::new(Arc::new(call), tool.def().clone(), "main".into(), 1);
/// let command = ShellCommand::of(&proposed).ok_or("no command")?;
/// assert_eq!(command.words, ["grep", "-n", "a b", "x"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellCommand {
    /// The program and its arguments, exactly as they are passed on. Never empty.
    pub words: Vec<String>,
    /// Working directory below that of the tool, as the model wrote it; `None` for that of the tool.
    pub cwd: Option<String>,
}

impl ShellCommand {
    /// Reads the command of a call. Returns `None` if the tool is no [`ShellTool`](crate::ShellTool), if the command is
    /// not plain, or if there are arguments beside `command` and `cwd`, or one of them twice: a reader then shows
    /// the arguments themselves.
    pub fn of(proposed: &ProposedCall) -> Option<Self> {
        let schema: Value = proposed.def.input_schema.as_ref()?.to().ok()?;
        if schema.pointer("/properties/command") != Some(&command_schema()) {
            return None;
        }
        let (mut words_of_it, mut cwd) = (None, None);
        for (key, value) in proposed.call.arguments.entries().ok()? {
            let text: String = value.to().ok()?;
            match &*key {
                "command" if words_of_it.is_none() => words_of_it = Some(words(&text).ok()?),
                "cwd" if cwd.is_none() => cwd = Some(text),
                _ => return None,
            }
        }
        words_of_it.map(|words| Self { words, cwd })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness_core::Json;
    use harness_core::message::ToolCall;
    use harness_core::tool::{Tool as _, ToolDef};

    use super::*;
    use crate::{ShellPolicy, ShellTool};

    fn command(def: &ToolDef, arguments: &str) -> Option<ShellCommand> {
        let call = ToolCall::new("c", def.name.clone(), Json::parse(arguments).unwrap());
        ShellCommand::of(&ProposedCall::new(Arc::new(call), def.clone(), "main".into(), 1))
    }

    #[track_caller]
    fn check(arguments: &str, expected: Option<(&[&str], Option<&str>)>) {
        let tool = ShellTool::new(ShellPolicy::any(), ".").named("run", None);
        let expected = expected.map(|(words, cwd)| ShellCommand {
            words: words.iter().map(|&word| word.to_owned()).collect(),
            cwd: cwd.map(str::to_owned),
        });
        assert_eq!(command(tool.def(), arguments), expected, "{arguments}");
    }

    #[test]
    fn command_is_read_if_nothing_is_left_out() {
        check(r#"{"command":"ls 'a b'"}"#, Some((&["ls", "a b"], None)));
        check(r#"{"command":"ls","cwd":"src"}"#, Some((&["ls"], Some("src"))));
        check(r#"{"command":"ls","command":"rm x"}"#, None);
        check(r#"{"command":"ls","background":true}"#, None);
        check(r#"{"command":"ls","note":"x"}"#, None);
        check(r#"{"command":"ls | sh"}"#, None);
        check(r#"{"cwd":"src"}"#, None);
    }

    #[test]
    fn command_of_another_tool_is_not_read() {
        let def = ToolDef::new("shell", "Runs a script").with_schema(
            serde_json::json!({ "type": "object", "properties": { "command": { "type": "string" } } }).into(),
        );
        assert_eq!(command(&def, r#"{"command":"ls"}"#), None);
    }
}
