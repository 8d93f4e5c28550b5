//! Which entries the messages of a transcript came from, and compactions that name them.
//!
//! A plan counts messages of the transcript as it was when the plan was made. What is stored names the
//! messages instead, so that it stays true when a file is repaired or written anew.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::Entry;
use harness_core::transcript::{Plan, Span};

use crate::note::Note;

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The place of its entry in the store.
    pub(crate) entry: u32,
    /// Which of the messages that a permanent compaction made it is, when that entry is one.
    pub(crate) made: Option<u32>,
}

/// The results that are made for the calls of one message, at most; further ones share a place.
const RESULTS: u32 = 1 << 16;

impl Spot {
    /// Where the result comes from that was made for a call of this message. No compaction made as many
    /// messages, so that it differs from what one made.
    pub(crate) fn result(self, call: u32) -> Self {
        let base = self.made.map_or(1, |made| made.saturating_add(2)).saturating_mul(RESULTS);
        Self { made: Some(base.saturating_add(call.min(RESULTS - 1))), ..self }
    }
}

/// A compaction whose messages are named by `P`.
#[derive(Clone, Debug)]
pub(crate) struct Shortening<P> {
    pub(crate) parts: Vec<Part<P>>,
    /// Whether the transcript itself becomes shorter.
    pub(crate) permanent: bool,
}

/// A part of what is shown.
#[derive(Clone, Debug)]
pub(crate) enum Part<P> {
    /// Messages from `first` (absent: from what follows the compaction) to `last` (absent: to the end, which
    /// moves).
    Kept {
        first: Option<P>,
        last: Option<P>,
    },
    Made(Arc<[Arc<Message>]>),
}

impl<P> Part<P> {
    /// The part with its messages named by another type; `None` when one has no such name.
    pub(crate) fn rename<Q>(self, mut name: impl FnMut(P) -> Option<Q>) -> Option<Part<Q>> {
        let mut each = |point: Option<P>| match point {
            Some(point) => name(point).map(Some),
            None => Some(None),
        };
        Some(match self {
            Self::Kept { first, last } => Part::Kept { first: each(first)?, last: each(last)? },
            Self::Made(messages) => Part::Made(messages),
        })
    }
}

impl<P> Shortening<P> {
    /// The compaction with its messages named by another type; `None` when one has no such name.
    pub(crate) fn rename<Q>(self, mut name: impl FnMut(P) -> Option<Q>) -> Option<Shortening<Q>> {
        let parts = self.parts.into_iter().map(|part| part.rename(&mut name)).collect::<Option<_>>()?;
        Some(Shortening { parts, permanent: self.permanent })
    }
}

/// The entries on the way from a first one to a last one.
#[derive(Debug)]
pub(crate) enum Path {
    /// All that there are.
    Whole,
    /// These places, in order.
    Of(Vec<u32>),
}

impl Path {
    fn contains(&self, place: u32) -> bool {
        match self {
            Self::Whole => true,
            Self::Of(places) => places.binary_search(&place).is_ok(),
        }
    }
}

/// For each message of a transcript, where it came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spine(Vec<Spot>);

impl Spine {
    pub(crate) fn of(spots: Vec<Spot>) -> Self {
        Self(spots)
    }

    /// Adds the message of the entry at `place`.
    pub(crate) fn push(&mut self, place: u32) {
        self.0.push(Spot { entry: place, made: None });
    }

    /// Where the message at a position came from.
    pub(crate) fn spot(&self, position: usize) -> Option<Spot> {
        self.0.get(position).copied()
    }

    /// A plan as it is stored. What is empty is left out.
    pub(crate) fn name(&self, plan: &Plan, permanent: bool) -> Shortening<Spot> {
        let part = |span: &Span| match span {
            Span::Made(messages) => (!messages.is_empty()).then(|| Part::Made(Arc::clone(messages))),
            Span::Kept(range) if range.end > self.0.len() => {
                Some(Part::Kept { first: self.spot(range.start), last: None })
            }
            Span::Kept(range) if range.is_empty() => None,
            Span::Kept(range) => {
                let last = range.end.checked_sub(1).and_then(|last| self.spot(last));
                Some(Part::Kept { first: self.spot(range.start), last })
            }
        };
        Shortening { parts: plan.spans.iter().filter_map(part).collect(), permanent }
    }

