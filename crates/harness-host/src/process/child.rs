//! A program that was started.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::process::group::Group;
#[cfg(target_os = "linux")]
use crate::process::supervisor::Control;

/// A program that was started, with all that it starts. Dropping it kills all of it.
#[derive(Debug)]
pub struct Child {
    /// Its stdin, if it was started with a pipe.
    pub stdin: Option<ChildStdin>,
    /// Output of the program.
    pub stdout: Option<ChildStdout>,
    /// Error output of the program.
    pub stderr: Option<ChildStderr>,
    /// The program itself, or its supervisor.
    process: tokio::process::Child,
    #[cfg(target_os = "linux")]
    control: Option<Control>,
    group: Group,
    status: Option<ExitStatus>,
    /// Whether the process was waited for.
    gone: bool,
}

impl Child {
    /// A program that is a child of this process.
    pub(crate) fn alone(mut process: tokio::process::Child) -> Self {
        let number = number_of(&process);
        Self {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
            #[cfg(target_os = "linux")]
            control: None,
            group: Group::new(number, number),
            status: None,
            gone: false,
        }
    }

    /// A program under a supervisor. `number`: that of the program.
    #[cfg(target_os = "linux")]
    pub(crate) fn supervised(
        mut supervisor: tokio::process::Child,
        control: Control,
        stdin: Option<ChildStdin>,
        number: Option<Pid>,
    ) -> Self {
        Self {
            stdin,
            stdout: supervisor.stdout.take(),
            stderr: supervisor.stderr.take(),
            group: Group::new(number, number_of(&supervisor)),
            process: supervisor,
            control: Some(control),
            status: None,
            gone: false,
        }
    }

    /// The number of the program in the system; `None` when it was killed.
    pub fn id(&self) -> Option<u32> {
        self.group.number().and_then(|number| u32::try_from(number.as_raw_nonzero().get()).ok())
    }

    /// Waits until the program itself has exited.
    ///
    /// # Errors
    /// When the operating system, or the supervisor, loses track of it.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        #[cfg(target_os = "linux")]
        if let Some(control) = &mut self.control {
            let status = control.status().await?;
            self.status = Some(status);
            return Ok(status);
        }
        self.wait_alone().await
    }

    /// Waits until the program has exited and, if it has a supervisor, everything that it started is gone.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wait_for_all(&mut self) -> io::Result<ExitStatus> {
        let status = self.wait().await?;
        if !self.gone {
            self.wait_alone().await?;
        }
        Ok(status)
    }

    async fn wait_alone(&mut self) -> io::Result<ExitStatus> {
        let status = self.process.wait().await?;
        self.gone = true;
        self.group.root_ended();
        Ok(*self.status.get_or_insert(status))
    }

    /// Asks what still runs of it to end, by SIGTERM. Children that a program left behind would otherwise
    /// hold its pipes open, and outlive a call whose result was already given.
    pub fn ask_to_end(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(control) = &self.control {
            return control.ask_to_end();
        }
        self.group.signal(Signal::TERM);
    }

    /// Kills what still runs of it.
    pub fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(control) = &self.control {
            // A supervisor that was stopped could not do its work.
            if let Some(supervisor) = number_of(&self.process).filter(|_| !self.gone) {
                let _ = rustix::process::kill_process(supervisor, Signal::CONT);
            }
            return control.kill();
        }
        self.group.kill();
    }

    /// Kills what still runs of it, without its supervisor, which did not do so in time, and with it.
    pub(crate) fn kill_without_supervisor(&mut self) {
        if !self.gone {
            self.group.kill();
            // The one failure is that it has ended meanwhile.
            let _ = self.process.start_kill();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(control) = &self.control {
            if control.is_lost() {
                self.kill_without_supervisor();
            } else if !self.gone {
                self.kill();
            }
            return;
        }
        self.group.kill();
    }
}

/// The number of a process that was not waited for.
pub(crate) fn number_of(process: &tokio::process::Child) -> Option<Pid> {
    process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}
