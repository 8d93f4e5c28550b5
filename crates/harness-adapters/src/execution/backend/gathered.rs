//! Progress of a backend: forwarded, and collected for the message.

use harness_core::message::{Block, Usage};
use harness_core::port::{DeltaPart, Deltas};
use harness_core::{CallId, Json, ToolName};
use parking_lot::Mutex;

use super::note::BackendTool;
use crate::execution::{ExecutionPart, ExecutionSink};
use crate::label::{bounded_id, bounded_label};

/// Calls of a backend's own tools that a message keeps.
const TOOLS: usize = 256;

/// Bytes of one call's arguments, and of its output, that a message keeps.
const SHOWN: usize = 8 << 10;

/// Bytes of text, and of thinking, that are kept in case that the backend fails.
const SAID: usize = 1 << 20;

/// Sink that forwards and collects the progress of a backend.
pub(super) struct Gathering<'a> {
    deltas: &'a dyn Deltas,
    gathered: Mutex<Gathered>,
}

/// Collected progress of a backend.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) tools: Vec<BackendTool>,
    pub(super) tools_left_out: u64,
    pub(super) usage: Option<Usage>,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(deltas: &'a dyn Deltas) -> Self {
        Self { deltas, gathered: Mutex::default() }
    }

    pub(super) fn into_gathered(self) -> Gathered {
        self.gathered.into_inner()
    }
}

impl ExecutionSink for Gathering<'_> {
    fn part(&self, part: ExecutionPart) {
        let part = bounded(part);
        self.gathered.lock().take(&part);
        let delta = match part {
            ExecutionPart::Text(text) => DeltaPart::Text(text),
            ExecutionPart::Thinking(text) => DeltaPart::Thinking(text),
            ExecutionPart::ToolStarted { id, name, input } => {
                DeltaPart::BackendToolStarted { id, name, input }
            }
            ExecutionPart::ToolFinished { id, output, failed } => {
                DeltaPart::BackendToolFinished { id, output, failed }
            }
            ExecutionPart::Note(text) => DeltaPart::Note(text),
            ExecutionPart::Usage(_) => return,
        };
        self.deltas.part(delta);
    }
}

/// A part whose id and name are no longer than such things are.
fn bounded(part: ExecutionPart) -> ExecutionPart {
    match part {
        ExecutionPart::ToolStarted { id, name, input } => ExecutionPart::ToolStarted {
            id: CallId::from(&*bounded_id(id.as_str())),
            name: ToolName::from(bounded_label(name.as_str().to_owned())),
            input,
        },
        ExecutionPart::ToolFinished { id, output, failed } => {
            let id = CallId::from(&*bounded_id(id.as_str()));
            ExecutionPart::ToolFinished { id, output, failed }
        }
        other @ (ExecutionPart::Text(_)
        | ExecutionPart::Thinking(_)
        | ExecutionPart::Usage(_)
        | ExecutionPart::Note(_)) => other,
    }
}

impl Gathered {
    fn take(&mut self, part: &ExecutionPart) {
        match part {
            ExecutionPart::Text(text) => keep(&mut self.text, text),
            ExecutionPart::Thinking(text) => keep(&mut self.thinking, text),
            ExecutionPart::ToolStarted { id, name, input } => {
                if self.tools.len() >= TOOLS {
                    self.tools_left_out = self.tools_left_out.saturating_add(1);
                    return;
                }
                let input = if input.text().len() > SHOWN { Json::null() } else { input.clone() };
                self.tools.push(BackendTool {
                    id: id.as_str().to_owned(),
                    name: name.as_str().to_owned(),
                    input,
                    output: None,
                    failed: false,
                });
            }
            ExecutionPart::ToolFinished { id, output, failed } => self.finish(id, output, *failed),
            ExecutionPart::Usage(usage) => self.usage = Some(usage.clone()),
            ExecutionPart::Note(_) => {}
        }
    }

    fn finish(&mut self, id: &CallId, output: &str, failed: bool) {
        let open = |tool: &&mut BackendTool| tool.id == id.as_str() && tool.output.is_none();
        if let Some(tool) = self.tools.iter_mut().rev().find(open) {
            let shown = output.get(..output.floor_char_boundary(SHOWN)).unwrap_or_default();
            tool.output =
                Some(if shown.len() < output.len() { format!("{shown}…") } else { shown.to_owned() });
            tool.failed = failed;
        }
    }

    /// Thinking and tools, as blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> {
        let thinking = (!self.thinking.is_empty()).then(|| Block::thinking(self.thinking.clone()));
        thinking.into_iter().chain(self.tools.iter().map(BackendTool::block))
    }
}

fn keep(kept: &mut String, more: &str) {
    let room = SAID.saturating_sub(kept.len());
    kept.push_str(more.get(..more.floor_char_boundary(room)).unwrap_or_default());
}
