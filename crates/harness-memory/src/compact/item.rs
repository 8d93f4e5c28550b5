//! Messages with the names by which strategies speak of them.

use std::ops::Range;
use std::sync::Arc;

use harness_core::message::Message;

/// A message and its name.
///
/// Neighbours of one name are the parts of one message on the wire: some protocols send all results of a
/// batch in one message. They are counted and taken as one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// The name: stable, and unique but for parts.
    pub id: Arc<str>,
    /// The message.
    pub message: Arc<Message>,
}

impl Item {
    /// A message and its name.
    pub fn new(id: impl Into<Arc<str>>, message: impl Into<Arc<Message>>) -> Self {
        Self { id: id.into(), message: message.into() }
    }

    /// The messages of a transcript, named by their positions: `msg_0`, `msg_1`, … A transcript only
    /// grows, so these names stay.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use harness_core::message::Message;
    /// use harness_memory::compact::item::Item;
    ///
    /// let items = Item::number([Arc::new(Message::user("hello"))]);
    /// assert_eq!(&*items[0].id, "msg_0");
    /// ```
    pub fn number(messages: impl IntoIterator<Item = Arc<Message>>) -> Vec<Self> {
        let named = messages.into_iter().enumerate();
        named.map(|(at, message)| Self::new(format!("msg_{at}"), message)).collect()
    }
}

impl AsRef<Message> for Item {
    fn as_ref(&self) -> &Message {
        &self.message
    }
}

/// The messages of the wire: for each, where its parts lie.
pub(super) fn units(items: &[Item]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let continues = at
            .checked_sub(1)
            .and_then(|before| items.get(before))
            .is_some_and(|before| before.id == item.id && before.message.as_tool_result().is_some());
        match units.last_mut() {
            Some(unit) if continues => unit.end = at + 1,
            _ => units.push(at..at + 1),
        }
    }
    units
}
