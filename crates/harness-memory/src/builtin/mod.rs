//! Layers that come with the crate, and the stores they write to.

mod arguments;
mod buffer;
pub mod embed;
mod files;
mod history_window;
pub mod notes;
mod observations;
mod probe;
mod static_content;
pub mod steering;
mod task_state;
mod temporal;
mod text;
mod tool_memory;
mod tree;
mod working_memory;

pub use files::FileReferences;
pub use history_window::HistoryWindow;
pub use observations::{ModelObserver, Observations, Observer};
pub use probe::LayerProbe;
pub use static_content::{ContentSource, StaticContent};
pub use task_state::{DataMerge, TaskState};
pub use temporal::{FactFinder, TemporalFacts};
pub use tool_memory::ToolMemory;
pub use working_memory::{StateCheck, WorkingMemory};
