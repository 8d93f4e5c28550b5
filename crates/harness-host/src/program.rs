//! Programs that code of a host may run: by a command line, or as a process with a handle.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness_core::port::BoxFuture;
use harness_core::{Cancel, Millis};

/// How a program is run, and its bounds. `Debug` names variables without their values: those may be secrets.
///
/// ```
/// use harness_core::Millis;
/// use harness_host::ProcessOptions;
///
/// let options = ProcessOptions::new().cwd("/docs").env("TOKEN", "s3cret").timeout(Millis(5_000));
/// assert!(!format!("{options:?}").contains("s3cret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOptions {
    /// Working directory, in the terms of the port. Default: that of the port.
    pub cwd: Option<Arc<str>>,
    /// Environment variables in addition to those of the port. Default none.
    pub env: BTreeMap<String, String>,
    /// Input on stdin. Default empty.
    pub stdin: String,
    /// Time limit. Default 30 s.
    pub timeout: Millis,
    /// Bytes of stdout and of stderr that are kept, half from the start and half from the end. Default 64 KiB.
    pub max_output: usize,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self {
            cwd: None,
            env: BTreeMap::new(),
            stdin: String::new(),
            timeout: Millis(30_000),
            max_output: 64 * 1024,
        }
    }
}

impl fmt::Debug for ProcessOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessOptions")
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("stdin", &format_args!("{} bytes", self.stdin.len()))
            .field("timeout", &self.timeout)
            .field("max_output", &self.max_output)
            .finish()
    }
}

impl ProcessOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<Arc<str>>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the input.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<String>) -> Self {
        self.stdin = input.into();
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, limit: Millis) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets the number of bytes that are kept of each output.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }
}

/// Output of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOutput {
    /// Exit code; `None` if a signal ended the program, or it was stopped.
    pub exit_code: Option<i32>,
    /// Text of stdout.
    pub stdout: String,
    /// Text of stderr.
    pub stderr: String,
    /// Whether output was omitted; a note marks the place.
    pub truncated: bool,
}

impl ProcessOutput {
    /// Complete output.
    pub fn new(exit_code: Option<i32>, stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        Self { exit_code, stdout: stdout.into(), stderr: stderr.into(), truncated: false }
    }

    /// Whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Error of a program that did not exit by itself. A non-zero exit code is an output, not an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessFault {
    /// It could not be started.
    #[error("`{program}` was not started: {problem}")]
    NotStarted {
        /// Name of the program.
        program: String,
        /// Reason and fix.
        problem: String,
    },
    /// The port starts nothing, or not this.
    #[error("`{program}` is not run here: {reason}")]
    Refused {
        /// Name of the program.
        program: String,
        /// Reason and fix.
        reason: String,
    },
    /// It was stopped at its timeout.
    #[error("`{program}` did not finish within {limit} and was stopped")]
    TimedOut {
        /// Name of the program.
        program: String,
        /// The time limit.
        limit: Millis,
        /// Output until then.
        output: Box<ProcessOutput>,
    },
    /// It was cancelled, possibly before its start.
    #[error("`{program}` was stopped: the run was cancelled")]
    Cancelled {
        /// Name of the program.
        program: String,
        /// Output until then.
        output: Box<ProcessOutput>,
    },
    /// It printed without end, and was stopped.
    #[error("`{program}` printed more than {most} bytes and was stopped")]
    TooMuchOutput {
        /// Name of the program.
        program: String,
        /// The limit in bytes.
        most: u64,
        /// Output that was kept.
        output: Box<ProcessOutput>,
    },
    /// Its exit status is unknown.
    #[error("exit status of `{program}` is unknown: {problem}")]
    Lost {
        /// Name of the program.
        program: String,
        /// Cause of the loss.
        problem: String,
    },
}

