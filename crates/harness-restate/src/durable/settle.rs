//! Settling: ending a run that the engine gave up or was made to give up, so that its thread is free.

use harness::core::EntryId;
use harness::core::event::EventKind;
use harness::core::machine::Record;
use harness::core::message::Message;
use harness::runtime::DeliveryState;

use super::log::{LogEntry, LogItem};
use super::thread::ThreadState;

/// The messages of the queue that the run at hand had taken and that are in the transcript. `entries` are those of the log
/// since [`ThreadState::log`]. Its other messages are delivered again: no message is lost, and none is there twice.
pub fn delivered(state: &ThreadState, entries: &[LogEntry]) -> Vec<EntryId> {
    let mut messages = Vec::new();
    let mut injected = Vec::new();
    for entry in entries {
        match &entry.item {
            LogItem::Record(record) => {
                if let Record::Messages { messages: stored, .. } = &**record {
                    messages.extend(stored);
                }
            }
            LogItem::Event(event) => {
                if let EventKind::SteeringInjected { entries } = &event.kind {
                    injected.extend(entries);
                }
            }
        }
    }
    let has_prompt = messages.iter().any(|message| matches!(&***message, Message::User(_)));
    let taken = state.queue().filter(|queued| queued.state == DeliveryState::Delivering);
    let stored = taken.filter(|queued| {
        let began = has_prompt && state.began().contains(&queued.id);
        began || injected.contains(&&queued.id) || messages.contains(&&queued.message)
    });
    stored.map(|queued| queued.id.clone()).collect()
}
