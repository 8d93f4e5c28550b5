//! Tool calls: running ones, and recent ones for display in full.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::message::{Block, ToolCall};
use harness::core::tool::ToolOutcome;
use harness::core::{CallId, Json, Millis, Time, ToolName};

use crate::render::highlight::Highlighter;
use crate::render::line::{Line, Look, Text};
use crate::render::{BAD, BOLD, DIM, GOOD};

/// Maximum number of finished calls that can be displayed.
const KEPT: usize = 50;

/// Maximum size in bytes of stored arguments, and of stored results.
const LONGEST: usize = 64 << 10;

/// Maximum number of tracked running calls. Bounds memory when a backend omits the end of calls.
const MOST_RUNNING: usize = 256;

/// A running call.
#[derive(Debug)]
pub(super) struct Running {
    id: CallId,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) since: Time,
    /// Its last progress message.
    pub(super) update: String,
}

/// A finished call.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) output: String,
    pub(super) failed: bool,
    pub(super) took: Option<Millis>,
}

impl Over {
    /// The call with its full arguments and result.
    pub(super) fn lines(&self, width: usize) -> Vec<Line> {
        let (style, mark) = if self.failed { (BAD, "✗") } else { (GOOD, "✓") };
        let mut head = Text::default();
        head.push(mark, &Look::of(style));
        head.push(&format!(" {}", self.name), &Look::of(BOLD));
        head.push(&self.took.map(|took| format!(" {took}")).unwrap_or_default(), &Look::of(DIM));
        let mut lines = head.wrap(width);
        let arguments = Highlighter::of_language("json");
        lines.extend(indented(&pretty(&self.arguments), width, arguments));
        lines.extend(indented(&self.output, width, self.language()));
        lines
    }

    /// Language of the result: that of the file that was read.
    fn language(&self) -> Option<Highlighter> {
        if self.failed || self.name != "workspace_read" {
            return None;
        }
        let arguments: serde_json::Value = serde_json::from_str(&self.arguments).ok()?;
        Highlighter::of_path(arguments.get("path")?.as_str()?)
    }
}

/// Calls of a conversation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    running: Vec<Running>,
    over: VecDeque<Arc<Over>>,
}

impl Calls {
    /// Running calls in the order of their start.
    pub(super) fn running(&self) -> &[Running] {
        &self.running
    }

    pub(super) fn start(&mut self, call: &Arc<ToolCall>, since: Time) {
        let (name, arguments) = shown_call(call);
        self.add(call.id.clone(), name, arguments, since);
    }

    pub(super) fn start_backend(&mut self, id: &CallId, name: &ToolName, input: &Json, since: Time) {
        self.add(id.clone(), name.to_string(), cut(input.text()), since);
    }

    fn add(&mut self, id: CallId, name: String, arguments: String, since: Time) {
        if self.running.len() < MOST_RUNNING {
            self.running.push(Running { id, name, arguments, since, update: String::new() });
        }
    }

    pub(super) fn update(&mut self, id: &CallId, content: &[Block]) {
        if let Some(call) = self.running.iter_mut().find(|call| call.id == *id) {
            call.update = cut(content.iter().rev().find_map(Block::as_text).unwrap_or_default());
        }
    }

    pub(super) fn finish(&mut self, call: &ToolCall, outcome: &ToolOutcome, took: Millis) {
        self.forget(&call.id);
        let text: Vec<&str> = outcome.content.iter().filter_map(Block::as_text).collect();
        let error = outcome.error.as_ref().map(|error| error.message.as_str());
        let output = if text.is_empty() { error.unwrap_or_default().to_owned() } else { text.join("\n") };
        let (name, arguments) = shown_call(call);
        self.keep(Over { name, arguments, output: cut(&output), failed: error.is_some(), took: Some(took) });
    }

    /// Ends a backend's own tool call; returns its name and duration.
    pub(super) fn finish_backend(
        &mut self,
        id: &CallId,
        output: &str,
        failed: bool,
        now: Time,
    ) -> Option<((String, String), Millis)> {
        let at = self.running.iter().position(|call| call.id == *id)?;
        let Running { name, arguments, since, .. } = self.running.remove(at);
        let (shown, took) = ((name.clone(), arguments.clone()), now.since(since));
        self.keep(Over { name, arguments, output: cut(output), failed, took: Some(took) });
        Some((shown, took))
    }

    /// Removes a call.
    pub(super) fn forget(&mut self, id: &CallId) {
        self.running.retain(|call| call.id != *id);
    }

    /// Removes all running calls.
    pub(super) fn stop_all(&mut self) {
        self.running.clear();
    }

    fn keep(&mut self, over: Over) {
        if self.over.len() >= KEPT {
            self.over.pop_front();
        }
        self.over.push_back(Arc::new(over));
    }

    /// The last finished calls, the newest last.
    pub(super) fn last(&self, count: usize) -> Vec<Arc<Over>> {
        let skipped = self.over.len().saturating_sub(count);
        self.over.iter().skip(skipped).cloned().collect()
    }
}

/// A text with a bar before each line.
pub(super) fn indented(text: &str, width: usize, mut highlighter: Option<Highlighter>) -> Vec<Line> {
    let mut wrapped = Text::default();
    for (number, line) in text.trim_end().lines().enumerate() {
        if number > 0 {
            wrapped.break_line();
        }
        match &mut highlighter {
            Some(highlighter) => {
                for (part, style) in highlighter.line(line) {
                    wrapped.push(part, &Look::of(style));
                }
            }
            None => wrapped.push(line, &Look::default()),
        }
    }
    let barred = |line| {
        let mut barred = Line::of(DIM, "│ ");
        barred.append(line);
        barred
    };
    wrapped.chop(width.saturating_sub(2).max(4)).into_iter().map(barred).collect()
}

fn pretty(arguments: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(arguments);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| arguments.to_owned())
}

/// Name and arguments of a call, shortened.
pub(super) fn shown_call(call: &ToolCall) -> (String, String) {
    (call.name.to_string(), cut(call.arguments.text()))
}

fn cut(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n… {} bytes more", text.get(..end).unwrap_or_default(), text.len() - end)
}
