//! A stream of a thread's events as frames.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use harness::core::ThreadId;
use harness::core::port::DeltaPart;
use harness::runtime::{DynThreadService, RuntimeError, StartAt, StreamItem, ThreadEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::wire::{Frame, ItemFrames, frame, transient_frame};

/// Content of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// All events.
    #[default]
    Full,
    /// Text deltas of answers.
    Text,
    /// Reasoning deltas of the model.
    Reasoning,
    /// Messages and blocks of answers in progress.
    Items,
}

/// Start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Live,
    Turn,
    Replay,
    At(u64),
}

impl From {
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text {
            "live" => Some(Self::Live),
            "turn" => Some(Self::Turn),
            "replay" => Some(Self::Replay),
            number => number.parse().ok().map(Self::At),
        }
    }

    /// After the event with this number.
    pub(crate) fn behind(id: &str) -> Option<Self> {
        id.parse::<u64>().ok().and_then(|id| id.checked_add(1)).map(Self::At)
    }
}

/// Follows a thread at the pace of its reader.
pub(crate) struct Follow {
    stream: BoxStream<'static, StreamItem>,
    /// Number of the next event of the stream, if none is missed.
    position: u64,
    kind: Kind,
    items: ItemFrames,
    /// First event to send; the stream may start earlier, where items start.
    from: u64,
    ready: VecDeque<Frame>,
    /// Report of the run whose end also ends the stream.
    ended: Option<End>,
    one_run: bool,
    over: bool,
}

/// A part of a text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Text<'a> {
    /// Characters to append.
    text: &'a str,
}

/// Events that a slow client missed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Missed {
    /// Number of missed events.
    missed: u64,
}

/// The calls that wait for a decision have changed, including those of sub-agents. Also the first event of a stream if there
/// are any.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Pending {
    /// Number of calls that the run holds for a decision.
    pending: usize,
}

/// The server has restarted its numbers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reset {
    /// Number of the next event.
    next: u64,
}

/// Reason for the end of a stream.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    /// `run_ended`, or `closed` if the thread was closed or the server stopped.
    reason: &'static str,
    /// Id of the ended run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Outcome of the run; absent if it failed to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// Stop reason of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'static str>,
    /// Human-readable problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Follow {
    pub(crate) async fn new(
        threads: &dyn DynThreadService,
        thread: &ThreadId,
        from: From,
        kind: Kind,
        one_run: bool,
    ) -> Result<Self, RuntimeError> {
        let info = threads.info_boxed(thread).await?;
        let (live, turn) = (info.next_seq, info.turn_seq);
        let (from, start, is_reset) = match from {
            From::Live => (live, live, false),
            From::Turn => (turn, turn, false),
            From::Replay => (0, 0, false),
            From::At(at) if at > live => (0, 0, true),
            From::At(at) => (at, at, false),
        };
        let position = if kind == Kind::Items { start.min(turn) } else { start };
        let mut ready = VecDeque::new();
        if is_reset {
            ready.push_back(Frame::new(None, "reset", &Reset { next: live }));
        }
        let stream = threads.events_boxed(thread, StartAt::At(position)).await?;
        let items = ItemFrames::default();
        Ok(Self { stream, position, kind, items, from, ready, ended: None, one_run, over: false })
    }

    /// Waits for the next frame; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.over {
                return None;
            }
            match self.stream.next().await {
                Some(StreamItem::Event { seq, event }) => self.take(seq, &event),
                Some(StreamItem::Transient { event }) => self.take_transient(&event),
                Some(StreamItem::Lagged { missed }) => self.lagged(missed),
                Some(StreamItem::Held { calls }) if self.kind == Kind::Full => {
                    let pending = Pending { pending: calls.len() };
                    self.ready.push_back(Frame::new(None, "approvals", &pending));
                }
                Some(_) => {}
                None => self.end("closed"),
            }
        }
    }

    fn take(&mut self, seq: u64, event: &ThreadEvent) {
        self.position = seq.saturating_add(1);
        let frames = match self.kind {
            Kind::Full => frame(seq, event).into_iter().collect(),
            Kind::Text => text_of(Some(seq), event).into_iter().collect(),
            Kind::Reasoning => reasoning_of(Some(seq), event).into_iter().collect(),
            Kind::Items => self.items.take(seq, event),
        };
        if seq < self.from {
            return;
        }
        self.ready.extend(frames);
        if self.one_run
            && let Some(end) = end_of(event)
        {
            self.ended = Some(end);
            self.end("run_ended");
        }
    }

    /// Takes an event without a number.
    fn take_transient(&mut self, event: &ThreadEvent) {
        let frames = match self.kind {
            Kind::Full => transient_frame(event),
            Kind::Text => text_of(None, event).or_else(|| restarted(event)),
            Kind::Reasoning => reasoning_of(None, event).or_else(|| restarted(event)),
            Kind::Items => return self.ready.extend(self.items.take_transient(self.position, event)),
        };
        self.ready.extend(frames);
    }

    fn lagged(&mut self, missed: u64) {
        let (began, next) = (self.position, self.position.saturating_add(missed));
        self.position = next;
        self.items = ItemFrames::default();
        let missed = next.saturating_sub(began.max(self.from));
        if missed > 0 {
            self.ready.push_back(Frame::new(next.checked_sub(1), "lagged", &Missed { missed }));
        }
    }

    fn end(&mut self, reason: &'static str) {
        self.over = true;
        let end = End { reason, ..self.ended.take().unwrap_or_default() };
        self.ready.push_back(Frame::new(None, "end", &end));
    }
}

