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

/// A finished edit of a file.
pub(super) struct FinishedEdit {
    pub(super) path: String,
    /// Content before and after; `None` for a file that was replaced, whose earlier content is not known.
    change: Option<(String, String)>,
}

impl FinishedEdit {
    /// The rows of the change.
    pub(super) fn rows(&self, width: usize) -> Vec<Line> {
        let Some((before, after)) = &self.change else { return Vec::new() };
        let rows = part_rows(&self.path, before, after, width);
        let hidden = rows.len().saturating_sub(MOST_ROWS);
        let mut rows: Vec<Line> = rows.into_iter().take(MOST_ROWS).collect();
        if hidden > 0 {
            rows.push(Line::of(DIM, &format!("… {hidden} more lines; Ctrl-O shows the call")));
        }
        rows
    }
}

/// The edit that a call made; `None` for other calls.
pub(super) fn shown(call: &ToolCall, outcome: &ToolOutcome) -> Option<FinishedEdit> {
    let name = call.name.as_str();
    if !matches!(name, "file_edit" | "file_write") || call.arguments.text().len() > LONGEST {
        return None;
    }
    let arguments: Value = call.arguments.to().ok()?;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let path = text("path")?;
    let made = || outcome.structured.as_ref()?.to::<Value>().ok()?.get("created")?.as_bool();
    let change = match name {
        "file_edit" => Some((text("old_string")?, text("new_string")?)),
        _ if made() == Some(true) => Some((String::new(), text("content")?)),
        _ => None,
    };
    Some(FinishedEdit { path, change })
}
