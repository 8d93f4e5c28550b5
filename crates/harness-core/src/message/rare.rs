//! Fields that few values have.

use std::ops::{Deref, DerefMut};

/// Fields that few values have: one word while none of them is set, read as if they were all absent,
/// allocated when the first is set.
///
/// ```
/// use harness_core::message::AssistantMessage;
///
/// let mut answer = AssistantMessage::text("hello");
/// assert_eq!(answer.rare.provider, None);
/// answer.rare.provider = Some("openrouter".into());
/// ```
#[derive(Clone, Debug)]
pub struct Rare<T>(Option<Box<T>>);

/// A part that can be absent as a whole.
pub trait RarePart: Default + PartialEq + 'static {
    /// The part with nothing set.
    fn absent() -> &'static Self;
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Rare<T> {
    /// The part, when something in it was set.
    pub fn as_ref(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<T: RarePart> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::absent())
    }
}

impl<T: RarePart> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: RarePart> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: RarePart + Eq> Eq for Rare<T> {}
