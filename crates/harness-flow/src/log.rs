//! Messages of a context, each with its step.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::transcript::Transcript;
use serde::{Deserialize, Serialize};

/// Message of a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Logged {
    /// Position in the log.
    pub(crate) at: u64,
    /// Path of the step that appended it.
    pub(crate) path: Arc<str>,
    pub(crate) message: Arc<Message>,
}

#[derive(Clone, Debug)]
struct Entry {
    logged: Logged,
    recorded: bool,
    /// Whether it is from an earlier process.
    restored: bool,
}

/// Ordered messages of a context.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    next: u64,
}

impl Log {
    /// Copies the log for a parallel path, which does not record the copied messages.
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

    /// Restores recorded messages in order.
    pub(crate) fn restore(&mut self, logged: impl IntoIterator<Item = Logged>) {
        for logged in logged {
            self.next = self.next.max(logged.at + 1);
            self.entries.push(Entry { logged, recorded: true, restored: true });
        }
        self.entries.sort_by_key(|entry| entry.logged.at);
    }

    /// Removes restored messages of steps that run again.
    pub(crate) fn forget(&mut self, is_redone: impl Fn(&str) -> bool) {
        self.entries.retain(|entry| !(entry.restored && is_redone(&entry.logged.path)));
    }

    /// Returns the unrecorded messages of the step and its children.
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

    /// Number of tool calls in the last model answer.
    pub(crate) fn last_calls(&self) -> Option<usize> {
        let answers = self.entries.iter().rev().filter_map(|entry| entry.logged.message.as_assistant());
        answers.map(|answer| answer.tool_calls().count()).next()
    }
}

/// Whether `path` is `above` or the path of one of its children.
pub(crate) fn is_at_or_beneath(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}