    /// Plan of a stored compaction for the current transcript; `None` if it names missing entries.
    pub(crate) fn plan(&self, shortening: &Shortening<Spot>, path: &Path) -> Option<Plan> {
        let mut spans = Vec::with_capacity(shortening.parts.len());
        for part in &shortening.parts {
            spans.push(match part {
                Part::Made(messages) => Span::Made(Arc::clone(messages)),
                Part::Kept { first, last } => {
                    let start = match first {
                        Some(spot) => self.position(*spot, path)?,
                        None => self.0.len(),
                    };
                    let end = match last {
                        Some(spot) => self.position(*spot, path)?.saturating_add(1),
                        None => usize::MAX,
                    };
                    Span::Kept(start..end)
                }
            });
        }
        Some(Plan { spans: spans.into() })
    }

    /// Position of the message at `spot`. An entry of the path that is not a message maps to the
    /// next message after it.
    fn position(&self, spot: Spot, path: &Path) -> Option<usize> {
        let exact = self.0.iter().rposition(|known| *known == spot);
        if exact.is_some() || spot.made.is_some() || !path.contains(spot.entry) {
            return exact;
        }
        let after = self.0.iter().position(|known| known.made.is_none() && known.entry > spot.entry);
        Some(after.unwrap_or(self.0.len()))
    }

    /// Follows what an entry does that was stored at `place`.
    pub(crate) fn advance(&mut self, place: u32, step: &Step) {
        match step {
            Step::Message => self.push(place),
            Step::Shorten(plan) => self.apply(place, plan),
            Step::Nothing => {}
        }
    }

    /// Makes the transcript what the plan of the permanent compaction at `place` shows.
    pub(crate) fn apply(&mut self, place: u32, plan: &Plan) {
        let mut spots = Vec::new();
        let mut made = 0;
        for span in plan.spans.iter() {
            match span {
                Span::Kept(range) => spots.extend_from_slice(cut(&self.0, range.start, range.end)),
                Span::Made(messages) => {
                    for _ in messages.iter() {
                        spots.push(Spot { entry: place, made: Some(made) });
                        made += 1;
                    }
                }
            }
        }
        self.0 = spots;
    }
}

/// Effect of an entry on the transcript.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It adds a message.
    Message,
    /// It makes the transcript what the plan shows.
    Shorten(Plan),
    /// Nothing.
    Nothing,
}

impl Step {
    pub(crate) fn of(entry: &Entry<'_>) -> Self {
        match *entry {
            Entry::Message(_) => Self::Message,
            Entry::Compaction { plan, permanent: true, .. } => Self::Shorten(plan.clone()),
            Entry::CallStarted { .. }
            | Entry::CallFinished { .. }
            | Entry::Compaction { .. }
            | Entry::State { .. }
            | Entry::RunEnd { .. }
            | _ => Self::Nothing,
        }
    }

    pub(crate) fn of_note(note: &Note) -> Self {
        match note {
            Note::BranchSummary { .. } => Self::Message,
            Note::Custom { .. }
            | Note::ConfigChange { .. }
            | Note::Label { .. }
            | Note::SessionInfo { .. } => Self::Nothing,
        }
    }
}

/// Follows an entry that was stored at `place`.
pub(crate) fn advance(spine: &mut Spine, place: u32, entry: &Entry<'_>) {
    spine.advance(place, &Step::of(entry));
}

/// The messages that a plan shows.
pub(crate) fn shown(messages: &[Arc<Message>], plan: &Plan) -> Vec<Arc<Message>> {
    let of = |span: &Span| match span {
        Span::Kept(range) => cut(messages, range.start, range.end).to_vec(),
        Span::Made(messages) => messages.to_vec(),
    };
    plan.spans.iter().flat_map(of).collect()
}

fn cut<T>(all: &[T], start: usize, end: usize) -> &[T] {
    all.get(start..end.min(all.len())).unwrap_or_default()
}
