//! A place where no program runs.

use harness_core::Cancel;

use crate::program::{Process, ProcessFault, ProcessOptions, ProcessOutput, Shell, Subprocess};

/// A shell that executes nothing: every command line ends with exit code 127, and stderr says why.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoShell;

impl Shell for NoShell {
    async fn exec(
        &self,
        _: &str,
        _: &ProcessOptions,
        cancel: &Cancel,
    ) -> Result<ProcessOutput, ProcessFault> {
        if cancel.is_cancelled() {
            return Err(ProcessFault::Cancelled { program: "sh".to_owned(), output: Box::default() });
        }
        let why = "no command is executed here: this workplace has no shell, give it one by `with_shell`\n";
        Ok(ProcessOutput::new(Some(127), "", why))
    }
}

/// Starts no process: every one is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSubprocess;

impl Subprocess for NoSubprocess {
    async fn spawn(
        &self,
        program: &str,
        _: &[String],
        _: &ProcessOptions,
        _: &Cancel,
    ) -> Result<Box<dyn Process>, ProcessFault> {
        let reason = "this workplace starts no processes, give it some by `with_subprocess`".to_owned();
        Err(ProcessFault::Refused { program: program.to_owned(), reason })
    }
}
