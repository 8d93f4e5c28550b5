//! Groups that are shown or left out.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::TokenCounter;

use crate::compact::group::{GroupKind, Groups};
use crate::compact::item::{Item, units};
use crate::compact::tokens::message_tokens;

/// Why a group is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExcludeReason {
    /// It was among the oldest, and there was too much.
    Truncation,
    /// It is older than the window.
    SlidingWindow,
    /// Its calls are older than those that are kept.
    ToolCallCompaction,
    /// A line with its results stands for it.
    ToolResultCompaction,
    /// A summary stands for it.
    Summarized,
    /// It was among the oldest, and no strategy freed enough.
    TokenBudgetFallback,
    /// It is of the system, and nothing else was left.
    TokenBudgetFallbackStrict,
}

impl ExcludeReason {
    /// The code of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Truncation => "truncation",
            Self::SlidingWindow => "sliding_window",
            Self::ToolCallCompaction => "tool_call_compaction",
            Self::ToolResultCompaction => "tool_result_compaction",
            Self::Summarized => "summarized",
            Self::TokenBudgetFallback => "token_budget_fallback",
            Self::TokenBudgetFallbackStrict => "token_budget_fallback_strict",
        }
    }
}

/// A quarter of the characters, rounded down, and at least 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlooredCharacters;

impl TokenCounter for FlooredCharacters {
    fn count(&self, text: &str) -> u64 {
        (text.chars().count() as u64 / 4).max(1)
    }

    fn name(&self) -> &'static str {
        "floor(characters/4)"
    }
}

/// One message of the wire in a window.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WindowMessage {
    /// Its name.
    pub id: Arc<str>,
    /// Its parts; more than one when results share a message.
    pub parts: Vec<Arc<Message>>,
    /// Its tokens.
    pub tokens: u64,
    /// Where it stands: the place among the original messages, and the made ones before it, newest first.
    place: (usize, i64),
}

/// A group in a window.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WindowGroup {
    /// `group_` and the name of its first message.
    pub id: String,
    /// What it is.
    pub kind: GroupKind,
    /// Whether a model's reasoning is in it.
    pub has_reasoning: bool,
    /// Whether no strategy leaves it out (law 6); the system part has its own rules.
    pub is_kept: bool,
    /// Its messages, in order.
    pub messages: Vec<WindowMessage>,
    /// Why it is left out, when it is.
    pub excluded: Option<ExcludeReason>,
    /// The message that stands for it, when one does.
    pub summarized_by: Option<Arc<str>>,
}

impl WindowGroup {
    /// Its tokens.
    pub fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| message.tokens).sum()
    }

    /// Whether it is shown and counts: what no model is sent does not.
    pub fn is_included(&self) -> bool {
        self.excluded.is_none() && self.kind != GroupKind::Unsent
    }
}

/// A transcript as groups that are shown or left out.
///
/// What it shows and how much that is are kept up to date by differences, so every strategy costs one pass
/// over the groups.
#[derive(Clone, Debug, Default)]
pub struct Window {
    groups: Vec<WindowGroup>,
    tokens: u64,
    included: usize,
    messages: usize,
    made: i64,
}

impl Window {
    /// The groups of `items`, counted by what a request would hold of them.
    pub fn of(items: &[Item], counter: &dyn TokenCounter) -> Self {
        Self::weighed(items, |parts| {
            parts.iter().map(|item| message_tokens(counter, &item.message)).fold(0, u64::saturating_add)
        })
    }

    /// The groups of `items`; `weigh` tells the tokens of a message by its parts.
    pub fn weighed(items: &[Item], weigh: impl Fn(&[Item]) -> u64) -> Self {
        let groups = Groups::of(items);
        let newest = groups.newest();
        let shells = groups
            .iter()
            .enumerate()
            .map(|(index, group)| WindowGroup {
                id: items.get(group.first()).map_or_else(String::new, |item| format!("group_{}", item.id)),
                kind: group.kind,
                has_reasoning: group.has_reasoning,
                is_kept: group.is_pinned || group.is_pending || Some(index) == newest,
                messages: Vec::with_capacity(group.members.len()),
                excluded: None,
                summarized_by: None,
            })
            .collect();
        let mut window = Self { groups: shells, ..Self::default() };
        for unit in units(items) {
            let place = unit.start;
            let parts = items.get(unit).unwrap_or_default();
            let owner = groups.index_of(place).and_then(|index| window.groups.get_mut(index));
            if let (Some(first), Some(group)) = (parts.first(), owner) {
                let message = WindowMessage {
                    id: first.id.clone(),
                    parts: parts.iter().map(|item| item.message.clone()).collect(),
                    tokens: weigh(parts),
                    place: (place, 0),
                };
                if group.is_included() {
                    window.tokens += message.tokens;
                    window.included += 1;
                }
                window.messages += 1;
                group.messages.push(message);
            }
        }
        window
    }

