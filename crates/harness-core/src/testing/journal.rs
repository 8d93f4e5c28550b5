//! What a crash leaves behind.

use std::sync::Arc;

use crate::ids::CallId;
use crate::machine::Record;
use crate::message::Message;
use crate::outcome::End;
use crate::port::{CompactionNote, Loaded, OpenCall};
use crate::tool::RetryClass;
use crate::transcript::{Plan, Transcript, View};

/// One durable entry of a [`Record`], as a session keeps it. Exhaustive on
/// purpose, like the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Journaled {
    /// A message of the transcript.
    Message(Arc<Message>),
    /// A call is about to run.
    CallStarted {
        /// The call.
        call: CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: RetryClass,
    },
    /// A call has finished before an earlier one of its batch.
    CallFinished {
        /// The call.
        call: CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: RetryClass,
        /// The message that will follow in call order.
        result: Arc<Message>,
    },
    /// The view, or the transcript itself, is shorter from here on.
    Compaction {
        /// What was done.
        note: Arc<CompactionNote>,
        /// What is shown, over the transcript as it was.
        plan: Plan,
        /// Whether the transcript itself is what the plan shows.
        permanent: bool,
    },
    /// A turn is over.
    TurnEnd,
    /// A run is over.
    RunEnd(Arc<End>),
}

/// What was journaled, in order: the smallest session there is.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::testing::{Journal, Journaled};
///
/// let journal = Journal::of([Arc::new(Message::user("Hello"))]);
/// assert!(matches!(journal.entries(), [Journaled::Message(_)]));
/// assert_eq!(journal.reopen().messages.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    entries: Vec<Journaled>,
    /// The transcript that they make.
    transcript: Vec<Arc<Message>>,
}

impl Journal {
    /// A journal that holds these messages already.
    pub fn of(messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        let transcript: Vec<_> = messages.into_iter().collect();
        Self { entries: transcript.iter().cloned().map(Journaled::Message).collect(), transcript }
    }

    /// Stores a record.
    pub fn write(&mut self, record: &Record) {
        match record {
            Record::Messages { messages, .. } => {
                for message in messages {
                    self.entries.push(Journaled::Message(Arc::clone(message)));
                    self.transcript.push(Arc::clone(message));
                }
            }
            Record::CallStarted { call, attempt, class } => {
                let call = call.id.clone();
                self.entries.push(Journaled::CallStarted { call, attempt: *attempt, class: *class });
            }
            Record::CallFinished { call, attempt, class, result } => {
                let (call, result) = (call.id.clone(), Arc::clone(result));
                self.entries.push(Journaled::CallFinished { call, attempt: *attempt, class: *class, result });
            }
            Record::Compaction { note, plan, permanent, .. } => {
                if *permanent {
                    let log: Transcript = std::mem::take(&mut self.transcript).into_iter().collect();
                    let view = View::planned(log.prefix(), plan.clone());
                    view.for_each(|message| self.transcript.push(Arc::clone(message)));
                }
                let (note, plan) = (Arc::clone(note), plan.clone());
                self.entries.push(Journaled::Compaction { note, plan, permanent: *permanent });
            }
            Record::TurnEnd => self.entries.push(Journaled::TurnEnd),
            Record::RunEnd(end) => self.entries.push(Journaled::RunEnd(Arc::clone(end))),
        }
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Journaled] {
        &self.entries
    }

    /// The messages of the transcript that they make, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.transcript.iter()
    }

    /// What a session of these entries would load: the transcript, and the calls of the last batch that
    /// had started and have no result among the messages.
    pub fn reopen(&self) -> Loaded {
        let mut loaded = Loaded { messages: self.messages().cloned().collect(), ..Loaded::default() };
        for entry in &self.entries {
            match entry {
                Journaled::Message(message) => match &**message {
                    Message::Assistant(_) => loaded.open_calls.clear(),
                    Message::ToolResult(result) => close(&mut loaded.open_calls, &result.tool_call_id),
                    Message::System(_) | Message::User(_) | Message::Custom(_) => {}
                },
                Journaled::CallStarted { call, attempt, class } => {
                    note(&mut loaded.open_calls, OpenCall::new(call.clone(), *attempt, *class, None));
                }
                Journaled::CallFinished { call, attempt, class, result } => {
                    let result = Some(Arc::clone(result));
                    note(&mut loaded.open_calls, OpenCall::new(call.clone(), *attempt, *class, result));
                }
                Journaled::Compaction { plan, permanent, .. } => {
                    loaded.plan = (!permanent).then(|| plan.clone());
                }
                Journaled::TurnEnd => {}
                Journaled::RunEnd(_) => loaded.ended = true,
            }
        }
        loaded
    }
}

fn close(open: &mut Vec<OpenCall>, call: &CallId) {
    if let Some(at) = open.iter().position(|o| o.call == *call) {
        open.remove(at);
    }
}

fn note(open: &mut Vec<OpenCall>, call: OpenCall) {
    match open.iter_mut().find(|o| o.call == call.call) {
        Some(known) => *known = call,
        None => open.push(call),
    }
}
