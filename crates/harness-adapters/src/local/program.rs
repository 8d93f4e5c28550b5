//! A program of this machine, and what bounds it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_host::process::{DynLauncher, Ended, Environment, Launch, Launcher, Limits, PASSED};

/// A program that a backend or a runner starts, with its surroundings and its bounds.
///
/// It starts without a shell in a separate process group, and ends with every process that it started: at
/// its time limit, on cancellation, and when its output exceeds the bound.
///
/// ```
/// use std::time::Duration;
///
/// use harness_adapters::local::LocalProgram;
/// use harness_host::process::Environment;
///
/// let surroundings = Environment::from_iter([("PATH", "/usr/bin"), ("AWS_SECRET", "s3cret")]);
/// let program = LocalProgram::new("reviewer")
///     .pass(&surroundings, ["LANG"])
///     .cwd("/srv/work")
///     .timeout(Duration::from_secs(120));
/// assert_eq!(format!("{:?}", program.env), r#"{"PATH"}"#);
/// ```
#[derive(Clone, derive_more::Debug)]
#[non_exhaustive]
pub struct LocalProgram {
    /// The program: a path, or a name that is looked up in the `PATH` of its environment.
    pub program: OsString,
    /// Arguments before those of every request: a script for an interpreter. Default: none.
    pub leading: Vec<OsString>,
    /// Working directory; `None` is that of this process.
    pub cwd: Option<PathBuf>,
    /// Its whole environment. Default empty: not even `PATH` is inherited.
    pub env: Environment,
    /// How long it may run. Default 60 s.
    pub timeout: Duration,
    /// How long it may take to end after SIGTERM, before SIGKILL. Default 500 ms.
    pub grace: Duration,
    /// How many bytes of stdout are kept: the beginning and the end. Default 8 MiB.
    pub max_output: usize,
    /// How many bytes of stderr are kept in the same way. Default 64 KiB.
    pub max_stderr: usize,
    /// Where it runs. Default: on this machine.
    #[debug(skip)]
    pub launcher: Option<Arc<dyn DynLauncher>>,
}

impl LocalProgram {
    /// A program with an empty environment and the default bounds.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            leading: Vec::new(),
            cwd: None,
            env: Environment::default(),
            timeout: Duration::from_mins(1),
            grace: Duration::from_millis(500),
            max_output: 8 * 1024 * 1024,
            max_stderr: 64 * 1024,
            launcher: None,
        }
    }

    /// With these arguments before those of every request.
    #[must_use]
    pub fn leading(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.leading = args.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// With the variables of [`PASSED`] and those of `names` that `surroundings` has.
    #[must_use]
    pub fn pass<'n>(mut self, surroundings: &Environment, names: impl IntoIterator<Item = &'n str>) -> Self {
        for name in PASSED.into_iter().chain(names) {
            if let Some(value) = surroundings.get(name) {
                self.env.set(name, value);
            }
        }
        self
    }

    /// With all variables of `surroundings`, secrets included.
    #[must_use]
    pub fn pass_all(mut self, surroundings: &Environment) -> Self {
        for (name, value) in surroundings.iter() {
            self.env.set(name, value);
        }
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.set(name, value);
        self
    }

    /// Stopped after this time.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.timeout = span;
        self
    }

    /// Killed this long after it was asked to end.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// With so many bytes of stdout and of stderr kept.
    #[must_use]
    pub fn kept(mut self, stdout: usize, stderr: usize) -> Self {
        (self.max_output, self.max_stderr) = (stdout, stderr);
        self
    }

    /// Runs it with `launcher`: on another machine, in a container, or not at all in a test.
    #[must_use]
    pub fn launcher(mut self, launcher: impl Launcher + 'static) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }

    /// The program as messages name it.
    pub(super) fn name(&self) -> std::borrow::Cow<'_, str> {
        self.program.to_string_lossy()
    }

    /// Runs it once.
    pub(super) async fn run(
        &self,
        invocation: &Invocation,
        timeout: Duration,
        unwanted: impl Future<Output = ()> + Send,
        mut tap: impl FnMut(&[u8]) + Send,
    ) -> std::io::Result<Ended> {
        let args: Vec<_> = self.leading.iter().chain(&invocation.args).cloned().collect();
        let limits = Limits::new(timeout).grace(self.grace).kept(self.max_output, self.max_stderr);
        let mut launch = Launch::new(&self.program, &args, self.env.clone(), limits).cwd(self.cwd.as_deref());
        if let Some(input) = &invocation.stdin {
            launch = launch.stdin(input.as_str());
        }
        tracing::debug!(program = %self.name(), "starts a program");
        match &self.launcher {
            Some(launcher) => launcher.launch_boxed(launch, Box::pin(unwanted), &mut tap).await,
            None => Box::pin(harness_host::process::run_with(launch, unwanted, tap)).await,
        }
    }
}

/// Invocation of a program for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// Its arguments, passed as they are: there is no shell.
    pub args: Vec<OsString>,
    /// Standard input; `None` is empty. The program need not read it.
    pub stdin: Option<String>,
}

impl Invocation {
    /// Arguments, and an empty stdin.
    pub fn new(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), stdin: None }
    }

    /// With a text on stdin.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }
}
