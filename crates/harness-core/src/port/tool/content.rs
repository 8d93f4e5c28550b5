//! The blocks of a tool's result.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::message::{Block, Message};

/// The blocks of a tool's result, read and changed like a vector.
///
/// Once the result stands in a transcript, its message has the blocks and the outcome, which events carry,
/// shares them: a result is never there twice, however long it is. A change makes a copy.
///
/// ```
/// use harness_core::message::Block;
/// use harness_core::port::ToolOutcome;
///
/// let mut outcome = ToolOutcome::text("4");
/// outcome.content.push(Block::text("5"));
/// assert_eq!(outcome.content.len(), 2);
/// outcome.content = vec![Block::text("6")].into();
/// ```
#[derive(Clone, Default)]
pub struct Content {
    own: Vec<Block>,
    /// The tool result message whose blocks these are; then there are none of its own.
    of: Option<Arc<Message>>,
}

impl Content {
    /// The blocks of a tool result message, shared with it.
    pub(super) fn of(message: Arc<Message>) -> Self {
        Self { own: Vec::new(), of: Some(message) }
    }

    /// The blocks; copied when they are shared.
    pub fn into_vec(mut self) -> Vec<Block> {
        std::mem::take(&mut *self)
    }
}

impl Deref for Content {
    type Target = Vec<Block>;

    fn deref(&self) -> &Vec<Block> {
        let shared = self.of.as_ref().and_then(|message| message.as_tool_result());
        shared.map_or(&self.own, |result| &result.content)
    }
}

impl DerefMut for Content {
    fn deref_mut(&mut self) -> &mut Vec<Block> {
        if self.of.is_some() {
            self.own = self.to_vec();
            self.of = None;
        }
        &mut self.own
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        vec![Block::text(text)].into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        vec![Block::text(text)].into()
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self { own: blocks, of: None }
    }
}

impl FromIterator<Block> for Content {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Self {
        blocks.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a Content {
    type Item = &'a Block;
    type IntoIter = std::slice::Iter<'a, Block>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
