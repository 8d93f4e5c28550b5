//! The history of a view: which messages of the transcript it shows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use harness_core::CallId;
use harness_core::message::{Block, Message};
use harness_core::transcript::{Prefix, Span};

/// A part of the transcript as a view shows it: spans over it, so that choosing costs what is chosen and
/// not what there is.
///
/// Positions are those of the history, from 0, not of the transcript.
#[derive(Clone, Debug)]
pub struct History {
    log: Prefix,
    spans: Vec<Span>,
}

impl History {
    /// The whole transcript.
    pub fn whole(log: Prefix) -> Self {
        let spans = if log.is_empty() { Vec::new() } else { vec![Span::Kept(0..log.len())] };
        Self { log, spans }
    }

    /// Spans over a transcript; positions past its end are omitted.
    pub fn of(log: Prefix, spans: impl IntoIterator<Item = Span>) -> Self {
        let mut history = Self { log, spans: Vec::new() };
        for span in spans {
            history.push(span);
        }
        history
    }

    /// The transcript behind it.
    pub fn log(&self) -> &Prefix {
        &self.log
    }

    /// The spans, none of them empty.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// How many messages it shows.
    pub fn len(&self) -> usize {
        self.spans.iter().map(length).sum()
    }

    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The message at a position.
    pub fn get(&self, at: usize) -> Option<&Arc<Message>> {
        let mut left = at;
        for span in &self.spans {
            let here = length(span);
            if left < here {
                return match span {
                    Span::Kept(range) => self.log.get(range.start + left),
                    Span::Made(messages) => messages.get(left),
                };
            }
            left -= here;
        }
        None
    }

    /// All messages in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.spans.iter().flat_map(|span| {
            let (kept, made) = match span {
                Span::Kept(range) => (range.clone(), &[] as &[Arc<Message>]),
                Span::Made(messages) => (0..0, &messages[..]),
            };
            self.log.range(kept).chain(made)
        })
    }

    /// The messages at these positions, cut to what there is. Costs the number of spans.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut slice = Self { log: self.log.clone(), spans: Vec::new() };
        let mut before = 0;
        for span in &self.spans {
            let here = length(span);
            let start = range.start.saturating_sub(before).min(here);
            let end = range.end.saturating_sub(before).min(here);
            if start < end {
                slice.push(part(span, start..end));
            }
            before += here;
        }
        slice
    }

    /// This history followed by `other`, over the same transcript.
    #[must_use]
    pub fn then(mut self, other: &Self) -> Self {
        for span in &other.spans {
            self.push(span.clone());
        }
        self
    }

    /// The messages that `keep` accepts. Costs the number of messages.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&Arc<Message>) -> bool) -> Self {
        let mut kept = Self { log: self.log.clone(), spans: Vec::new() };
        for span in &self.spans {
            for at in 0..length(span) {
                let message = match span {
                    Span::Kept(range) => self.log.get(range.start + at),
                    Span::Made(messages) => messages.get(at),
                };
                if message.is_some_and(&mut keep) {
                    kept.push(part(span, at..at + 1));
                }
            }
        }
        kept
    }

    /// The history without calls that have no result and results that have no call before them. A call that
    /// waits for an approval stays.
    #[must_use]
    pub(crate) fn paired(self) -> Self {
        let mut open: HashMap<&CallId, VecDeque<(usize, usize)>> = HashMap::new();
        let mut orphans: HashSet<usize> = HashSet::new();
        for (at, message) in self.iter().enumerate() {
            if let Message::Assistant(answer) = &**message {
                for (index, call) in answer.tool_calls().enumerate() {
                    open.entry(&call.id).or_default().push_back((at, index));
                }
            }
            if let Message::ToolResult(result) = &**message
                && open.get_mut(&result.tool_call_id).and_then(VecDeque::pop_front).is_none()
            {
                orphans.insert(at);
            }
        }
        let mut unanswered: HashMap<usize, HashSet<usize>> = HashMap::new();
        for (at, index) in open.into_values().flatten() {
            unanswered.entry(at).or_default().insert(index);
        }
        unanswered.retain(|at, _| !self.get(*at).is_some_and(|message| waits_for_approval(message)));
        if orphans.is_empty() && unanswered.is_empty() {
            return self;
        }
        without(&self, &orphans, &unanswered)
    }

    /// Adds a span at the end; one that continues the last is joined with it.
    pub fn push(&mut self, span: Span) {
        let span = match span {
            Span::Kept(range) => Span::Kept(range.start..range.end.min(self.log.len())),
            made @ Span::Made(_) => made,
        };
        if length(&span) == 0 {
            return;
        }
        if let (Some(Span::Kept(last)), Span::Kept(next)) = (self.spans.last_mut(), &span)
            && last.end == next.start
        {
            last.end = next.end;
            return;
        }
        self.spans.push(span);
    }
}

fn length(span: &Span) -> usize {
    match span {
        Span::Kept(range) => range.end.saturating_sub(range.start),
        Span::Made(messages) => messages.len(),
    }
}

/// Messages at positions `range` of a span, which must contain it.
fn part(span: &Span, range: Range<usize>) -> Span {
    match span {
        Span::Kept(kept) => Span::Kept(kept.start + range.start..kept.start + range.end),
        Span::Made(messages) => {
            Span::Made(messages.iter().skip(range.start).take(range.end - range.start).cloned().collect())
        }
    }
}

fn waits_for_approval(message: &Message) -> bool {
    message.content().iter().any(|block| matches!(block, Block::Approval(_)))
}

/// The history without the messages `orphans`, and without the calls `unanswered` (position of the message,
/// numbers of its calls).
fn without(
    history: &History,
    orphans: &HashSet<usize>,
    unanswered: &HashMap<usize, HashSet<usize>>,
) -> History {
    let mut at = 0;
    let untouched = |at: usize| !orphans.contains(&at) && !unanswered.contains_key(&at);
    if unanswered.is_empty() {
        return history.filtered(|_| {
            at += 1;
            untouched(at - 1)
        });
    }
    let mut kept = History::of(history.log().clone(), []);
    for (at, message) in history.iter().enumerate() {
        if untouched(at) {
            kept = kept.then(&history.slice(at..at + 1));
        } else if let Some(rest) = unanswered.get(&at).and_then(|calls| without_calls(message, calls)) {
            kept.push(Span::Made(Arc::from([Arc::new(rest)])));
        }
    }
    kept
}

/// An answer without some of its calls, and without what it thought when it made them; `None` when nothing
/// is left.
fn without_calls(message: &Message, calls: &HashSet<usize>) -> Option<Message> {
    let mut answer = message.as_assistant()?.clone();
    let mut index = 0;
    answer.content.retain(|block| {
        if block.as_tool_call().is_some_and(|call| call.hosted.is_none()) {
            index += 1;
            return !calls.contains(&(index - 1));
        }
        !matches!(block, Block::Thinking(_))
    });
    (!answer.content.is_empty()).then_some(Message::Assistant(answer))
}
