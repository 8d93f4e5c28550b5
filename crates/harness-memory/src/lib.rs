//! Memory of agents: layers that feed the view within a token budget, and compaction
//! with one owner that never loses the task.
//!
//! | module | what it has |
//! |---|---|
//! | [`layer`] | layers and their pipeline: the `ContextPipeline` port of harness-core |
//! | [`builtin`] | layers that come with the crate, and the stores they write to |
//! | [`compact`] | the engine, its policies and summaries: the `Compactor` port of harness-core |

pub mod builtin;
pub mod compact;
mod error;
pub mod layer;
mod shared;

pub use error::{LayerProblem, MemoryError};
