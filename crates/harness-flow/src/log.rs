//! The messages of a context, and which step each came from.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::transcript::Transcript;
use serde::{Deserialize, Serialize};

/// A message with its place in the log of its context.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Logged {
    /// Orders the messages of a context.
    pub(crate) at: u64,
    /// The step that added it.
    pub(crate) path: Arc<str>,
    /// The message.
    pub(crate) message: Arc<Message>,
}

#[derive(Clone, Debug)]
struct Entry {
    logged: Logged,
    recorded: bool,
    /// Whether it comes from an earlier process.
    restored: bool,
}

/// The messages of a context, in their order.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    next: u64,
}

impl Log {
    /// The copy that a path of a parallel step begins with: nothing of it is for the path to record.
    pub(crate) fn copy(&self) -> Self {
        let entries =
            self.entries.iter().map(|entry| Entry { recorded: true, restored: false, ..entry.clone() });
        Self { entries: entries.collect(), next: self.next }
    }

    pub(crate) fn push(&mut self, path: Arc<str>, message: Arc<Message>) {
        let logged = Logged { at: self.next, path, message };
        self.next += 1;
        self.entries.push(Entry { logged, recorded: false, restored: false });
    }

    /// Puts what an earlier process recorded into its place.
    pub(crate) fn restore(&mut self, logged: impl IntoIterator<Item = Logged>) {
        for logged in logged {
            self.next = self.next.max(logged.at + 1);
            self.entries.push(Entry { logged, recorded: true, restored: true });
        }
        self.entries.sort_by_key(|entry| entry.logged.at);
    }

    /// Forgets what an earlier process recorded of steps that are done again.
    pub(crate) fn forget(&mut self, is_redone: impl Fn(&str) -> bool) {
        self.entries.retain(|entry| !(entry.restored && is_redone(&entry.logged.path)));
    }

    /// What the step, and all beneath it, added and nobody recorded.
    pub(crate) fn unrecorded(&self, path: &str) -> Vec<Logged> {
        let of_step = |entry: &&Entry| !entry.recorded && is_at_or_beneath(&entry.logged.path, path);
        self.entries.iter().filter(of_step).map(|entry| entry.logged.clone()).collect()
    }

    pub(crate) fn recorded(&mut self, logged: &[Logged]) {
        for entry in &mut self.entries {
            entry.recorded |= logged.iter().any(|logged| logged.at == entry.logged.at);
        }
    }

    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        self.entries.iter().map(|entry| Arc::clone(&entry.logged.message)).collect()
    }

    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::default();
        self.entries.iter().for_each(|entry| transcript.push(Arc::clone(&entry.logged.message)));
        transcript
    }

    /// The tool calls of the last answer of a model.
    pub(crate) fn last_calls(&self) -> Option<usize> {
        let answers = self.entries.iter().rev().filter_map(|entry| entry.logged.message.as_assistant());
        answers.map(|answer| answer.tool_calls().count()).next()
    }
}

/// Whether `path` is that of the step at `above`, or of one beneath it.
pub(crate) fn is_at_or_beneath(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}
