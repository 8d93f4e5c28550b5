//! What lives longer than a turn.
//!
//! | module | what it has |
//! |---|---|
//! | [`skill`] | skills: instructions that a model loads when a task asks for them |
//! | [`template`] | prompt templates, and the commands `/name` and `/skill:name` |
//! | [`channel`] | channels between the steps of an execution, and from outside into it |
//! | [`context_file`] | the files that tell an agent about a project (`AGENTS.md`) |
//!
//! The crate knows no files: what lies in folders is read through the
//! [`Workspace`](harness_core::port::Workspace) port, or handed over by the caller.

mod abort;
pub mod channel;
pub mod context_file;
mod front_matter;
pub mod skill;
pub mod template;

pub use abort::Abort;
pub use front_matter::FrontMatterFault;
