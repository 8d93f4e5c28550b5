//! Deltas and progress in the stream of a thread: shown between the start of their answer or call and its end in the log.

use std::collections::VecDeque;

use harness::core::CallId;
use harness::core::event::EventKind;
use harness::core::message::{Block, Message};
use harness::core::port::DeltaPart;
use harness::runtime::ThreadEvent;

use super::answer::{AnswerId, ToolProgress};

/// Log entries that are read to learn whether an answer is in progress, at most: one has few.
const LOOK_BACK: u64 = 256;

/// Reports of tools that are kept for the readers of a thread, at most; the oldest are dropped.
pub(crate) const REPORTS: usize = 64;

/// Deltas of the answers of a thread, and progress of its tools, that a reader has.
pub(crate) trait AnswerFeed {
    /// The attempt whose deltas came last, and those of them from a number on that depends on the attempt.
    fn answer(&self, from: impl FnOnce(&AnswerId) -> usize) -> Option<(AnswerId, Vec<DeltaPart>)>;

    /// The first report that is kept and has at least this number, and its number.
    fn report(&self, from: u64) -> Option<(u64, ToolProgress)>;

    /// The number of the next report.
    fn reported(&self) -> u64;
}

/// Reports of the tools of a thread, with numbers.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    kept: VecDeque<ToolProgress>,
    dropped: u64,
}

impl Reports {
    pub(crate) fn push(&mut self, progress: ToolProgress) {
        self.kept.push_back(progress);
        if self.kept.len() > REPORTS {
            self.kept.pop_front();
            self.dropped += 1;
        }
    }

    pub(crate) fn get(&self, from: u64) -> Option<(u64, ToolProgress)> {
        let at = from.max(self.dropped);
        let kept = self.kept.get(usize::try_from(at - self.dropped).ok()?)?;
        Some((at, kept.clone()))
    }

    /// The number of the next report.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }
}

/// The answer in progress, by the log entries of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// The stream started behind its start, or its end.
    #[default]
    Unknown,
    /// None.
    Silent,
    /// It started with this entry.
    Since(u64),
}

impl Progress {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events neither start nor end an answer")]
    fn see(&mut self, seq: u64, kind: &EventKind) {
        match kind {
            EventKind::ModelStepStarted { .. } => *self = Self::Since(seq),
            EventKind::MessageAppended { message, .. } if message.as_assistant().is_none() => {}
            EventKind::MessageAppended { .. }
            | EventKind::ModelStepFinished { .. }
            | EventKind::ModelStepFailed { .. }
            | EventKind::RunFinished { .. } => *self = Self::Silent,
            _ => {}
        }
    }
}

/// Next action of a stream about deltas.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing came.
    Wait,
    /// The log has to be read: it has, or is about to have, the start of an answer.
    ReadLog,
    /// Entries from this number on say whether an answer is in progress.
    LookBack(u64),
    /// Events for the reader.
    Show(Vec<ThreadEvent>),
}

/// The deltas of one stream.
#[derive(Debug)]
pub(crate) struct StreamDeltas<F> {
    pub(crate) feed: F,
    progress: Progress,
    /// The attempt whose deltas were read last, and how many.
    read: Option<(AnswerId, usize)>,
    /// The text that the reader has of the answer in progress.
    shown: String,
    /// Whether the reader has any delta of it.
    is_shown: bool,
    /// Number of the next report of a tool.
    reported: u64,
    /// Calls that the stream has seen the end of, latest last.
    ended: VecDeque<CallId>,
}

impl<F: AnswerFeed> StreamDeltas<F> {
    pub(crate) fn new(feed: F) -> Self {
        // Calls of earlier reports may have ended.
        let (progress, reported, ended) = (Progress::Unknown, feed.reported(), VecDeque::new());
        Self { feed, progress, read: None, shown: String::new(), is_shown: false, reported, ended }
    }

