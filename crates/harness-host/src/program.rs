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
    /// The folder that it works in, as the port names folders. Default: the port's own.
    pub cwd: Option<Arc<str>>,
    /// Variables of its environment, over those that the port gives. Default none.
    pub env: BTreeMap<String, String>,
    /// What it reads from stdin. Default nothing.
    pub stdin: String,
    /// How long it may run before it is stopped. Default 30 s.
    pub timeout: Millis,
    /// How many bytes of stdout are kept, and of stderr as many: the beginning and the end. Default 64 KiB.
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
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// In this folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<Arc<str>>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// With this to read.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<String>) -> Self {
        self.stdin = input.into();
        self
    }

    /// Stopped after this time.
    #[must_use]
    pub fn timeout(mut self, limit: Millis) -> Self {
        self.timeout = limit;
        self
    }

    /// With so many bytes kept of stdout, and as many of stderr.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }
}

/// What a program left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOutput {
    /// Its exit code; `None` when it did not exit by itself: a signal ended it, or it was stopped.
    pub exit_code: Option<i32>,
    /// What it printed to stdout, as text.
    pub stdout: String,
    /// What it printed to stderr, as text.
    pub stderr: String,
    /// Whether something of it was left out; a note stands at its place.
    pub truncated: bool,
}

impl ProcessOutput {
    /// All that a program printed.
    pub fn new(exit_code: Option<i32>, stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        Self { exit_code, stdout: stdout.into(), stderr: stderr.into(), truncated: false }
    }

    /// The same, with something left out.
    #[must_use]
    pub fn truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// Whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Why a program has no exit of its own. Another exit code than 0 is none of these: it is an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessFault {
    /// It could not be started.
    #[error("`{program}` was not started: {problem}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why, and what to do.
        problem: String,
    },
    /// The port starts nothing, or not this.
    #[error("`{program}` is not run here: {reason}")]
    Refused {
        /// The program.
        program: String,
        /// Why, and what to do.
        reason: String,
    },
    /// It was stopped at its timeout.
    #[error("`{program}` did not finish within {limit} and was stopped")]
    TimedOut {
        /// The program.
        program: String,
        /// Its timeout.
        limit: Millis,
        /// What it had printed.
        output: Box<ProcessOutput>,
    },
    /// It was stopped, or not even started, because nobody wants its result any more.
    #[error("`{program}` was stopped because its result is not wanted any more")]
    Cancelled {
        /// The program.
        program: String,
        /// What it had printed.
        output: Box<ProcessOutput>,
    },
    /// It printed without end, and was stopped.
    #[error("`{program}` printed more than {most} bytes and was stopped")]
    TooMuchOutput {
        /// The program.
        program: String,
        /// The bound.
        most: u64,
        /// What was kept.
        output: Box<ProcessOutput>,
    },
    /// Nobody knows what became of it.
    #[error("what became of `{program}` is not known: {problem}")]
    Lost {
        /// The program.
        program: String,
        /// What happened.
        problem: String,
    },
}

impl ProcessFault {
    /// A stable code; those of the tools that run programs where they have it.
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

    /// What it had printed when it was stopped.
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
/// It is a port for code of the host. It asks no gate: what a model may run is a tool's business.
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
    /// Runs a command line, in the port's own language of commands. It ends when `cancel` fires, at its
    /// timeout and when it prints without end, with all that it started; when the future is dropped, too.
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
    /// Starts a program with these arguments, passed as they are. It ends when `cancel` fires, at its timeout,
    /// when it prints without end, and when its handle is dropped, with all that it started.
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

    /// What came of it, once it has ended.
    fn result(&self) -> Option<Result<ProcessOutput, ProcessFault>>;

    /// What it has printed to stdout so far, within its bound.
    fn printed(&self) -> String;

    /// Ends it, with all that it started; [`Process::wait`] tells when it is gone.
    fn kill(&self);
}
