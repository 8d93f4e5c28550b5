//! Atomic groups: messages that are removed together or not at all.
//!
//! A call without its result, or a result without its call, is a request that no provider accepts, and
//! some refuse a call without the reasoning before it. So the unit of every compaction is the group: one
//! system message, one user message, one text of the assistant, or a batch of calls with its reasoning and
//! its results.

use std::collections::HashMap;

use harness_core::message::{ApprovalState, AssistantMessage, Block, Message};
use harness_core::{CallId, Json};

/// Kind of a [`Group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum GroupKind {
    /// A system message.
    System,
    /// A user message, or one of the application's that is sent as user text.
    User,
    /// A message of the assistant without calls.
    AssistantText,
    /// Calls, the reasoning around them, and their results; or results whose call is not there.
    ToolCall,
    /// A message of the application's own that no model is sent.
    Unsent,
}

/// Messages that are removed together or not at all, by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// Kind of the group.
    pub kind: GroupKind,
    /// The positions of its messages, ascending; never empty. A late result comes after messages of other
    /// groups.
    pub members: Vec<usize>,
    /// Whether a model's reasoning is in it.
    pub has_reasoning: bool,
    /// Whether a call in it has no result yet, or an approval in it has not been decided.
    pub is_pending: bool,
    /// Whether a message in it is pinned; see [`is_pinned`].
    pub is_pinned: bool,
}

impl Group {
    fn of_one(kind: GroupKind, at: usize, message: &Message) -> Self {
        Self {
            kind,
            members: vec![at],
            has_reasoning: has_reasoning(message),
            is_pending: false,
            is_pinned: is_pinned(message),
        }
    }

    fn add(&mut self, at: usize, message: &Message) {
        self.members.push(at);
        self.has_reasoning |= has_reasoning(message);
        self.is_pinned |= is_pinned(message);
    }

    /// The position of its first message.
    pub fn first(&self) -> usize {
        self.members.first().copied().unwrap_or_default()
    }

    /// The position of its last message.
    pub fn last(&self) -> usize {
        self.members.last().copied().unwrap_or_default()
    }

    /// Whether no compaction may touch it: the system part, what is pinned, and what waits for a result or
    /// a decision (law 6).
    pub fn is_protected(&self) -> bool {
        self.kind == GroupKind::System || self.is_pinned || self.is_pending
    }
}

/// The groups of a list of messages, in the order of their first messages.
///
/// Costs one pass over the messages.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
/// use harness_memory::compact::group::{GroupKind, Groups};
///
/// let call = ToolCall::new("c1", "read_file", Json::empty_object());
/// let result = ToolResultMessage::new(&call, vec![Block::text("data")], false);
/// let messages = [
///     Arc::new(Message::user("What does it say?")),
///     Arc::new(AssistantMessage::calls([call]).into()),
///     Arc::new(result.into()),
///     Arc::new(AssistantMessage::text("data").into()),
/// ];
/// let groups = Groups::of(&messages);
/// let kinds: Vec<_> = groups.iter().map(|group| (group.kind, group.members.len())).collect();
/// assert_eq!(kinds, [(GroupKind::User, 1), (GroupKind::ToolCall, 2), (GroupKind::AssistantText, 1)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    groups: Vec<Group>,
    group_of: Vec<usize>,
}

impl Groups {
    /// The groups of `messages`.
    pub fn of<M: AsRef<Message>>(messages: &[M]) -> Self {
        let mut scan = Scan { messages, groups: Vec::new(), waiting: HashMap::new() };
        let mut at = 0;
        while let Some(message) = messages.get(at) {
            at = scan.take(at, message.as_ref());
        }
        scan.finish()
    }

    /// The groups in the order of their first messages.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Group> + ExactSizeIterator {
        self.groups.iter()
    }

    /// The group at an index.
    pub fn get(&self, index: usize) -> Option<&Group> {
        self.groups.get(index)
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The index of the group that the message at `position` belongs to.
    pub fn index_of(&self, position: usize) -> Option<usize> {
        self.group_of.get(position).copied()
    }

    /// Index of the first group of the user, which states the task and is never removed.
    pub fn first_user(&self) -> Option<usize> {
        self.groups.iter().position(|group| group.kind == GroupKind::User)
    }

    /// Index of the newest group other than system messages, which is never removed.
    pub fn newest(&self) -> Option<usize> {
        self.groups.iter().rposition(|group| !matches!(group.kind, GroupKind::System | GroupKind::Unsent))
    }
}

/// Marks a message as pinned: no compaction removes it.
///
/// The mark is a block that no model is sent.
///
/// ```
/// use harness_core::message::{Message, UserMessage};
/// use harness_memory::compact::group::{is_pinned, pin};
///
/// let mut rule = UserMessage::text("Never write outside of /srv.");
/// rule.content.push(pin());
/// assert!(is_pinned(&Message::from(rule)));
/// ```
pub fn pin() -> Block {
    Block::extension("harness", "pinned", Json::empty_object())
}

