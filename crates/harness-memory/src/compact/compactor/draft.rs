//! A view that is being made shorter: its groups, what they cost, and which of them may be touched.

use std::ops::Range;
use std::sync::Arc;

use harness_core::message::{Message, UserMessage};
use harness_core::transcript::Prefix;

use super::mark::{Form, Mark};
use super::state::{Edit, Shown};
use crate::compact::group::{Group, GroupKind, Groups};
use crate::compact::policy::Recency;
use crate::compact::shown::Shown as Placed;
use crate::compact::tokens::{TokenCounter, message_tokens};

/// A group of the view, or several nested ones.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) kind: GroupKind,
    pub(super) form: Form,
    /// Current content.
    pub(super) messages: Vec<Arc<Message>>,
    /// Messages of the transcript that this draft has replaced.
    pub(super) originals: Option<Vec<Arc<Message>>>,
    pub(super) tokens: u64,
    /// Where its messages are in the transcript, as long as it is unchanged.
    places: Vec<Option<usize>>,
    /// Range of the transcript that it shows or replaces.
    range: Option<Range<usize>>,
    is_fixed: bool,
    changed: bool,
}

impl Slot {
    /// The messages to make something else of: those of the transcript where they are at hand.
    pub(super) fn sources(&self) -> &[Arc<Message>] {
        self.originals.as_deref().unwrap_or(&self.messages)
    }

    /// Shows other messages in its place, which cost so many tokens.
    pub(super) fn replace(&mut self, form: Form, messages: Vec<Arc<Message>>, tokens: u64) {
        let before = std::mem::replace(&mut self.messages, messages);
        self.originals.get_or_insert(before);
        self.places.clear();
        self.form = form;
        self.tokens = tokens;
        self.changed = true;
    }
}

/// A view that is being made shorter.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) slots: Vec<Slot>,
    /// Tokens of all slots, as counted.
    pub(super) tokens: u64,
    /// Messages of all slots.
    pub(super) messages: usize,
    /// Slots from here on are recent.
    recent: usize,
    /// Changes that may still be made.
    allowed: u32,
}

impl Draft {
    /// The groups of a view; `cost` gives the tokens of each message. Costs one pass.
    pub(super) fn of(shown: &[Shown], keep_first_prompt: bool, mut cost: impl FnMut(&Shown) -> u64) -> Self {
        let groups = Groups::of(shown);
        let first_user = task_of(shown, &groups).filter(|_| keep_first_prompt);
        let newest = groups.newest();
        let mut slots: Vec<Slot> = Vec::with_capacity(groups.len());
        let mut at = 0;
        while let Some(index) = groups.index_of(at) {
            // Groups that lie inside one another are one slot, up to where the last of them ends.
            let (mut end, mut members) = (at + 1, 0..0);
            let mut next = at;
            // A result that no call is there for stays with what is before it: no view begins with a result.
            while next < end || shown.get(next).is_some_and(|shown| is_result(&shown.message)) {
                end = end.max(next + 1);
                if let Some(group) = groups.index_of(next).and_then(|index| groups.get(index)) {
                    end = end.max(group.last() + 1);
                    members.end += usize::from(group.first() == next);
                }
                next += 1;
            }
            let part = shown.get(at..end).unwrap_or_default();
            let group = groups.get(index);
            let is_fixed = members.len() != 1
                || group.is_none_or(Group::is_protected)
                || [first_user, newest].contains(&Some(index));
            slots.push(slot_of(part, group, is_fixed, part.iter().map(&mut cost).sum()));
            at = end;
        }
        let tokens = slots.iter().map(|slot| slot.tokens).sum();
        Self { slots, tokens, messages: shown.len(), recent: 0, allowed: u32::MAX }
    }

    /// Allows so many changes.
    pub(super) fn allow(&mut self, changes: u32) {
        self.allowed = changes;
    }

    /// Whether no further change may be made.
    pub(super) fn is_closed(&self) -> bool {
        self.allowed == 0
    }

    /// Keeps the newest slots that reach every number.
    pub(super) fn keep(&mut self, recency: Recency) {
        let mut kept = Recency::default();
        let oldest_kept = self.slots.iter().rposition(|slot| {
            kept.messages += slot.messages.len();
            kept.tokens = kept.tokens.saturating_add(slot.tokens);
            kept.groups += usize::from(!matches!(slot.kind, GroupKind::System | GroupKind::Unsent));
            kept.calls += usize::from(slot.kind == GroupKind::ToolCall);
            kept.messages >= recency.messages
                && kept.tokens >= recency.tokens
                && kept.groups >= recency.groups
                && kept.calls >= recency.calls
        });
        self.recent = oldest_kept.unwrap_or(0);
    }

    /// The places of the slots that may be touched, oldest first.
    pub(super) fn candidates(&self) -> Vec<usize> {
        let open = self.slots.iter().enumerate().take(self.recent).filter(|(_, slot)| !slot.is_fixed);
        open.map(|(at, _)| at).collect()
    }

