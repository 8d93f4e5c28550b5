//! The command that answers one prompt: what a worker bridge runs for each request.

use std::time::Duration;

use harness_core::Cancel;
use harness_core::Json;

/// One prompt for a [`CliRunner`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CliInput {
    /// Prompt for the command.
    pub prompt: String,
    /// How long the command may take.
    pub timeout: Duration,
    /// Working directory; `None` is that of the process.
    pub cwd: Option<std::path::PathBuf>,
    /// The model that it should use.
    pub model: Option<String>,
    /// Cancellation signal, which stops the command and all its children.
    pub cancel: Cancel,
}

impl CliInput {
    /// A prompt with a timeout.
    pub fn new(prompt: impl Into<String>, timeout: Duration) -> Self {
        Self { prompt: prompt.into(), timeout, cwd: None, model: None, cancel: Cancel::never() }
    }
}

/// Outcome of a [`CliRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CliOutcome {
    /// It ended with code 0.
    Completed {
        /// Output without trailing white space; may be empty.
        text: String,
        /// Additional data of the command: a session, usage, cost.
        metadata: Option<Json>,
    },
    /// It did not start, failed, or took too long.
    Failed {
        /// Human-readable error.
        error: String,
        /// The end of what it wrote to its standard error, bounded.
        stderr: Option<String>,
        /// Its exit code, when it ended by itself.
        exit_code: Option<i32>,
    },
}

/// Runs one prompt through a command-line program.
///
/// The runners that ship are `claude`, `codex`, `opencode`, `gemini` and `bash`; an application adds its
/// own by implementing this.
pub trait CliRunner: Send + Sync {
    /// The runner's name; results of a bridge name their backend after it.
    fn id(&self) -> &str;

    /// Runs the prompt. Every failure comes back as an outcome. When the future ends or is dropped, nothing
    /// of the command is left running.
    fn run(&self, input: CliInput) -> impl Future<Output = CliOutcome> + Send;
}

harness_core::twin! {
    DynCliRunner of CliRunner {
        async fn run_boxed = run(input: CliInput) -> CliOutcome;
        fn name = id() -> &str;
    }
}
