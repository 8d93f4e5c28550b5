//! Plans over a growing transcript, and combined with other plans.

use std::ops::Range;
use std::sync::Arc;

use super::{Plan, Span};
use crate::message::Message;

impl Plan {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
