//! Layers that come with the crate, and the stores they write to.
//!
//! | layer | what it shows | slot |
//! |---|---|---|
//! | [`TemporalFacts`] | the date, facts by their time | 80 |
//! | [`Reminders`] | what a model tends to forget | 80 |
//! | [`steering::Steering`] | objections to what the agent did; it judges calls and answers | 90 |
//! | [`Scratchpad`] | content that the agent keeps in view, and its notes | 100 |
//! | [`StaticContent`] | a text of the host | 105 |
//! | [`TaskState`] | files, data and outcome of the work | 110 |
//! | [`ToolMemory`] | what tools keep in mind | 110 |
//! | [`ContextFiles`] | `AGENTS.md` and the like | 195 |
//! | [`Observations`] | what was learned from the conversation | 200 |
//! | [`Environment`] | the date and the surroundings | 210 |
//! | [`plan::Plan`] | the plan that is made or carried out; it denies changes while planning | 240 |
//! | [`HistoryWindow`] | the newest part of the history | 275 |
//! | [`Episodes`] | how earlier work ended | 300 |
//! | [`FileReferences`] | files that a person refers to | 350 |
//! | [`SemanticRecall`] | notes of long-term memory that fit | 400 |
//!
//! Where a layer shows what others wrote between tags, a closing tag of that name within is made harmless.

mod arguments;
mod buffer;
mod context_files;
mod environment;
mod episodic;
mod files;
mod history_window;
mod long_term;
pub mod notes;
mod observations;
pub mod plan;
mod probe;
mod reminders;
mod scratchpad;
mod static_content;
pub mod steering;
mod task_state;
mod temporal;
mod text;
mod tool_memory;
mod tools;
mod tree;

pub use context_files::{ContextFile, ContextFileLimits, ContextFileSet, ContextFiles, directories_down_to};
pub use environment::Environment;
pub use episodic::Episodes;
pub use files::FileReferences;
pub use history_window::HistoryWindow;
pub use long_term::SemanticRecall;
pub use observations::{ModelObserver, Observations, Observer};
pub use probe::LayerProbe;
pub use reminders::{Reminder, Reminders};
pub use scratchpad::{NoteBounds, Scratchpad, StateCheck};
pub use static_content::{ContentSource, StaticContent};
pub use task_state::{DataMerge, TaskState};
pub use temporal::{FactFinder, TemporalFacts};
pub use tool_memory::ToolMemory;
pub use tools::memory_tools;

macro_rules! default_is_new {
    ($($layer:ident),*) => {
        $(
            impl Default for $layer {
                fn default() -> Self {
                    Self::new()
                }
            }
        )*
    };
}

default_is_new!(Environment, Observations, Scratchpad, TaskState, TemporalFacts);
