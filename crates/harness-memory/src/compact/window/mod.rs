//! Strategies over groups: what is left out is marked with a reason, and what was said stays as it was.
//!
//! A [`Window`] holds the groups of a transcript with their tokens; strategies mark groups as left out or
//! put a line in their place, and [`Window::view`] shows the rest. All of them keep whole groups, the newest
//! group, pinned messages and calls that wait for something.
//!
//! ```
//! use harness_core::message::Message;
//! use harness_memory::compact::item::Item;
//! use harness_memory::compact::tokens::CharacterCounter;
//! use harness_memory::compact::window::{SlidingWindow, Window, WindowStrategy};
//!
//! let items = ["one", "two", "three"].map(|text| Item::new(text, Message::user(text)));
//! let mut window = Window::of(&items, &CharacterCounter);
//! assert!(SlidingWindow::new(2)?.apply(&mut window, &CharacterCounter));
//! let names: Vec<_> = window.view().into_iter().map(|item| item.id.to_string()).collect();
//! assert_eq!(names, ["two", "three"]);
//! # Ok::<(), harness_memory::compact::CompactError>(())
//! ```

mod budget;
mod state;
mod strategy;
mod summarize;
mod tools;

pub use budget::{ContextWindow, TokenBudgetComposed};
pub use state::{ExcludeReason, FlooredCharacters, Window, WindowGroup, WindowMessage};
pub use strategy::{Measure, SlidingWindow, Truncation, WindowStrategy};
pub use summarize::{Summarization, SummaryRequest};
pub use tools::{SelectiveToolCall, ToolResults, collapsed};