impl ProcessFault {
    /// Stable code, shared with the tools that run programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotStarted { .. } => "spawn_error",
            Self::Refused { .. } => "process_refused",
            Self::TimedOut { .. } => "timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::TooMuchOutput { .. } => "too_much_output",
            Self::Lost { .. } => "process_lost",
        }
    }

    /// Output until the program was stopped.
    pub fn output(&self) -> Option<&ProcessOutput> {
        match self {
            Self::TimedOut { output, .. }
            | Self::Cancelled { output, .. }
            | Self::TooMuchOutput { output, .. } => Some(output),
            Self::NotStarted { .. } | Self::Refused { .. } | Self::Lost { .. } => None,
        }
    }
}

/// Runs command lines to their end.
///
/// A port for code of the host. No gate is consulted: tools decide what a model may run.
///
/// ```
/// use harness_core::Cancel;
/// use harness_host::{ProcessFault, ProcessOptions, ProcessOutput, Shell};
///
/// /// Knows one command.
/// struct EchoOnly;
///
/// impl Shell for EchoOnly {
///     async fn exec(
///         &self,
///         command: &str,
///         _: &ProcessOptions,
///         _: &Cancel,
///     ) -> Result<ProcessOutput, ProcessFault> {
///         Ok(match command.strip_prefix("echo ") {
///             Some(text) => ProcessOutput::new(Some(0), format!("{text}\n"), ""),
///             None => ProcessOutput::new(Some(127), "", "there is only echo\n"),
///         })
///     }
/// }
/// ```
pub trait Shell: Send + Sync {
    /// Runs a command line, in the command language of the port. The program ends, with its children, when `cancel` fires,
    /// at the time limit, when it prints too much, and when the future is dropped.
    ///
    /// # Errors
    /// When it did not exit by itself.
    fn exec(
        &self,
        command: &str,
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<ProcessOutput, ProcessFault>> + Send;
}

harness_core::twin! {
    DynShell of Shell {
        async fn exec_boxed = exec(
            command: &'a str,
            options: &'a ProcessOptions,
            cancel: &'a Cancel
        ) -> Result<ProcessOutput, ProcessFault>;
    }
}

/// Starts programs that run beside the code that started them.
///
/// ```
/// use harness_core::Cancel;
/// use harness_host::{Process, ProcessFault, ProcessOptions, Subprocess};
///
/// /// Starts nothing.
/// struct Nothing;
///
/// impl Subprocess for Nothing {
///     async fn spawn(
///         &self,
///         program: &str,
///         _: &[String],
///         _: &ProcessOptions,
///         _: &Cancel,
///     ) -> Result<Box<dyn Process>, ProcessFault> {
///         Err(ProcessFault::Refused { program: program.to_owned(), reason: "nothing is".to_owned() })
///     }
/// }
/// ```
pub trait Subprocess: Send + Sync {
    /// Starts a program; arguments are passed unchanged. It ends, with its children, when `cancel` fires, at the time
    /// limit, when it prints too much, and when its handle is dropped.
    ///
    /// # Errors
    /// [`ProcessFault::NotStarted`], [`ProcessFault::Refused`], or [`ProcessFault::Cancelled`] when `cancel` has
    /// fired already.
    fn spawn(
        &self,
        program: &str,
        args: &[String],
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<Box<dyn Process>, ProcessFault>> + Send;
}

harness_core::twin! {
    DynSubprocess of Subprocess {
        async fn spawn_boxed = spawn(
            program: &'a str,
            args: &'a [String],
            options: &'a ProcessOptions,
            cancel: &'a Cancel
        ) -> Result<Box<dyn Process>, ProcessFault>;
    }
}

/// A program that was started. Dropping this ends it.
pub trait Process: Send + Sync + fmt::Debug {
    /// Waits for its end; any number may wait, and dropping the future changes nothing.
    ///
    /// Fails when it did not exit by itself.
    fn wait(&self) -> BoxFuture<'_, Result<ProcessOutput, ProcessFault>>;

    /// Result, once it has ended.
    fn result(&self) -> Option<Result<ProcessOutput, ProcessFault>>;

    /// Output on stdout so far, within the limit.
    fn printed(&self) -> String;

    /// Ends it, with its children; [`Process::wait`] completes when it is gone.
    fn kill(&self);
}