    /// Deltas since the last call. The stream has read the log up to an entry.
    pub(crate) fn next(&mut self, upto: u64) -> Next {
        match self.next_deltas(upto) {
            Next::Wait => self.next_report(upto),
            next @ (Next::ReadLog | Next::LookBack(_) | Next::Show(_)) => next,
        }
    }

    /// The next report of a call that has started and not ended.
    fn next_report(&mut self, upto: u64) -> Next {
        while let Some((number, progress)) = self.feed.report(self.reported) {
            if upto < progress.shown {
                return Next::ReadLog;
            }
            self.reported = number + 1;
            if !self.ended.contains(&progress.call.id) {
                let ToolProgress { call, content, .. } = progress;
                return Next::Show(vec![ThreadEvent::ToolUpdate { call, content }]);
            }
        }
        Next::Wait
    }

    fn next_deltas(&mut self, upto: u64) -> Next {
        let read = self.read.clone();
        let from = |id: &AnswerId| read.filter(|(known, _)| known == id).map_or(0, |(_, count)| count);
        let Some((id, parts)) = self.feed.answer(from) else { return Next::Wait };
        if upto < id.shown {
            return Next::ReadLog;
        }
        let is_current = match self.progress {
            Progress::Since(start) => (id.log..id.shown).contains(&start),
            Progress::Silent => false,
            Progress::Unknown if upto - id.log > LOOK_BACK => false,
            Progress::Unknown => return Next::LookBack(id.log),
        };
        if !is_current {
            // It came too late.
            self.read = Some((id, usize::MAX));
            return Next::Wait;
        }
        Next::Show(self.show(id, parts))
    }

    fn show(&mut self, id: AnswerId, parts: Vec<DeltaPart>) -> Vec<ThreadEvent> {
        let mut events = Vec::new();
        let known = self.read.take().filter(|(known, _)| *known == id);
        if known.is_none() && self.is_shown {
            events.push(self.restart());
        }
        let count = known.map_or(0, |(_, count)| count) + parts.len();
        for part in parts {
            if let DeltaPart::Text(text) = &part {
                self.shown.push_str(text);
            }
            events.push(ThreadEvent::Delta(part));
        }
        (self.read, self.is_shown) = (Some((id, count)), true);
        events
    }

    fn restart(&mut self) -> ThreadEvent {
        self.clear();
        ThreadEvent::AnswerRestarted
    }

    fn clear(&mut self) {
        self.shown.clear();
        self.is_shown = false;
    }

    /// Learns from entries before the stream whether an answer is in progress.
    pub(crate) fn look_back<'e>(&mut self, events: impl Iterator<Item = (u64, &'e EventKind)>) {
        self.progress = Progress::Silent;
        events.for_each(|(seq, kind)| self.progress.see(seq, kind));
    }

    /// Takes note of an event of the log, and returns what the reader has to see before it: the rest of an answer whose last
    /// deltas are late or lost.
    pub(crate) fn see(&mut self, seq: u64, kind: &EventKind) -> Vec<ThreadEvent> {
        self.progress.see(seq, kind);
        if let EventKind::ToolStarted { call } = kind {
            self.ended.retain(|ended| *ended != call.id);
        } else if let EventKind::ToolFinished { call, .. } | EventKind::ToolFailed { call, .. } = kind {
            self.ended.push_back(call.id.clone());
            if self.ended.len() > REPORTS {
                self.ended.pop_front();
            }
        } else if let EventKind::ModelStepStarted { .. } = kind {
            self.clear();
        } else if let EventKind::MessageAppended { message, .. } = kind
            && message.as_assistant().is_some()
        {
            return self.rest(message);
        }
        Vec::new()
    }

    fn rest(&mut self, message: &Message) -> Vec<ThreadEvent> {
        if !std::mem::take(&mut self.is_shown) {
            return Vec::new();
        }
        let shown = std::mem::take(&mut self.shown);
        let whole = text_of(message);
        let part = |text: &str| ThreadEvent::Delta(DeltaPart::Text(text.to_owned()));
        match whole.strip_prefix(&*shown) {
            Some("") => Vec::new(),
            Some(rest) => vec![part(rest)],
            // What was shown of an answer that was cut off is not taken back.
            None if shown.starts_with(&whole) => Vec::new(),
            None => vec![ThreadEvent::AnswerRestarted, part(&whole)],
        }
    }
}

