//! The ports as one step has them: in its folder, and no longer than it is wanted.

use std::fmt;
use std::sync::Arc;

use harness_core::Cancel;
use harness_host::{DynShell, DynSubprocess, Process, ProcessFault, ProcessOptions, ProcessOutput};

/// What every program that a step runs has from its step.
#[derive(Clone, Debug)]
struct Bounds {
    cwd: Arc<str>,
    cancel: Cancel,
}

impl Bounds {
    fn options(&self, options: &ProcessOptions) -> ProcessOptions {
        let cwd = options.cwd.clone().unwrap_or_else(|| Arc::clone(&self.cwd));
        options.clone().cwd(cwd)
    }
}

/// The shell of a step: command lines run in the step's folder and end when the step is aborted.
#[derive(Clone)]
pub struct StepShell {
    shell: Arc<dyn DynShell>,
    bounds: Bounds,
}

impl fmt::Debug for StepShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepShell").field("cwd", &self.bounds.cwd).finish_non_exhaustive()
    }
}

impl StepShell {
    pub(super) fn new(shell: Arc<dyn DynShell>, cwd: Arc<str>, cancel: Cancel) -> Self {
        Self { shell, bounds: Bounds { cwd, cancel } }
    }

    /// Runs a command line to its end, in the folder that the step had when it took the shell unless the options
    /// name another.
    ///
    /// # Errors
    /// When it did not exit by itself; another exit code than 0 is no error.
    pub async fn exec(&self, command: &str, options: &ProcessOptions) -> Result<ProcessOutput, ProcessFault> {
        let options = self.bounds.options(options);
        self.shell.exec_boxed(command, &options, &self.bounds.cancel).await
    }
}

/// The processes of a step: they run in the step's folder and end when the step is aborted.
#[derive(Clone)]
pub struct StepSubprocess {
    subprocess: Arc<dyn DynSubprocess>,
    bounds: Bounds,
}

impl fmt::Debug for StepSubprocess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepSubprocess").field("cwd", &self.bounds.cwd).finish_non_exhaustive()
    }
}

impl StepSubprocess {
    pub(super) fn new(subprocess: Arc<dyn DynSubprocess>, cwd: Arc<str>, cancel: Cancel) -> Self {
        Self { subprocess, bounds: Bounds { cwd, cancel } }
    }

    /// Starts a program, in the folder that the step had when it took this unless the options name another. A step
    /// that ends leaves it alone as long as somebody keeps the handle; a step that is aborted ends it.
    ///
    /// # Errors
    /// When it could not be started.
    pub async fn spawn(
        &self,
        program: &str,
        args: &[String],
        options: &ProcessOptions,
    ) -> Result<Box<dyn Process>, ProcessFault> {
        let options = self.bounds.options(options);
        self.subprocess.spawn_boxed(program, args, &options, &self.bounds.cancel).await
    }
}
