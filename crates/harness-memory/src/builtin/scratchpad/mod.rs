//! The scratchpad: content that the agent keeps in view, and notes that it reads when needed.

mod layer;
mod notes;

pub use layer::{Scratchpad, StateCheck};
pub use notes::NoteBounds;
