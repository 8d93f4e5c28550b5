//! State of a compactor for a thread: replaced parts of the transcript.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use harness_core::message::Message;
use harness_core::transcript::{Plan, Prefix, Span};

use super::mark::Mark;
use super::rehydrate::Shelf;
use crate::compact::meter::BudgetMeter;
use crate::compact::shown::{self, Shown as Placed};
use crate::compact::summarize::Breaker;

/// Messages that stand for a range of the transcript; none where they were dropped, or where an earlier edit
/// has the summary of them.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) made: Vec<Arc<Message>>,
    /// The last message of the range: an append-only transcript is the same as long as that is.
    last: Weak<Message>,
}

impl Edit {
    /// `None` for a range that the transcript does not have.
    pub(super) fn new(range: Range<usize>, made: Vec<Arc<Message>>, log: &Prefix) -> Option<Self> {
        let last = Arc::downgrade(log.get(range.end.checked_sub(1)?)?);
        Some(Self { range, made, last })
    }

    fn holds_in(&self, log: &Prefix) -> bool {
        let last = self.range.end.checked_sub(1).and_then(|at| log.get(at));
        last.is_some_and(|now| std::ptr::eq(self.last.as_ptr(), Arc::as_ptr(now)))
    }
}

/// A message of the view in force.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) message: Arc<Message>,
    /// Range of the transcript that it shows or replaces. `None` for messages of others.
    pub(super) stands_for: Option<Range<usize>>,
    /// Its position, when it is a message of the transcript.
    pub(super) at: Option<usize>,
}

impl AsRef<Message> for Shown {
    fn as_ref(&self) -> &Message {
        &self.message
    }
}

/// State of one thread.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) meter: BudgetMeter,
    pub(super) breaker: Breaker,
    pub(super) version: u32,
    /// Whether the last request was too long before it was made shorter.
    pub(super) pressed: bool,
    pub(super) shelf: Shelf,
    edits: Vec<Edit>,
    /// The plan that shows the whole transcript through the edits.
    plan: Option<Plan>,
}

impl State {
    pub(super) fn new(meter: BudgetMeter) -> Self {
        Self {
            meter,
            shelf: Shelf::default(),
            breaker: Breaker::default(),
            version: 0,
            pressed: false,
            edits: Vec::new(),
            plan: None,
        }
    }

    /// Forgets edits of a different transcript, and continues from the plan of an earlier process.
    pub(super) fn follow(&mut self, log: &Prefix, asked: Option<&Plan>) {
        if !self.edits.iter().all(|edit| edit.holds_in(log)) {
            self.edits.clear();
            self.plan = None;
        }
        if self.edits.is_empty()
            && let Some(plan) = asked
        {
            self.edits = adopted(plan, log);
            if !self.edits.is_empty() {
                let own = plan_of(&placed(self.shown(log, None)), log);
                self.plan = Some(if own == *plan { plan.clone() } else { own });
            }
        }
    }

    /// Whether the view that is asked about is the whole transcript, as far as the layers are concerned.
    pub(super) fn is_own(&self, asked: Option<&Plan>) -> bool {
        asked.is_none_or(|plan| {
            self.plan.as_ref().is_some_and(|own| Arc::ptr_eq(&own.spans, &plan.spans) || own == plan)
        })
    }

    /// The plan of the view in force: that of the ask, through the edits.
    pub(super) fn in_force(&self, log: &Prefix, asked: Option<&Plan>) -> Option<Plan> {
        if self.is_own(asked) {
            return self.plan.clone();
        }
        let plan = asked?;
        let is_applied = plan.spans.iter().all(|span| match span {
            Span::Kept(range) => self.edits_in(range).next().is_none(),
            Span::Made(_) => true,
        });
        if is_applied { Some(plan.clone()) } else { Some(plan_of(&placed(self.shown(log, asked)), log)) }
    }

    /// Edits within a range of the transcript.
    fn edits_in(&self, range: &Range<usize>) -> impl Iterator<Item = &Edit> {
        let first = self.edits.partition_point(|edit| edit.range.start < range.start);
        let end = range.end;
        self.edits.iter().skip(first).take_while(move |edit| edit.range.end <= end)
    }

