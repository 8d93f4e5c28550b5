//! Edits of files in the conversation: the path, and what was changed.

use harness::core::message::ToolCall;
use harness::core::tool::ToolOutcome;
use serde_json::Value;

use crate::render::line::Line;
use crate::render::{DIM, part_rows};

/// Maximum number of shown rows of an edit.
const MOST_ROWS: usize = 30;

/// Maximum size in bytes of the shown texts of an edit.
const LONGEST: usize = 64 << 10;

/// Path of a finished edit and the rows of its change; `None` for other calls. A file that was replaced has no rows, since
/// its earlier content is not known.
pub(super) fn shown(call: &ToolCall, outcome: &ToolOutcome, width: usize) -> Option<(String, Vec<Line>)> {
    let name = call.name.as_str();
    if !matches!(name, "file_edit" | "file_write") || call.arguments.text().len() > LONGEST {
        return None;
    }
    let arguments: Value = call.arguments.to().ok()?;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = text("path")?.to_owned();
    let made = || outcome.structured.as_ref()?.to::<Value>().ok()?.get("created")?.as_bool();
    let rows = match name {
        "file_edit" => part_rows(&path, text("old_string")?, text("new_string")?, width),
        _ if made() == Some(true) => part_rows(&path, "", text("content")?, width),
        _ => Vec::new(),
    };
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    let mut rows: Vec<Line> = rows.into_iter().take(MOST_ROWS).collect();
    if hidden > 0 {
        rows.push(Line::of(DIM, &format!("… {hidden} more lines; Ctrl-O shows the call")));
    }
    Some((path, rows))
}
