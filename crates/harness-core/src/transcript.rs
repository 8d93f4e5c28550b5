//! The append-only transcript, and the views of it that models are sent.
//!
//! A machine owns its transcript and only ever appends. A request shares a *prefix* of it (one `Arc`
//! and a length), so that a call in flight, a slow reader and the growing log never copy a message.

mod force;
mod pairing;

use std::collections::BTreeSet;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::message::Message;

pub use pairing::{Defect, DefectKind, Provenance, Repaired, check, repair};

/// Messages of a page: few enough to be copied when the last page is shared while it grows, and for an
/// allocator to hand out and take back at once.
const PAGE: usize = 16;

type Page = [Option<Arc<Message>>; PAGE];

#[derive(Clone, Debug, Default)]
struct Log {
    /// Tells what grew out of it from any other log.
    id: Arc<()>,
    full: Arc<Vec<Arc<Page>>>,
    /// The page that grows.
    last: Page,
}

impl Log {
    fn get(&self, at: usize) -> Option<&Arc<Message>> {
        let page = self.full.get(at / PAGE).map_or(&self.last, |page| page);
        page.get(at % PAGE)?.as_ref()
    }

    fn push(&mut self, at: usize, message: Arc<Message>) {
        let at = at % PAGE;
        if let Some(cell) = self.last.get_mut(at) {
            *cell = Some(message);
        }
        if at + 1 == PAGE {
            let page = Arc::new(std::mem::take(&mut self.last));
            Arc::make_mut(&mut self.full).push(page);
        }
    }
}

/// The messages of a thread, in order. One owner appends; prefixes of it are shared.
///
/// Messages that are there never change. What can be read of it is what can be read of its [`Prefix`].
///
/// An append while a prefix of it is held elsewhere copies the references of the last page, at most fifteen;
/// every sixteenth one those of the list of pages, too.
///
/// A transcript takes any messages; [`check`] and [`repair`] judge them. A machine repairs what it is given, so
/// that it never works over a call without its result, or a result without its call.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::transcript::{Prefix, Transcript};
///
/// let mut log = Transcript::default();
/// log.push(Arc::new(Message::user("Hello")));
/// let before: Prefix = log.prefix();
/// log.push(Arc::new(Message::user("Is anybody there?")));
/// assert_eq!((before.len(), log.len()), (1, 2));
/// assert!(before.is_start_of(&log.prefix()));
/// ```
#[derive(Debug, Default)]
pub struct Transcript {
    prefix: Prefix,
    /// The ids of all calls, once somebody looks for one.
    calls: OnceLock<BTreeSet<CallId>>,
    /// Messages that are known to be legal: what was found so before, back to its last answer.
    legal: usize,
}

impl Transcript {
    /// Appends a message.
    pub fn push(&mut self, message: Arc<Message>) {
        if let Some(calls) = self.calls.get_mut() {
            calls.extend(call_ids(&message));
        }
        Arc::make_mut(&mut self.prefix.log).push(self.prefix.len, message);
        self.prefix.len += 1;
    }

    /// Whether a call has this id. What a transcript was shortened by counts, too.
    pub(crate) fn has_call(&self, id: &CallId) -> bool {
        self.calls().contains(id)
    }

    fn calls(&self) -> &BTreeSet<CallId> {
        self.calls.get_or_init(|| self.iter().flat_map(|message| call_ids(message)).collect())
    }

    /// Replaces the messages; the ids of calls that go stay taken.
    pub(crate) fn replace(&mut self, messages: Transcript) {
        let mut calls = self.calls().clone();
        calls.extend(messages.calls().iter().cloned());
        *self = Self { calls: OnceLock::from(calls), ..messages };
    }

    /// The transcript made legal by [`repair`], and what was repaired. Costs a look at each message that came
    /// since the last time.
    pub(crate) fn repaired(mut self) -> (Self, Vec<Defect>) {
        let from = self.legal;
        if check(self.prefix.range(from..self.prefix.len)).is_empty() {
            let last = (from..self.prefix.len).rev().find(|at| {
                self.prefix.get(*at).is_some_and(|message| matches!(**message, Message::Assistant(_)))
            });
            self.legal = last.unwrap_or(from);
            return (self, Vec::new());
        }
        let Repaired { messages, defects } = repair(self.prefix.iter());
        (messages.into_iter().map(|(message, _)| message).collect(), defects)
    }

    /// A shared prefix: everything that is there now. Costs one reference count.
    pub fn prefix(&self) -> Prefix {
        self.prefix.clone()
    }
}

fn call_ids(message: &Message) -> impl Iterator<Item = CallId> + '_ {
    let answer = message.as_assistant().into_iter();
    answer.flat_map(|answer| answer.tool_calls().map(|call| call.id.clone()))
}

impl Deref for Transcript {
    type Target = Prefix;

    fn deref(&self) -> &Prefix {
        &self.prefix
    }
}

impl FromIterator<Arc<Message>> for Transcript {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut transcript = Self::default();
        for message in messages {
            transcript.push(message);
        }
        transcript
    }
}