/// The text of an answer, as its deltas make it.
fn text_of(message: &Message) -> String {
    let blocks = message.as_assistant().map(|answer| &*answer.content).unwrap_or_default();
    blocks
        .iter()
        .filter_map(|block| if let Block::Text(text) = block { Some(&*text.text) } else { None })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::core::message::{AssistantMessage, ToolCall};
    use harness::core::tool::ToolOutcome;
    use harness::core::{Json, Millis, OpId};

    use super::super::answer::DeltaReceiver as _;
    use super::super::sim::feed::{SimFeed, ThreadFeed};
    use super::*;

    const THREAD: &str = "t1";
    const RESTART: &str = "restart";

    /// The start of an answer.
    fn started() -> EventKind {
        EventKind::ModelStepStarted { agent: "main".into(), model: None, closing: None, ending: None }
    }

    fn appended(text: &str) -> EventKind {
        let message = Arc::new(Message::Assistant(AssistantMessage::text(text)));
        EventKind::MessageAppended { index: 0, message }
    }

    /// A stream that looks at deltas of one hub.
    struct Reader {
        hub: SimFeed,
        deltas: StreamDeltas<ThreadFeed>,
        upto: u64,
    }

    impl Reader {
        fn new() -> Self {
            let hub = SimFeed::default();
            let deltas = StreamDeltas::new(hub.reader(&THREAD.into()));
            Self { hub, deltas, upto: 0 }
        }

        /// A batch with deltas of the answer that began behind so many log entries.
        fn came(&self, log: u64, attempt: u64, texts: &[&str]) {
            let id = AnswerId { thread: THREAD.into(), log, shown: log + 2, op: OpId(log), attempt };
            self.hub.start(&id);
            for text in texts {
                self.hub.delta(&id, DeltaPart::Text((*text).to_owned()));
            }
        }

        /// Reads an entry of the log.
        fn read(&mut self, seq: u64, kind: &EventKind) -> Vec<String> {
            self.upto = seq + 1;
            lines(&self.deltas.see(seq, kind))
        }

        #[track_caller]
        fn check(&mut self, expected: &[&str]) {
            let shown = match self.deltas.next(self.upto) {
                Next::Show(events) => lines(&events),
                Next::Wait => Vec::new(),
                Next::ReadLog => vec!["read the log".to_owned()],
                Next::LookBack(from) => vec![format!("look back to {from}")],
            };
            assert_eq!(shown, expected);
        }
    }

    fn lines(events: &[ThreadEvent]) -> Vec<String> {
        let line = |event: &ThreadEvent| {
            if let ThreadEvent::Delta(DeltaPart::Text(text)) = event {
                text.clone()
            } else if let ThreadEvent::ToolUpdate { call, .. } = event {
                format!("progress of {}", call.id)
            } else {
                RESTART.to_owned()
            }
        };
        events.iter().map(line).collect()
    }

    #[test]
    fn deltas_wait_for_the_start_of_their_answer() {
        let mut reader = Reader::new();
        reader.came(4, 0, &["Tea"]);
        reader.read(3, &appended("Hi"));
        reader.check(&["read the log"]);
        reader.read(4, &started());
        reader.check(&["read the log"]);
        reader.read(5, &EventKind::TurnStarted { agent: "main".into(), resumed: false });
        reader.check(&["Tea"]);
        reader.check(&[]);
        reader.came(4, 0, &[" and", " milk"]);
        reader.check(&[" and", " milk"]);
        assert_eq!(reader.read(6, &appended("Tea and milk")), [""; 0]);
    }

    #[test]
    fn late_deltas_are_dropped_and_the_message_brings_the_rest() {
        let mut reader = Reader::new();
        reader.read(5, &started());
        reader.came(4, 0, &["Tea"]);
        reader.check(&["Tea"]);
        assert_eq!(reader.read(6, &appended("Tea and milk")), [" and milk"]);
        reader.came(4, 0, &[" and"]);
        reader.check(&[]);
        // The next answer is another one.
        reader.read(9, &started());
        reader.came(4, 0, &[" milk"]);
        reader.check(&[]);
        reader.came(8, 0, &["More"]);
        reader.check(&["More"]);
        assert_eq!(reader.read(10, &appended("More")), [""; 0]);
    }

    #[test]
    fn a_later_attempt_restarts_the_answer() {
        let mut reader = Reader::new();
        reader.read(5, &started());
        reader.came(4, 0, &["Te"]);
        reader.check(&["Te"]);
        reader.came(4, 1_700, &["Mi"]);
        reader.check(&["restart", "Mi"]);
        reader.came(4, 0, &["a"]);
        reader.check(&[]);
        assert_eq!(reader.read(6, &appended("Milk")), ["lk"]);
    }

    #[test]
    fn an_answer_whose_last_attempt_was_not_seen_comes_whole() {
        let mut reader = Reader::new();
        reader.read(5, &started());
        reader.came(4, 0, &["Te"]);
        reader.check(&["Te"]);
        assert_eq!(reader.read(6, &appended("Milk")), ["restart", "Milk"]);
        reader.read(9, &started());
        assert_eq!(reader.read(10, &appended("More")), [""; 0], "nothing of it was shown");
    }

    #[test]
    fn a_stream_that_begins_in_an_answer_looks_back_once() {
        let mut reader = Reader::new();
        reader.upto = 6;
        reader.came(4, 0, &["Tea"]);
        reader.check(&["look back to 4"]);
        reader.deltas.look_back([(5, &started())].into_iter());
        reader.check(&["Tea"]);
        let mut reader = Reader::new();
        reader.upto = 7;
        reader.came(4, 0, &["Tea"]);
        reader.check(&["look back to 4"]);
        reader.deltas.look_back([(5, &started()), (6, &appended("Tea"))].into_iter());
        reader.check(&[]);
        let mut reader = Reader::new();
        reader.upto = 600;
        reader.came(4, 0, &["Tea"]);
        reader.check(&[]);
    }

    fn tool(id: &str) -> Arc<ToolCall> {
        Arc::new(ToolCall::new(id, "look", Json::empty_object()))
    }

    fn ended(id: &str) -> EventKind {
        let outcome = Arc::new(ToolOutcome::text("done"));
        EventKind::ToolFinished { call: tool(id), outcome, duration: Millis(1), note: None }
    }

    #[test]
    fn progress_is_shown_between_the_start_of_a_call_and_its_end() {
        let mut reader = Reader::new();
        let came = |reader: &Reader, id: &str, shown: u64| {
            let progress = ToolProgress { thread: THREAD.into(), shown, call: tool(id), content: Vec::new() };
            reader.hub.progress(progress);
        };
        came(&reader, "c1", 6);
        reader.upto = 5;
        reader.check(&["read the log"]);
        reader.read(5, &EventKind::ToolStarted { call: tool("c1") });
        reader.check(&["progress of c1"]);
        reader.check(&[]);
        came(&reader, "c1", 6);
        came(&reader, "c2", 6);
        reader.read(6, &ended("c1"));
        reader.check(&["progress of c2"]);
        assert_eq!(
            StreamDeltas::new(reader.hub.reader(&THREAD.into())).reported,
            3,
            "calls of earlier reports may have ended"
        );
    }
}