    /// The messages of the view in force.
    pub(super) fn shown(&self, log: &Prefix, asked: Option<&Plan>) -> Vec<Shown> {
        let mut shown = Vec::new();
        let mut own: Option<HashMap<*const Message, &Range<usize>>> = None;
        match asked.filter(|_| !self.is_own(asked)) {
            None => self.show_range(0..log.len(), log, &mut shown),
            Some(plan) => {
                for span in plan.spans.iter() {
                    match span {
                        Span::Kept(range) => {
                            self.show_range(range.start..range.end.min(log.len()), log, &mut shown);
                        }
                        Span::Made(made) => {
                            let own = own.get_or_insert_with(|| self.made());
                            shown.extend(made.iter().map(|message| Shown {
                                message: Arc::clone(message),
                                stands_for: own.get(&Arc::as_ptr(message)).map(|range| Range::clone(range)),
                                at: None,
                            }));
                        }
                    }
                }
            }
        }
        shown
    }

    /// The messages that were made here, and what they stand for.
    fn made(&self) -> HashMap<*const Message, &Range<usize>> {
        let made = self.edits.iter().flat_map(|edit| edit.made.iter().map(move |made| (edit, made)));
        made.map(|(edit, made)| (Arc::as_ptr(made), &edit.range)).collect()
    }

    fn show_range(&self, range: Range<usize>, log: &Prefix, shown: &mut Vec<Shown>) {
        let mut at = range.start;
        for edit in self.edits_in(&range) {
            show_log(at..edit.range.start, log, shown);
            shown.extend(edit.made.iter().map(|message| Shown {
                message: Arc::clone(message),
                stands_for: Some(edit.range.clone()),
                at: None,
            }));
            at = edit.range.end;
        }
        show_log(at..range.end, log, shown);
    }

    /// Puts new edits in force beside those whose range none of them covers. `shown` is the view that was
    /// asked about, with them; gives its plan.
    pub(super) fn put(
        &mut self,
        new: Vec<Edit>,
        shown: &[Placed],
        log: &Prefix,
        asked: Option<&Plan>,
    ) -> Plan {
        let is_own = self.is_own(asked);
        let within = |old: &Edit| {
            let after = new.partition_point(|edit| edit.range.start <= old.range.start);
            let covering = after.checked_sub(1).and_then(|at| new.get(at));
            covering.is_some_and(|edit| edit.range.end >= old.range.end)
        };
        let mut edits: Vec<Edit> = self.edits.iter().filter(|old| !within(old)).cloned().collect();
        edits.extend(new);
        edits.sort_by_key(|edit| edit.range.start);
        self.edits = edits;
        self.version = self.version.saturating_add(1);
        let plan = plan_of(shown, log);
        self.plan = Some(if is_own { plan.clone() } else { plan_of(&placed(self.shown(log, None)), log) });
        plan
    }

    /// The first message of the transcript behind everything that was shortened.
    pub(super) fn first_kept(&self) -> usize {
        self.edits.last().map_or(0, |edit| edit.range.end)
    }
}

fn show_log(range: Range<usize>, log: &Prefix, shown: &mut Vec<Shown>) {
    let messages = range.clone().zip(log.range(range));
    shown.extend(messages.map(|(at, message)| Shown {
        message: Arc::clone(message),
        stands_for: Some(at..at + 1),
        at: Some(at),
    }));
}

fn placed(shown: Vec<Shown>) -> Vec<Placed> {
    shown.into_iter().map(|shown| Placed { message: shown.message, at: shown.at }).collect()
}

fn plan_of(shown: &[Placed], log: &Prefix) -> Plan {
    // A view that does not show the newest message is closed on purpose.
    let open = shown.last().is_none_or(|last| last.at.is_none_or(|at| at + 1 == log.len()));
    shown::plan_of(shown, log, open)
}

/// The edits of a plan that a compactor made before: marked messages between its kept ranges.
fn adopted(plan: &Plan, log: &Prefix) -> Vec<Edit> {
    let (mut edits, mut made, mut end) = (Vec::new(), Vec::<Arc<Message>>::new(), 0);
    let closing = [Span::Kept(log.len()..log.len())];
    for span in plan.spans.iter().chain(&closing) {
        match span {
            Span::Made(messages) => {
                if messages.iter().any(|message| Mark::of(message).is_some()) {
                    made.extend(messages.iter().cloned());
                }
            }
            Span::Kept(range) => {
                if range.start > end && !made.is_empty() {
                    edits.extend(Edit::new(end..range.start, std::mem::take(&mut made), log));
                }
                made.clear();
                end = end.max(range.end.min(log.len()));
            }
        }
    }
    edits
}