    /// The groups in order, with those that are left out.
    pub fn groups(&self) -> &[WindowGroup] {
        &self.groups
    }

    /// Tokens of what is shown.
    pub fn included_tokens(&self) -> u64 {
        self.tokens
    }

    /// Messages that are shown.
    pub fn included_messages(&self) -> usize {
        self.included
    }

    /// Messages that there are, shown or not, made ones too.
    pub fn total_messages(&self) -> usize {
        self.messages
    }

    /// The messages that are shown, in order.
    pub fn view(&self) -> Vec<Item> {
        let shown = self.groups.iter().filter(|group| group.excluded.is_none());
        let mut messages: Vec<&WindowMessage> = shown.flat_map(|group| &group.messages).collect();
        messages.sort_by_key(|message| message.place);
        messages
            .into_iter()
            .flat_map(|message| message.parts.iter().map(|part| Item::new(message.id.clone(), part.clone())))
            .collect()
    }

    /// Leaves a group out; whether it was shown and may be left out.
    pub(super) fn exclude(&mut self, index: usize, reason: ExcludeReason) -> bool {
        let Some(group) = self.groups.get_mut(index) else { return false };
        if group.is_kept || !group.is_included() {
            return false;
        }
        group.excluded = Some(reason);
        self.tokens = self.tokens.saturating_sub(group.tokens());
        self.included = self.included.saturating_sub(group.messages.len());
        true
    }

    /// Leaves groups out and puts one text of the assistant in their place. Returns whether anything was
    /// left out; when not, the text is not put in.
    pub(super) fn replace(&mut self, replacement: &Replacement, counter: &dyn TokenCounter) -> Option<Made> {
        let mut place = None;
        for index in &replacement.groups {
            let first = self.groups.get(*index).and_then(|group| group.messages.first());
            let first = first.map(|message| message.place);
            if self.exclude(*index, replacement.reason) {
                place = [place, first].into_iter().flatten().min();
                if let Some(group) = self.groups.get_mut(*index) {
                    group.summarized_by = Some(replacement.id.clone());
                }
            }
        }
        let (at, _) = place?;
        let message = Message::from(AssistantMessage::text(replacement.text.clone()));
        self.made += 1;
        let made = WindowMessage {
            id: replacement.id.clone(),
            tokens: counter.count(&replacement.text),
            parts: vec![message.into()],
            place: (at, -self.made),
        };
        self.tokens += made.tokens;
        self.included += 1;
        self.messages += 1;
        let group = WindowGroup {
            id: format!("group_{}", made.id),
            kind: GroupKind::AssistantText,
            has_reasoning: false,
            is_kept: false,
            messages: vec![made],
            excluded: None,
            summarized_by: None,
        };
        Some(Made { before: replacement.groups.iter().copied().min().unwrap_or_default(), group })
    }

    /// Puts made groups where they belong, in one pass.
    pub(super) fn insert(&mut self, mut made: Vec<Made>) {
        if made.is_empty() {
            return;
        }
        made.sort_by_key(|made| made.before);
        let mut made = made.into_iter().peekable();
        let mut groups = Vec::with_capacity(self.groups.len() + made.len());
        for (index, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            while let Some(next) = made.next_if(|next| next.before <= index) {
                groups.push(next.group);
            }
            groups.push(group);
        }
        groups.extend(made.map(|made| made.group));
        self.groups = groups;
    }

    /// The indexes of the groups that are shown and that `wanted` accepts, in order.
    pub(super) fn shown(&self, wanted: impl Fn(&WindowGroup) -> bool) -> Vec<usize> {
        let shown = self.groups.iter().enumerate().filter(|(_, group)| group.is_included() && wanted(group));
        shown.map(|(index, _)| index).collect()
    }
}

/// A text in the place of groups.
pub(super) struct Replacement {
    pub(super) groups: Vec<usize>,
    pub(super) id: Arc<str>,
    pub(super) text: String,
    pub(super) reason: ExcludeReason,
}

/// A made group, and the group that it stands before.
pub(super) struct Made {
    before: usize,
    group: WindowGroup,
}
