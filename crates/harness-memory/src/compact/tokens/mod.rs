//! Counting tokens: estimates by character and by byte, exact counts with a vocabulary, and counts of whole
//! messages.
//!
//! Estimates are what they say. Measured against one vocabulary, four characters a token is a few percent
//! low on English prose, a third low on JSON that is full of numbers, and far too low on Chinese and
//! Japanese; [`CharacterCounter`] weighs scripts for that reason, and a compactor corrects every
//! counter by what providers report.

mod characters;
mod counter;
#[cfg(feature = "tokenizer")]
mod exact;
mod message;
mod tally;

pub use characters::CharacterCounter;
pub use counter::TokenCounter;
#[cfg(feature = "tokenizer")]
pub use exact::{ExactCounter, Vocabulary};
pub(crate) use message::content_tokens;
pub use message::{IMAGE_TOKENS, message_tokens, prepared_tokens};
pub(crate) use tally::Tally;