/// The first messages of a transcript, shared with it. Later appends do not show.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    log: Arc<Log>,
    len: usize,
}

impl Prefix {
    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `other` is this prefix or what the same transcript grew to later. Costs no look at a message.
    pub fn is_start_of(&self, other: &Self) -> bool {
        self.len <= other.len && Arc::ptr_eq(&self.log.id, &other.log.id)
    }

    /// The message at a position.
    pub fn get(&self, at: usize) -> Option<&Arc<Message>> {
        if at < self.len { self.log.get(at) } else { None }
    }

    /// Whether the last answer has calls that wait for their results, be it only the ones that say that they never
    /// ran.
    pub fn has_open_calls(&self) -> bool {
        let mut answered = 0;
        for message in self.iter().rev() {
            match &**message {
                Message::ToolResult(_) => answered += 1,
                Message::Assistant(answer) => return answered < answer.tool_calls().count(),
                Message::System(_) | Message::User(_) | Message::Custom(_) => return false,
            }
        }
        false
    }

    /// The last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.log.get(self.len.checked_sub(1)?)
    }

    /// The messages of a range, cut to what there is.
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        (range.start..range.end.min(self.len)).filter_map(|at| self.log.get(at))
    }

    /// All messages in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.range(0..self.len)
    }

    /// Creates a transcript that starts with these messages and grows independently. Its full pages are shared with
    /// this prefix; the references of the last page, at most fifteen, are copied.
    pub fn fork(&self) -> Transcript {
        let pages = self.len / PAGE;
        let full = if pages == self.log.full.len() {
            Arc::clone(&self.log.full)
        } else {
            Arc::new(self.log.full.iter().take(pages).cloned().collect())
        };
        let mut log = Log { id: Arc::default(), full, last: Page::default() };
        for (cell, message) in log.last.iter_mut().zip(self.range(pages * PAGE..self.len)) {
            *cell = Some(Arc::clone(message));
        }
        let prefix = Self { log: Arc::new(log), len: self.len };
        Transcript { prefix, ..Transcript::default() }
    }
}

/// A part of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Span {
    /// Messages of the transcript, unchanged. An end past the transcript is open: it grows with it.
    Kept(Range<usize>),
    /// Messages that are not in the transcript (recalled, summarized).
    Made(Arc<[Arc<Message>]>),
}

/// The only form of projection: which messages a model is sent, as spans over the transcript.
///
/// It costs its number of spans, not of messages, and cannot change a message of the transcript.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::transcript::{Plan, PlanFault, Span, Transcript, View};
///
/// let log: Transcript = ["one", "two", "three"].map(|text| Arc::new(Message::user(text))).into_iter().collect();
/// let summary = Arc::new([Arc::new(Message::user("They counted to two."))]);
/// let plan = Plan { spans: Arc::new([Span::Made(summary), Span::Kept(2..3)]) };
/// plan.check(&log.prefix())?;
/// assert_eq!(View::planned(log.prefix(), plan).len(), 2);
/// # Ok::<(), PlanFault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The spans in order.
    pub spans: Arc<[Span]>,
}

/// Why a plan is refused: it would show a call without its result, or a result without its call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan splits a tool call from its result at message {at}")]
pub struct PlanFault {
    /// The position of the message at the border.
    pub at: usize,
}

impl Plan {
    /// Checks that no border of a kept span stands between a call and its result (law 6).
    ///
    /// # Errors
    /// The first border that does. Costs the length of the batches at the borders, not of the log.
    pub fn check(&self, log: &Prefix) -> Result<(), PlanFault> {
        let mut next_kept_from = None;
        for span in self.spans.iter() {
            match span {
                Span::Kept(range) => {
                    let end = range.end.min(log.len());
                    if next_kept_from != Some(range.start) && in_batch(log, range.start) {
                        return Err(PlanFault { at: range.start });
                    }
                    next_kept_from = Some(end);
                    if end < log.len() && in_batch(log, end) && !self.continues_at(end) {
                        return Err(PlanFault { at: end });
                    }
                }
                Span::Made(_) => next_kept_from = None,
            }
        }
        Ok(())
    }

    fn continues_at(&self, end: usize) -> bool {
        self.spans
            .windows(2)
            .any(|pair| matches!(pair, [Span::Kept(a), Span::Kept(b)] if a.end == end && b.start == end))
    }
}

/// Whether the message at `at` is a tool result, which belongs to the calls before it.
fn in_batch(log: &Prefix, at: usize) -> bool {
    log.get(at).is_some_and(|message| matches!(**message, Message::ToolResult(_)))
}

/// The exact messages that a model is sent in one iteration.
#[derive(Clone, Debug)]
pub struct View {
    prefix: Prefix,
    plan: Option<Plan>,
}

impl View {
    /// Everything in `prefix`.
    pub fn whole(prefix: Prefix) -> Self {
        Self { prefix, plan: None }
    }

    /// What `plan` shows of `prefix`.
    pub fn planned(prefix: Prefix, plan: Plan) -> Self {
        Self { prefix, plan: Some(plan) }
    }