    /// The tokens of everything that can become shorter: no compaction gains more. What is a summary already
    /// does not; what is short already does only where it `may_go` altogether.
    pub(super) fn possible_gain(&self, may_go: bool) -> u64 {
        let open = self.slots.iter().take(self.recent).filter(|slot| !slot.is_fixed);
        let shrinking = open.filter(|slot| match slot.form {
            Form::Whole => true,
            Form::Stored | Form::Cleared | Form::Collapsed => may_go,
            Form::Summary => false,
        });
        shrinking.map(|slot| slot.tokens).sum()
    }

    /// Shows other messages for a slot when they cost less; whether they do.
    pub(super) fn try_replace(
        &mut self,
        at: usize,
        form: Form,
        messages: Vec<Message>,
        counter: &dyn TokenCounter,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(at) else { return false };
        let tokens = messages.iter().map(|message| message_tokens(counter, message)).sum();
        if tokens >= slot.tokens {
            return false;
        }
        self.allowed = self.allowed.saturating_sub(1);
        self.tokens = self.tokens - slot.tokens + tokens;
        self.messages = self.messages - slot.messages.len() + messages.len();
        slot.replace(form, messages.into_iter().map(Arc::new).collect(), tokens);
        true
    }

    /// Shows one message for all of these slots, at the place of the first.
    pub(super) fn replace_all(&mut self, places: &[usize], message: Message, tokens: u64) {
        let mut messages = vec![Arc::new(message)];
        let mut tokens = tokens;
        self.allowed = self.allowed.saturating_sub(1);
        for at in places {
            if let Some(slot) = self.slots.get_mut(*at) {
                self.tokens = self.tokens - slot.tokens + tokens;
                self.messages = self.messages - slot.messages.len() + messages.len();
                slot.replace(Form::Summary, std::mem::take(&mut messages), std::mem::take(&mut tokens));
            }
        }
    }

    /// Shows nothing for a slot.
    pub(super) fn drop_slot(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            self.allowed = self.allowed.saturating_sub(1);
            self.tokens -= slot.tokens;
            self.messages -= slot.messages.len();
            slot.replace(slot.form, Vec::new(), 0);
        }
    }

    /// Changes of this draft, as edits of the transcript.
    pub(super) fn edits(&self, log: &Prefix) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut open: Option<(Range<usize>, Vec<Arc<Message>>, bool)> = None;
        let mut close = |open: Option<(Range<usize>, Vec<Arc<Message>>, bool)>| {
            if let Some((range, made, true)) = open {
                edits.extend(Edit::new(range, made, log));
            }
        };
        for slot in &self.slots {
            let Some(range) = slot.range.clone() else { continue };
            match &mut open {
                // Slots that an earlier edit made together change together.
                Some((held, made, changed)) if range.start < held.end => {
                    held.end = held.end.max(range.end);
                    made.extend(slot.messages.iter().cloned());
                    *changed |= slot.changed;
                }
                Some(_) | None => {
                    close(open.take());
                    open = Some((range, slot.messages.clone(), slot.changed));
                }
            }
        }
        close(open);
        edits
    }

    /// Current content.
    pub(super) fn shown(&self) -> Vec<Placed> {
        let of_slot = |slot: &Slot| {
            let places = slot.places.clone().into_iter().chain(std::iter::repeat(None));
            let messages = slot.messages.clone().into_iter();
            messages.zip(places).map(|(message, at)| Placed { message, at }).collect::<Vec<_>>()
        };
        self.slots.iter().flat_map(of_slot).collect()
    }

    /// Whether anything was changed.
    pub(super) fn is_changed(&self) -> bool {
        self.slots.iter().any(|slot| slot.changed)
    }
}

/// The group that states the task: the first thing that the user said in the transcript.
fn task_of(shown: &[Shown], groups: &Groups) -> Option<usize> {
    let is_said = |group: &Group| {
        let first = shown.get(group.first());
        group.kind == GroupKind::User
            && first.is_some_and(|shown| {
                shown.at.is_some() && !is_summary(&shown.message) && Mark::of(&shown.message).is_none()
            })
    };
    groups.iter().position(is_said).or_else(|| groups.first_user())
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::ToolResult(_))
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(UserMessage { origin: Some(origin), .. }) if origin == "summary")
}

fn slot_of(part: &[Shown], group: Option<&Group>, is_fixed: bool, tokens: u64) -> Slot {
    let marks = part.iter().filter_map(|shown| Mark::of(&shown.message));
    let form = marks.map(|mark| mark.form).max().unwrap_or(Form::Whole);
    let is_foreign = part.iter().any(|shown| shown.stands_for.is_none());
    let ranges = || part.iter().filter_map(|shown| shown.stands_for.as_ref());
    let range = ranges().map(|range| range.start).min().zip(ranges().map(|range| range.end).max());
    let positions = || part.iter().filter_map(|shown| shown.at);
    let has_gap = positions().zip(positions().skip(1)).any(|(at, next)| next != at + 1);
    Slot {
        kind: group.map_or(GroupKind::Unsent, |group| group.kind),
        form,
        messages: part.iter().map(|shown| Arc::clone(&shown.message)).collect(),
        originals: None,
        places: part.iter().map(|shown| shown.at).collect(),
        tokens,
        range: range.filter(|_| !is_foreign).map(|(start, end)| start..end),
        is_fixed: is_fixed || is_foreign || has_gap,
        changed: false,
    }
}