/// Whether a message bears the mark of [`pin`].
pub fn is_pinned(message: &Message) -> bool {
    message.content().iter().any(
        |block| matches!(block, Block::Extension(block) if block.namespace == "harness" && block.name == "pinned"),
    )
}

fn has_reasoning(message: &Message) -> bool {
    message.content().iter().any(|block| matches!(block, Block::Thinking(_)))
}

fn is_reasoning_only(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| {
        !answer.content.is_empty() && answer.content.iter().all(|block| matches!(block, Block::Thinking(_)))
    })
}

fn has_calls(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_some())
}

struct Scan<'a, M> {
    messages: &'a [M],
    groups: Vec<Group>,
    /// The groups with a call of that id which has no result yet, in order.
    waiting: HashMap<&'a CallId, Vec<usize>>,
}

impl<'a, M: AsRef<Message>> Scan<'a, M> {
    fn message(&self, at: usize) -> Option<&'a Message> {
        self.messages.get(at).map(AsRef::as_ref)
    }

    /// Puts the message at `at` and all that follow it in the same place into groups; gives the next place.
    fn take(&mut self, at: usize, message: &'a Message) -> usize {
        let kind = match message {
            Message::System(_) => GroupKind::System,
            Message::User(_) => GroupKind::User,
            Message::Custom(custom) if custom.to_model => GroupKind::User,
            Message::Assistant(_) => return self.take_answer(at, message),
            Message::ToolResult(_) => return self.take_results(at, None),
            Message::Custom(_) | _ => GroupKind::Unsent,
        };
        self.groups.push(Group::of_one(kind, at, message));
        at + 1
    }

    fn take_answer(&mut self, at: usize, message: &'a Message) -> usize {
        let calls_at = self.after_reasoning(at);
        if !self.message(calls_at).is_some_and(has_calls) {
            self.groups.push(Group::of_one(GroupKind::AssistantText, at, message));
            return at + 1;
        }
        let after = self.after_reasoning(calls_at + 1);
        let index = self.groups.len();
        let mut group = Group::of_one(GroupKind::ToolCall, at, message);
        for member in at + 1..after {
            if let Some(message) = self.message(member) {
                group.add(member, message);
            }
        }
        self.groups.push(group);
        let calls = self.message(calls_at).and_then(Message::as_assistant);
        for call in calls.into_iter().flat_map(AssistantMessage::tool_calls) {
            self.waiting.entry(&call.id).or_default().push(index);
        }
        self.take_results(after, Some(index))
    }

    /// The first place from `at` on that is not a message of reasoning alone.
    fn after_reasoning(&self, at: usize) -> usize {
        let rest = self.messages.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|message| is_reasoning_only((*message).as_ref())).count()
    }

    /// Puts the results from `at` on into the group of their call: the batch before them, or the only
    /// earlier one that waits for them. Results without a call are a separate group.
    fn take_results(&mut self, mut at: usize, batch: Option<usize>) -> usize {
        let mut orphans = None;
        while let Some(message) = self.message(at) {
            let Some(result) = message.as_tool_result() else { break };
            let owner = self.owner_of(&result.tool_call_id, batch).or(batch).or(orphans);
            if let Some(group) = owner.and_then(|index| self.groups.get_mut(index)) {
                group.add(at, message);
            } else {
                orphans = Some(self.groups.len());
                self.groups.push(Group::of_one(GroupKind::ToolCall, at, message));
            }
            at += 1;
        }
        at
    }

    /// The group whose call this answers, when there is no doubt; the call waits no more then.
    fn owner_of(&mut self, id: &CallId, batch: Option<usize>) -> Option<usize> {
        let waiting = self.waiting.get_mut(id)?;
        let last = *waiting.last()?;
        if batch != Some(last) && waiting.iter().any(|index| *index != last) {
            return None;
        }
        waiting.pop();
        if waiting.is_empty() {
            // What has its result is forgotten, so that the map holds a batch and not the transcript.
            self.waiting.remove(id);
        }
        Some(last)
    }

    fn finish(mut self) -> Groups {
        for index in self.waiting.values().flatten() {
            if let Some(group) = self.groups.get_mut(*index) {
                group.is_pending = true;
            }
        }
        let mut group_of = vec![0; self.messages.len()];
        for (index, group) in self.groups.iter_mut().enumerate() {
            for member in &group.members {
                if let Some(slot) = group_of.get_mut(*member) {
                    *slot = index;
                }
            }
            group.is_pending |= waits_for_approval(&group.members, self.messages);
        }
        Groups { groups: self.groups, group_of }
    }
}

/// Whether the last entry about an approval in the group is pending.
fn waits_for_approval<M: AsRef<Message>>(members: &[usize], messages: &[M]) -> bool {
    let mut requested: Vec<&CallId> = Vec::new();
    let blocks = members.iter().filter_map(|at| messages.get(*at)).flat_map(|m| m.as_ref().content());
    for block in blocks {
        if let Block::Approval(approval) = block {
            requested.retain(|id| **id != approval.call_id);
            if approval.state == ApprovalState::Requested {
                requested.push(&approval.call_id);
            }
        }
    }
    !requested.is_empty()
}
