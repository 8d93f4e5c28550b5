//! Export of a session as Markdown.

use std::io::{self, Write};

use harness_core::message::{Block, Message};

use super::{Body, Leaf, Node, Tree};
use crate::note::Note;

impl Tree {
    /// Writes the path to a leaf as Markdown: messages, calls and their results, and marks of
    /// compactions. Content is not escaped.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_markdown(&self, leaf: Leaf<'_>, mut out: impl Write) -> io::Result<()> {
        let id = self.header().map(|header| header.id.to_string());
        writeln!(out, "# {}", self.name().map(str::to_owned).or(id).unwrap_or_else(|| "Session".to_owned()))?;
        let labels = self.labels();
        for node in self.path(leaf) {
            write_body(node, &mut out)?;
            for (_, label) in labels.iter().filter(|(target, _)| **target == node.id) {
                writeln!(out, "\n*Label: {label}*")?;
            }
        }
        Ok(())
    }
}

fn write_body(node: &Node, out: &mut impl Write) -> io::Result<()> {
    match &node.body {
        Body::Message(message) => write_message(message, out),
        Body::Compaction { summary, tokens_before, permanent, .. } => {
            let what = if *permanent { "session" } else { "view" };
            writeln!(out, "\n---\n\n*The {what} was compacted here; it had {tokens_before} tokens.*")?;
            summary.as_ref().map_or(Ok(()), |summary| quote(summary, out))
        }
        Body::Note(Note::BranchSummary { summary, .. }) => {
            writeln!(out, "\n---\n\n*Back from another branch:*")?;
            quote(summary, out)
        }
        Body::Note(_) | Body::Call { .. } | Body::RunEnd { .. } | Body::State { .. } | Body::Other { .. } => {
            Ok(())
        }
    }
}

fn write_message(message: &Message, out: &mut impl Write) -> io::Result<()> {
    let title = match message {
        Message::System(_) => "System".to_owned(),
        Message::User(user) => match &user.origin {
            Some(origin) => format!("User ({origin})"),
            None => "User".to_owned(),
        },
        Message::Assistant(_) => "Assistant".to_owned(),
        Message::ToolResult(result) if result.is_error => format!("{} failed", result.tool_name),
        Message::ToolResult(result) => format!("{} answered", result.tool_name),
        Message::Custom(custom) => custom.custom_type.clone(),
        _ => message.role().to_owned(),
    };
    writeln!(out, "\n## {title}")?;
    let code = message.as_tool_result().is_some();
    for block in message.content() {
        match block {
            Block::Text(text) if code => fenced("", &text.text, out)?,
            Block::Text(text) => writeln!(out, "\n{}", text.text)?,
            Block::Thinking(thinking) => quote(&thinking.thinking, out)?,
            Block::ToolCall(call) => {
                writeln!(out, "\nCalls `{}`:", call.name)?;
                fenced("json", call.arguments.text(), out)?;
            }
            Block::Refusal(refusal) => writeln!(out, "\nDeclined: {}", refusal.text)?,
            Block::Error(error) => writeln!(out, "\nError: {}", error.message)?,
            Block::Image(_) => writeln!(out, "\n*(an image)*")?,
            Block::File(_) => writeln!(out, "\n*(a file)*")?,
            Block::Audio(_) => writeln!(out, "\n*(sound)*")?,
            Block::Approval(_) => writeln!(out, "\n*(an approval)*")?,
            Block::Extension(_) | Block::Unknown(_) | _ => writeln!(out, "\n*(something else)*")?,
        }
    }
    Ok(())
}

fn quote(text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    text.lines().try_for_each(|line| writeln!(out, "> {line}"))
}

/// A code block whose fence is longer than any in it.
fn fenced(language: &str, text: &str, out: &mut impl Write) -> io::Result<()> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "\n{fence}{language}\n{text}\n{fence}")
}
