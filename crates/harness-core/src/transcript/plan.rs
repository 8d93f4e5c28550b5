//! Plans: which messages of a transcript a model receives.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Prefix;
use crate::message::Message;

/// Part of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Span {
    /// Messages of the transcript, unchanged. An end past the transcript is open and grows with it.
    Kept(Range<usize>),
    /// Messages that are not in the transcript (recalled, summarized).
    Made(Arc<[Arc<Message>]>),
}

/// The spans of a whole transcript.
const WHOLE: &[Span] = &[Span::Kept(0..usize::MAX)];

/// Projection of a transcript: the messages that a model receives, as spans.
///
/// Its cost depends on the number of spans, not of messages. It cannot change a message of the transcript.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Spans in order.
    pub spans: Arc<[Span]>,
}

/// Invalid plan: it separates a call from its result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan splits a tool call from its result at message {at}")]
pub struct PlanFault {
    /// Position of the message at the border.
    pub at: usize,
}

impl Plan {
    /// Checks that no border of a kept span separates a call from its result (law 6).
    ///
    /// # Errors
    /// The first border that does.
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

    /// Shows a message behind a plan, or behind the whole transcript.
    pub(crate) fn followed_by(plan: Option<&Self>, message: Arc<Message>) -> Self {
        let spans = plan.map_or(WHOLE, |plan| &plan.spans).iter().cloned();
        Self { spans: spans.chain([Span::Made(Arc::from([message]))]).collect() }
    }

    fn continues_at(&self, end: usize) -> bool {
        self.spans
            .windows(2)
            .any(|pair| matches!(pair, [Span::Kept(a), Span::Kept(b)] if a.end == end && b.start == end))
    }

    /// Opens the plan at `len` messages: later messages are shown unchanged, at the end.
    #[must_use]
    pub(crate) fn opened(&self, len: usize) -> Self {
        let mut open = false;
        let mut spans: Vec<Span> = Vec::with_capacity(self.spans.len() + 1);
        for span in self.spans.iter() {
            spans.push(match span {
                Span::Kept(range) if range.end > len => {
                    open = true;
                    Span::Kept(range.start.min(len)..usize::MAX)
                }
                Span::Kept(_) | Span::Made(_) => span.clone(),
            });
        }
        match spans.last_mut() {
            _ if open => {}
            Some(Span::Kept(range)) if range.end == len => range.end = usize::MAX,
            Some(_) | None => spans.push(Span::Kept(len..usize::MAX)),
        }
        if self.spans[..] == spans[..] { self.clone() } else { Self { spans: spans.into() } }
    }

    /// Restricts the kept spans to what `in_force` shows of them. Messages that `in_force` made appear once, in place of
    /// those that they replace.
    #[must_use]
    pub fn under(&self, in_force: &Self) -> Self {
        let parts = in_force.parts();
        let mut spans = Vec::with_capacity(self.spans.len() + parts.len());
        let mut made_up_to = 0;
        for span in self.spans.iter() {
            let Span::Kept(kept) = span else {
                spans.push(span.clone());
                continue;
            };
            let from = parts.partition_point(|(place, _)| place.end < kept.start);
            let overlapping = parts.iter().enumerate().skip(from);
            for (at, (place, part)) in overlapping.take_while(|(_, (place, _))| place.start < kept.end) {
                let common = place.start.max(kept.start)..place.end.min(kept.end);
                match part {
                    Span::Kept(_) if !common.is_empty() => spans.push(Span::Kept(common)),
                    Span::Made(_) if at >= made_up_to && (place.is_empty() || !common.is_empty()) => {
                        made_up_to = at + 1;
                        spans.push((*part).clone());
                    }
                    Span::Kept(_) | Span::Made(_) => {}
                }
            }
        }
        Self { spans: spans.into() }
    }

    /// Spans with their positions: a kept span its range, a made one the gap that it fills.
    fn parts(&self) -> Vec<(Range<usize>, &Span)> {
        let mut reached = 0;
        let mut next_kept = usize::MAX;
        let mut parts: Vec<_> = Vec::with_capacity(self.spans.len());
        for span in self.spans.iter().rev() {
            if let Span::Kept(range) = span {
                next_kept = range.start;
            }
            parts.push((0..next_kept, span));
        }
        parts.reverse();
        for (place, span) in &mut parts {
            if let Span::Kept(range) = span {
                *place = range.clone();
                reached = range.end;
            } else {
                *place = reached..place.end.max(reached);
            }
        }
        parts
    }

    /// Removes the messages that `other` made (by identity, not equality).
    #[must_use]
    pub fn without_made_of(&self, other: &Self) -> Self {
        let made = |span: &Span| match span {
            Span::Made(messages) => Some(Arc::clone(messages)),
            Span::Kept(_) => None,
        };
        let of_other: Vec<_> = other.spans.iter().filter_map(made).collect();
        let is_others = |message: &Arc<Message>| {
            of_other.iter().flat_map(|messages| messages.iter()).any(|made| Arc::ptr_eq(made, message))
        };
        if of_other.is_empty() {
            return self.clone();
        }
        let own = |span: &Span| match span {
            Span::Kept(_) => Some(span.clone()),
            Span::Made(messages) => {
                let own: Vec<_> = messages.iter().filter(|message| !is_others(message)).cloned().collect();
                (!own.is_empty()).then(|| Span::Made(own.into()))
            }
        };
        Self { spans: self.spans.iter().filter_map(own).collect() }
    }
}