fn text_of(seq: Option<u64>, event: &ThreadEvent) -> Option<Frame> {
    let ThreadEvent::Delta(DeltaPart::Text(text)) = event else { return None };
    Some(Frame::new(seq, "text", &Text { text }))
}

fn reasoning_of(seq: Option<u64>, event: &ThreadEvent) -> Option<Frame> {
    let ThreadEvent::Delta(DeltaPart::Thinking(text)) = event else { return None };
    Some(Frame::new(seq, "reasoning", &Text { text }))
}

fn restarted(event: &ThreadEvent) -> Option<Frame> {
    transient_frame(event).filter(|_| matches!(event, ThreadEvent::AnswerRestarted))
}

fn end_of(event: &ThreadEvent) -> Option<End> {
    if let ThreadEvent::RunEnded(report) = event {
        return Some(End {
            run: Some(report.run.as_str().to_owned()),
            outcome: Some(report.end.outcome().as_str()),
            stop_reason: Some(report.end.reason().as_str()),
            problem: report.problem(),
            ..End::default()
        });
    }
    let ThreadEvent::RunFailed { run, error } = event else { return None };
    Some(End { run: Some(run.as_str().to_owned()), problem: Some(error.to_string()), ..End::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: &str) -> StreamItem {
        StreamItem::Transient { event: ThreadEvent::Delta(DeltaPart::Text(text.to_owned())) }
    }

    /// Follows a thread of an engine behind its event 11: `ID NAME DATA`, with `-` for no id.
    #[track_caller]
    fn check(kind: Kind, expected: &[&str]) {
        let restarted = StreamItem::Transient { event: ThreadEvent::AnswerRestarted };
        let thinking = ThreadEvent::Delta(DeltaPart::Thinking("hm".to_owned()));
        let items =
            [delta("Te"), delta("a"), StreamItem::Transient { event: thinking }, restarted, delta("Milk")];
        let mut follow = Follow {
            stream: Box::pin(futures_util::stream::iter(items)),
            position: 12,
            kind,
            items: ItemFrames::default(),
            from: 12,
            ready: VecDeque::new(),
            ended: None,
            one_run: false,
            over: false,
        };
        let frames = futures_util::stream::poll_fn(move |cx| Box::pin(follow.next()).as_mut().poll(cx));
        let frames = futures_util::FutureExt::now_or_never(frames.collect::<Vec<_>>()).unwrap();
        let line = |Frame { seq, name, data }: &Frame| {
            format!("{} {name} {data}", seq.map_or("-".to_owned(), |seq| seq.to_string()))
        };
        assert_eq!(frames.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn deltas_of_an_engine_have_no_id_and_may_start_again() {
        let end = r#"- end {"reason":"closed"}"#;
        check(
            Kind::Full,
            &[
                r#"- delta {"type":"delta","part":{"text":"Te"}}"#,
                r#"- delta {"type":"delta","part":{"text":"a"}}"#,
                r#"- delta {"type":"delta","part":{"thinking":"hm"}}"#,
                r#"- answer_restarted {"type":"answer_restarted"}"#,
                r#"- delta {"type":"delta","part":{"text":"Milk"}}"#,
                end,
            ],
        );
        let restarted = r#"- answer_restarted {"type":"answer_restarted"}"#;
        let text = |text| format!(r#"- text {{"text":"{text}"}}"#);
        check(Kind::Text, &[&text("Te"), &text("a"), restarted, &text("Milk"), end]);
        check(Kind::Reasoning, &[r#"- reasoning {"text":"hm"}"#, restarted, end]);
    }

    #[test]
    fn blocks_of_an_answer_that_starts_again_replace_those_before() {
        let block = |id: &str, kind: &str, text: &str| {
            let field = if kind == "text" { "text" } else { "thinking" };
            format!(
                r#"- item {{"id":"{id}","complete":false,"coming":{{"type":"{kind}","{field}":"{text}"}}}}"#
            )
        };
        let (first, second) = ("12.0", "12.1");
        check(
            Kind::Items,
            &[
                &block(first, "text", ""),
                &block(first, "text", "Te"),
                &block(first, "text", "Tea"),
                &block(second, "thinking", ""),
                &block(second, "thinking", "hm"),
                &block(first, "text", ""),
                &block(first, "text", "Milk"),
                r#"- end {"reason":"closed"}"#,
            ],
        );
    }
}
