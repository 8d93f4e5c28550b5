//! Programs of this machine as backends and runners.
//!
//! - [`LocalCommandAdapter`] runs any program for each request: you say what it is given and what its output
//!   means.
//! - [`AgentBackend`] is that adapter for an agent that is installed here ([`LocalAgent`]): Claude Code,
//!   Codex, opencode, the Gemini CLI, or a script. Its events are told while they come, and its session goes
//!   on with the next request. [`probe`] finds out whether it is there and new enough.
//! - [`LocalRunner`] answers the prompts of a worker by the same programs, as plain text.
//!
//! No shell stands between. A program is given exactly its arguments, its stdin and a few named variables, it
//! is bounded in time and output, and it ends with all that it started.

mod adapter;
mod agent;
mod ended;
mod fields;
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
