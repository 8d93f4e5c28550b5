//! Laws (a) to (d) of a finished conversation, against an outside ledger.

use std::collections::BTreeMap;

use harness::core::End;
use harness::core::event::{Event, EventKind};
use harness::core::message::Message;
use harness::core::testing::laws;
use harness_restate::durable::{LogEntry, LogItem, fold};

use super::world::{Script, redactor};

/// Checks the laws of a conversation: its log, the lines that its tools wrote, the end of its last run.
pub(crate) fn kept(log: &[LogEntry], ledger: &[String], last: &End, script: &Script, about: &str) {
    let messages: Vec<_> = fold(log).messages().cloned().collect();
    // (a)
    let said = messages.iter().filter(|message| matches!(***message, Message::User(_)));
    let said: Vec<_> = said.map(|message| message.joined_text()).collect();
    let expected: Vec<_> = script.said.iter().map(|said| redactor().text(said)).collect();
    assert_eq!(said, expected, "{about}");
    // (b)
    let mut begun: BTreeMap<&String, u32> = BTreeMap::new();
    for line in ledger {
        *begun.entry(line).or_default() += 1;
    }
    let is_unsafe = |line: &str| line.starts_with("begun pay") || line.starts_with("begun sign");
    let twice: Vec<_> = begun.iter().filter(|(line, times)| is_unsafe(line) && **times > 1).collect();
    assert!(twice.is_empty(), "{about}: begun twice: {twice:?}");
    laws_kept(log, last, about);
}

/// Checks the laws of a log: that of a conversation, or of a sub-agent.
pub(crate) fn laws_kept(log: &[LogEntry], last: &End, about: &str) {
    // (c), for each run; (d)
    let seqs: Vec<_> = log.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (0..log.len() as u64).collect::<Vec<_>>(), "{about}");
    let events = events(log);
    laws::events(&events).unwrap_or_else(|broken| panic!("{about}: {broken}"));
    for event in &events {
        if let EventKind::RunFinished { end } = &event.kind {
            laws::end(end).unwrap_or_else(|broken| panic!("{about}: {broken}"));
        }
    }
    let messages: Vec<_> = fold(log).messages().cloned().collect();
    let appended = events.iter().filter(|event| matches!(event.kind, EventKind::MessageAppended { .. }));
    assert_eq!(appended.count(), messages.len(), "{about}: events show another transcript");
    laws::calls(&messages, last).unwrap_or_else(|broken| panic!("{about}: {broken}"));
}

/// The events of a log.
pub(crate) fn events(log: &[LogEntry]) -> Vec<Event> {
    let events = log.iter().filter_map(|entry| match &entry.item {
        LogItem::Event(event) => Some((**event).clone()),
        LogItem::Record(_) => None,
    });
    events.collect()
}
