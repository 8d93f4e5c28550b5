//! Local programs as backends and runners.
//!
//! - [`LocalCommandAdapter`] runs any program for each request: you define its invocation and how
//!   to read its output.
//! - [`AgentBackend`] is that adapter for an installed agent ([`LocalAgent`]): Claude Code, Codex,
//!   opencode, the Gemini CLI, or a script. Its events are forwarded as they arrive, and its
//!   session continues with the next request. [`probe`] checks whether it is installed and new
//!   enough.
//! - [`LocalRunner`] answers the prompts of a worker with the same programs, as plain text.
//!
//! No shell is involved. A program receives exactly its arguments, its stdin and a few named
//! variables. Its time and output are bounded, and it is stopped with every process it started.

mod adapter;
mod agent;
mod ended;
mod output;
mod probe;
mod program;
mod runner;
mod secret;
mod version;

pub use adapter::{LocalCommandAdapter, MAX_LINE};
pub use agent::{AgentBackend, LocalAgent, Permission};
pub use ended::Exit;
pub use output::{OutputFormat, OutputReader, ParsedOutput, Reading};
pub use probe::{Found, Probe, probe};
pub use program::{Invocation, LocalProgram};
pub use runner::LocalRunner;
pub use version::Version;
