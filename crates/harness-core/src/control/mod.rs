//! Steering a run of many turns: whether it still makes progress, and what to tell it when.
//!
//! Plain data and pure functions over what the run knows; nothing here asks a model or a tool.

mod instruction;
mod progress;

pub use instruction::{Instruction, Instructions, Standing, When};
pub use progress::{Fingerprint, Progress, ProgressTracker};