/// Whether the message is a tool result, which belongs to the calls before it.
fn in_batch(log: &Prefix, at: usize) -> bool {
    log.get(at).is_some_and(|message| matches!(**message, Message::ToolResult(_)))
}

/// Messages that a model receives in one iteration.
#[derive(Clone, Debug)]
pub struct View {
    prefix: Prefix,
    plan: Option<Plan>,
}

impl View {
    /// Creates a view of all messages.
    pub fn whole(prefix: Prefix) -> Self {
        Self { prefix, plan: None }
    }

    /// Creates the view of a plan.
    pub fn planned(prefix: Prefix, plan: Plan) -> Self {
        Self { prefix, plan: Some(plan) }
    }

    /// Calls `f` with each message in order.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a Arc<Message>)) {
        for span in self.spans() {
            match span {
                Span::Kept(range) => self.prefix.range(range.clone()).for_each(&mut f),
                Span::Made(messages) => messages.iter().for_each(&mut f),
            }
        }
    }

    fn spans(&self) -> &[Span] {
        self.plan.as_ref().map_or(WHOLE, |plan| &plan.spans)
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        let len = |span: &Span| match span {
            Span::Kept(range) => range.end.min(self.prefix.len()).saturating_sub(range.start),
            Span::Made(messages) => messages.len(),
        };
        self.spans().iter().map(len).sum()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.spans().iter().rev().find_map(|span| match span {
            Span::Kept(range) => self.prefix.range(range.clone()).next_back(),
            Span::Made(messages) => messages.last(),
        })
    }

    /// Returns the underlying transcript.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::message::{AssistantMessage, ToolCall, ToolResultMessage};
    use crate::transcript::Transcript;

    fn log(n: usize) -> Transcript {
        (0..n).map(|i| Arc::new(Message::user(i.to_string()))).collect()
    }

    fn kept(range: Range<usize>) -> Span {
        Span::Kept(range)
    }

    fn made(text: &str) -> Span {
        Span::Made(Arc::from([Arc::new(Message::user(text))]))
    }

    fn plan(spans: &[Span]) -> Plan {
        Plan { spans: spans.into() }
    }

    const OPEN: usize = usize::MAX;

    #[test]
    fn opened_plan_shows_later_messages_at_the_end() {
        let check = |spans: &[Span], len: usize, expected: &[Span]| {
            let opened = plan(spans).opened(len);
            assert_eq!(opened, plan(expected));
            assert_eq!(opened.opened(len + 3), opened, "once is enough");
        };
        check(&[kept(0..1), made("s"), kept(3..OPEN)], 5, &[kept(0..1), made("s"), kept(3..OPEN)]);
        check(&[kept(0..1), made("s"), kept(3..5)], 5, &[kept(0..1), made("s"), kept(3..OPEN)]);
        check(&[kept(3..9)], 5, &[kept(3..OPEN)]);
        check(&[kept(7..9)], 5, &[kept(5..OPEN)]);
        check(&[kept(0..2)], 5, &[kept(0..2), kept(5..OPEN)]);
        check(&[kept(0..5), made("tail")], 5, &[kept(0..5), made("tail"), kept(5..OPEN)]);
        check(&[made("all")], 5, &[made("all"), kept(5..OPEN)]);
        check(&[], 5, &[kept(5..OPEN)]);
    }

    #[test]
    fn plan_under_another_shows_each_message_once_and_no_removed_one() {
        let in_force = plan(&[kept(0..1), made("s"), kept(6..8), made("t"), kept(9..OPEN)]);
        let check = |spans: &[Span], expected: &[Span]| {
            assert_eq!(plan(spans).under(&in_force), plan(expected));
        };
        check(&[kept(0..OPEN)], &[kept(0..1), made("s"), kept(6..8), made("t"), kept(9..OPEN)]);
        check(
            &[made("a"), kept(0..OPEN), made("z")],
            &[made("a"), kept(0..1), made("s"), kept(6..8), made("t"), kept(9..OPEN), made("z")],
        );
        check(&[kept(7..OPEN)], &[kept(7..8), made("t"), kept(9..OPEN)]);
        check(&[kept(2..4), made("m"), kept(4..7)], &[made("s"), made("m"), kept(6..7)]);
        check(&[kept(12..OPEN)], &[kept(12..OPEN)]);
        check(&[], &[]);
    }

    #[test]
    fn plan_without_another_keeps_equal_messages_of_its_own() {
        let (theirs, own) = (made("x"), made("x"));
        let both = plan(&[theirs.clone(), kept(0..2), own.clone()]);
        assert_eq!(both.without_made_of(&plan(&[theirs])).spans[..], [kept(0..2), own]);
    }

    #[test]
    fn view_shows_the_spans_of_its_plan() {
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
    fn law_6_plan_that_splits_a_call_from_its_result_is_rejected() {
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