    /// Calls `f` with each message in order.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a Arc<Message>)) {
        let Some(plan) = &self.plan else {
            self.prefix.iter().for_each(f);
            return;
        };
        for span in plan.spans.iter() {
            match span {
                Span::Kept(range) => {
                    self.prefix.range(range.clone()).for_each(&mut f);
                }
                Span::Made(messages) => messages.iter().for_each(&mut f),
            }
        }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        let Some(plan) = &self.plan else { return self.prefix.len };
        plan.spans
            .iter()
            .map(|span| match span {
                Span::Kept(range) => range.end.min(self.prefix.len).saturating_sub(range.start),
                Span::Made(messages) => messages.len(),
            })
            .sum()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        let Some(plan) = &self.plan else {
            return self.prefix.last();
        };
        plan.spans.iter().rev().find_map(|span| match span {
            Span::Kept(range) => {
                let end = range.end.min(self.prefix.len);
                if end > range.start { self.prefix.get(end - 1) } else { None }
            }
            Span::Made(messages) => messages.last(),
        })
    }

    /// The transcript behind the view.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::message::{AssistantMessage, ToolCall, ToolResultMessage};

    fn log(n: usize) -> Transcript {
        (0..n).map(|i| Arc::new(Message::user(i.to_string()))).collect()
    }

    #[test]
    fn every_message_is_found_whoever_holds_what_was_there_before() {
        let mut log = Transcript::default();
        let mut held = Vec::new();
        for n in 0..100 {
            if n % 3 == 0 {
                held.push(log.prefix());
            }
            log.push(Arc::new(Message::user(n.to_string())));
        }
        let said = |prefix: &Prefix| prefix.iter().map(|message| message.joined_text()).collect::<Vec<_>>();
        let expected: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(said(&log), expected);
        for prefix in held {
            assert_eq!(said(&prefix), expected[..prefix.len()]);
            assert!(prefix.is_start_of(&log));
        }
    }

    #[test]
    fn a_prefix_does_not_see_later_appends() {
        let mut log = log(3);
        let prefix = log.prefix();
        log.push(Arc::new(Message::user("later")));
        assert_eq!((prefix.len(), prefix.get(3), log.len()), (3, None, 4));
    }

    #[test]
    fn a_prefix_is_known_as_the_start_of_a_later_one() {
        let mut log = log(3);
        let early = log.prefix();
        log.push(Arc::new(Message::user("later")));
        assert!(early.is_start_of(&log) && early.is_start_of(&early));
        assert!(!log.prefix().is_start_of(&early));
        assert!(!early.is_start_of(&early.iter().cloned().collect::<Transcript>()));
    }

    #[test]
    fn fault_46_fork_shares_full_pages_and_grows_independently() {
        let mut log = log(100);
        for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 99, 100] {
            let prefix = Prefix { log: Arc::clone(&log.prefix.log), len };
            let mut fork = prefix.fork();
            assert!(fork.iter().eq(prefix.iter()), "{len}");
            for (shared, page) in fork.log.full.iter().zip(log.prefix.log.full.iter()) {
                assert!(Arc::ptr_eq(shared, page), "{len}");
            }
            fork.push(Arc::new(Message::user("fork")));
            assert_eq!((fork.len(), prefix.len(), log.len()), (len + 1, len, 100));
            assert!(!log.is_start_of(&fork));
        }
        log.push(Arc::new(Message::user("later")));
    }

    #[test]
    fn a_view_shows_what_its_plan_says() {
        let kept = |range| Span::Kept(range);
        let made = Span::Made(Arc::from([Arc::new(Message::user("sum"))]));
        let plan = Plan { spans: Arc::from([kept(0..1), made, kept(3..usize::MAX)]) };
        let view = View::planned(log(5).prefix(), plan);
        let mut texts = Vec::new();
        view.for_each(|m| texts.push(m.joined_text()));
        assert_eq!(texts, ["0", "sum", "3", "4"]);
        assert_eq!(view.len(), 4);
        assert_eq!(view.last().map(|m| m.joined_text()), Some("4".into()));
    }

    #[test]
    fn law_6_a_plan_that_splits_a_call_from_its_result_is_refused() {
        let call = ToolCall::new("c", "t", Json::empty_object());
        let log: Transcript = [
            Message::user("go"),
            AssistantMessage::calls([call.clone()]).into(),
            ToolResultMessage::new(&call, Vec::new(), false).into(),
            Message::user("more"),
        ]
        .into_iter()
        .map(Arc::new)
        .collect();
        let check = |spans: &[Span]| Plan { spans: spans.into() }.check(&log.prefix());
        assert_eq!(check(&[Span::Kept(1..usize::MAX)]), Ok(()));
        assert_eq!(check(&[Span::Kept(0..2), Span::Kept(2..4)]), Ok(()));
        assert_eq!(check(&[Span::Kept(0..2)]), Err(PlanFault { at: 2 }));
        assert_eq!(check(&[Span::Kept(2..4)]), Err(PlanFault { at: 2 }));
        assert_eq!(check(&[Span::Kept(0..1), Span::Kept(2..4)]), Err(PlanFault { at: 2 }));
    }
}
