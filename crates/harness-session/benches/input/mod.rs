//! The session that is measured: that of the peer's benchmark, half text of a user, half answers with a call.

use std::path::Path;
use std::sync::Arc;

use harness_core::Time;
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead};
use harness_session::{FileSession, OpenOptions};

/// The messages, in order.
pub(crate) fn messages(count: usize) -> Vec<Arc<Message>> {
    (0..count).map(|number| Arc::new(message(number))).collect()
}

fn message(number: usize) -> Message {
    let text = "x".repeat(180);
    let line = if number.is_multiple_of(2) {
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"message {number} {text}"}}],"timestamp":1}}"#
        )
    } else {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}},{{"type":"toolCall","id":"c{number}","name":"look","arguments":{{"q":"abc","n":{number}}}}}],"protocol":"x","provider":"p","model":"m","usage":{{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":1}}"#
        )
    };
    serde_json::from_str(&line).expect("a message")
}

/// Opens a session whose appends stay with the operating system.
pub(crate) fn open(path: &Path) -> FileSession {
    FileSession::open(path, OpenOptions::new()).expect("a session")
}

/// Appends messages one by one, without bringing them to stable storage: one write each.
pub(crate) fn append(session: &FileSession, messages: &[Arc<Message>]) {
    let head = EntryHead::new(Time(1_767_225_600_000), None, 0, None);
    for message in messages {
        let appended = session.append_blocking(&head, &[Entry::Message(message)], Durability::Flush);
        appended.expect("an append");
    }
}
