//! Programs of this machine for code of the host.

mod running;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_core::Cancel;
use harness_host::process::{
    Capture, Ended, Ending, Environment, Launch, Limits, MAX_PRINTED, PASSED, ProgramSpec,
};
use harness_host::{Process, ProcessFault, ProcessOptions, ProcessOutput, Shell, Subprocess, normal_path};

/// Programs of this machine: the ports [`Shell`] and [`Subprocess`].
///
/// Command lines run in `/bin/sh`. Directories are relative to a root, as in a
/// [`FolderWorkspace`](crate::FolderWorkspace): `/docs` is `docs` in the root. A `cwd` outside of the root,
/// even through a link, is rejected. A program can do everything that this process can, so never let a model
/// decide what runs here; use a [`ShellTool`](crate::ShellTool) for that.
///
/// Each program leads a process group. On cancellation, at its time limit, and when it prints more than
/// [`MAX_PRINTED`], the whole group gets SIGTERM, then SIGKILL; the error contains its output. Dropping the
/// future or the handle kills the group. A tokio runtime is required.
///
/// ```
/// use harness_core::Cancel;
/// use harness_host::{Process, ProcessOptions, Shell, Subprocess};
/// use harness_host::process::Environment;
/// use harness_tools::SystemPrograms;
///
/// # let surroundings = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
/// let programs = SystemPrograms::new(".").env_from(&surroundings);
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let options = ProcessOptions::new().env("NAME", "bob");
/// let ended = programs.exec("echo hello $NAME | tr a-z A-Z; exit 3", &options, &Cancel::never()).await?;
/// assert_eq!((ended.exit_code, &*ended.stdout), (Some(3), "HELLO BOB\n"));
///
/// let process = programs.spawn("cat", &[], &ProcessOptions::new().stdin("hi"), &Cancel::never()).await?;
/// assert_eq!(process.wait().await?.stdout, "hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SystemPrograms {
    root: PathBuf,
    env: Environment,
    grace: Duration,
}

/// Shell that runs command lines.
const SHELL: &str = "/bin/sh";

impl SystemPrograms {
    /// Creates programs that run in this directory and below, with an empty environment.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), env: Environment::default(), grace: Duration::from_millis(500) }
    }

    /// Sets the variables of [`PASSED`] from `surroundings`.
    #[must_use]
    pub fn env_from(mut self, surroundings: &Environment) -> Self {
        for (name, value) in surroundings.share(PASSED.into_iter()).iter() {
            self.env.set(name, value);
        }
        self
    }

    /// Sets a variable for every program.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.set(name, value);
        self
    }

    /// Sets the time between SIGTERM and SIGKILL. Default 500 ms.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// Root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn job(&self, program: ProgramSpec, options: &ProcessOptions) -> Result<Job, ProcessFault> {
        let cwd = self.folder(options.cwd.as_deref().unwrap_or("/"));
        let program_name = || program.name().into_owned();
        let cwd = cwd.map_err(|problem| ProcessFault::NotStarted { program: program_name(), problem })?;
        let mut program = program.cwd(cwd);
        program.passed = self.env.clone();
        program.env = options.env.iter().collect();
        Ok(Job { program, options: options.clone(), grace: self.grace })
    }

    /// Directory of that name with links resolved, because a link may lead outside.
    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let name = normal_path(name);
        let below = name.trim_start_matches('/');
        if below.is_empty() {
            return Ok(self.root.clone());
        }
        let resolved = self.root.canonicalize().and_then(|root| Ok((root.join(below).canonicalize()?, root)));
        match resolved {
            Ok((folder, root)) if folder.starts_with(&root) && folder.is_dir() => Ok(folder),
            Ok(_) => Err(format!("`cwd` `{name}` is not a directory below `{}`", self.root.display())),
            Err(error) => {
                Err(format!("its `cwd`, `{name}` below `{}`, cannot be used: {error}", self.root.display()))
            }
        }
    }
}

impl Shell for SystemPrograms {
    async fn exec(
        &self,
        command: &str,
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> Result<ProcessOutput, ProcessFault> {
        let job = self.job(ProgramSpec::new(SHELL).args(["-c", command]), options)?;
        job.wanted(cancel)?;
        let limits = job.limits().kept(options.max_output, options.max_output);
        let ended = harness_host::process::run(job.launch(limits), cancel.cancelled()).await;
        job.outcome(ended, None)
    }
}

impl Subprocess for SystemPrograms {
    async fn spawn(
        &self,
        program: &str,
        args: &[String],
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> Result<Box<dyn Process>, ProcessFault> {
        let job = self.job(ProgramSpec::new(program).args(args), options)?;
        job.wanted(cancel)?;
        Ok(Box::new(running::start(job, cancel).await?))
    }
}

/// One program to run.
struct Job {
    program: ProgramSpec,
    options: ProcessOptions,
    grace: Duration,
}

impl Job {
    fn wanted(&self, cancel: &Cancel) -> Result<(), ProcessFault> {
        if cancel.is_cancelled() {
            return Err(ProcessFault::Cancelled { program: self.name(), output: Box::default() });
        }
        tracing::debug!(program = %self.program.name(), "starts a program");
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits::new(self.options.timeout.duration()).grace(self.grace)
    }

    fn name(&self) -> String {
        self.program.name().into_owned()
    }

    fn launch(&self, limits: Limits) -> Launch<'static> {
        Launch::new(self.program.clone(), limits).stdin(&*self.options.stdin)
    }

    /// Result of the program. `stdout` is its output, if that is not in `ended`.
    fn outcome(
        &self,
        ended: io::Result<Ended>,
        stdout: Option<&Capture>,
    ) -> Result<ProcessOutput, ProcessFault> {
        let program = self.name();
        let ended = ended.map_err(|error| {
            let why = harness_host::process::why_not_started(&self.program, &error);
            ProcessFault::NotStarted { program: program.clone(), problem: why }
        })?;
        let stdout = stdout.unwrap_or(&ended.stdout);
        let truncated = !(stdout.is_whole() && ended.stderr.is_whole());
        let output = |code| {
            let mut output = ProcessOutput::new(code, stdout.lossy(), ended.stderr.lossy());
            output.truncated = truncated;
            output
        };
        let stopped = || Box::new(output(None));
        match ended.ending {
            Ending::Exited(status) => Ok(output(status.code())),
            Ending::TimedOut => {
                Err(ProcessFault::TimedOut { program, limit: self.options.timeout, output: stopped() })
            }
            Ending::Cancelled => Err(ProcessFault::Cancelled { program, output: stopped() }),
            Ending::Flooded => {
                Err(ProcessFault::TooMuchOutput { program, most: MAX_PRINTED, output: stopped() })
            }
        }
    }
}
