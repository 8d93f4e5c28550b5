//! A program of this machine, and what bounds it.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use harness_host::process::{DynLauncher, Ended, Launch, Launcher, Limits, ProgramSpec};

/// A program that a backend or a runner starts, and its bounds.
///
/// It starts without a shell in a separate process group, and ends with every process that it started: at
/// its time limit, on cancellation, and when its output exceeds the bound.
///
/// ```
/// use std::time::Duration;
///
/// use harness_adapters::local::LocalProgram;
/// use harness_host::process::{Environment, ProgramSpec};
///
/// let spec = ProgramSpec::new("reviewer").pass(&Environment::of_process(), ["LANG"]).cwd("/srv/work");
/// let mut program = LocalProgram::new(spec);
/// program.limits.time = Duration::from_secs(120);
/// ```
#[derive(Clone, derive_more::Debug)]
#[non_exhaustive]
pub struct LocalProgram {
    /// The program. Its arguments come before those of every request, such as a script for an interpreter.
    pub spec: ProgramSpec,
    /// Limits. Default 60 s, a grace of 500 ms, 8 MiB of stdout and 64 KiB of stderr.
    pub limits: Limits,
    /// Where it runs. Default: on this machine.
    #[debug(skip)]
    pub launcher: Option<Arc<dyn DynLauncher>>,
}

impl LocalProgram {
    /// A program with the default bounds.
    pub fn new(spec: ProgramSpec) -> Self {
        let limits = Limits::new(Duration::from_mins(1)).kept(8 * 1024 * 1024, 64 * 1024);
        Self { spec, limits, launcher: None }
    }

    /// Runs it with `launcher`: on another machine, in a container, or not at all in a test.
    #[must_use]
    pub fn launcher(mut self, launcher: impl Launcher + 'static) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }

    /// Runs it once.
    pub(super) async fn run(
        &self,
        invocation: &Invocation,
        timeout: Duration,
        unwanted: impl Future<Output = ()> + Send,
        mut tap: impl FnMut(&[u8]) + Send,
    ) -> std::io::Result<Ended> {
        let mut program = self.spec.clone();
        program.args.extend_from_slice(&invocation.args);
        let mut limits = self.limits;
        limits.time = timeout;
        let mut launch = Launch::new(program, limits);
        if let Some(input) = &invocation.stdin {
            launch = launch.stdin(input.as_str());
        }
        tracing::debug!(program = %self.spec.name(), "starts a program");
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
