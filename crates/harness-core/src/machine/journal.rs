//! The records that survive a crash, and the transcript that they make.

use std::sync::Arc;

use crate::machine::Record;
use crate::message::Message;
use crate::port::{Loaded, OpenCall};
use crate::transcript::{Transcript, View};

/// Stored records, in order: a minimal session.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::machine::Journal;
///
/// let journal = Journal::of([Arc::new(Message::user("Hello"))]);
/// assert_eq!(journal.reopen().messages.len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct Journal {
    records: Vec<Record>,
    transcript: Transcript,
}

impl Journal {
    /// A journal that holds these messages already.
    pub fn of(messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        let mut journal = Self::default();
        journal.write(&Record::Messages { from: 0, messages: messages.into_iter().collect() });
        journal
    }

    /// Stores a record.
    pub fn write(&mut self, record: &Record) {
        match record {
            Record::Messages { messages, .. } => {
                for message in messages {
                    self.transcript.push(Arc::clone(message));
                }
            }
            Record::Compaction { plan, permanent: true, .. } => {
                let log = std::mem::take(&mut self.transcript);
                let view = View::planned(log.prefix(), plan.clone());
                view.for_each(|message| self.transcript.push(Arc::clone(message)));
            }
            Record::Compaction { .. }
            | Record::CallStarted { .. }
            | Record::CallFinished { .. }
            | Record::TurnEnd
            | Record::RunEnd(_) => {}
        }
        self.records.push(record.clone());
    }

    /// The records in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The transcript that they make.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The messages of the transcript, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.transcript.iter()
    }

    /// Loads the records as a session does: the transcript, and the calls of the last batch that
    /// started and have no result in it.
    pub fn reopen(&self) -> Loaded {
        let mut loaded = Loaded { messages: self.messages().cloned().collect(), ..Loaded::default() };
        let open = &mut loaded.open_calls;
        for record in &self.records {
            match record {
                Record::Messages { messages, .. } => messages.iter().for_each(|message| match &**message {
                    Message::Assistant(_) => open.clear(),
                    Message::ToolResult(result) => open.retain(|call| call.call != result.tool_call_id),
                    Message::System(_) | Message::User(_) | Message::Custom(_) => {}
                }),
                Record::CallStarted { call, attempt, class } => {
                    note(open, OpenCall::new(call.id.clone(), *attempt, *class, None));
                }
                Record::CallFinished { call, attempt, class, result } => {
                    note(open, OpenCall::new(call.id.clone(), *attempt, *class, Some(Arc::clone(result))));
                }
                Record::Compaction { plan, permanent, .. } => {
                    loaded.plan = (!permanent).then(|| plan.clone());
                }
                Record::TurnEnd => {}
                Record::RunEnd(_) => loaded.ended = true,
            }
        }
        loaded
    }
}

fn note(open: &mut Vec<OpenCall>, call: OpenCall) {
    match open.iter_mut().find(|o| o.call == call.call) {
        Some(known) => *known = call,
        None => open.push(call),
    }
}
