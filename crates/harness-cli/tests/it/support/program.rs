//! The program as a process, with nothing of the surrounding environment but `PATH`.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::within;

/// What the program printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A start of the program in a folder.
#[expect(clippy::disallowed_methods, reason = "this module starts the program under test")]
pub(crate) fn harness(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A line of a shell that finds the program, both output streams together.
#[expect(clippy::disallowed_methods, reason = "this module starts the program under test")]
pub(crate) fn shell(folder: &Path, line: &str) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_harness")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder).env_clear();
    command.env("PATH", format!("{}:{path}", bin.display())).stdin(Stdio::null());
    command
}

/// A start of the program in a folder on a disk that takes no more than 512 bytes per file.
#[expect(clippy::disallowed_methods, reason = "this module starts the program under test")]
pub(crate) fn harness_on_a_full_disk(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_harness")]);
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The program while it runs. It is killed when the test gives up on it.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// What it prints.
    pub(crate) fn stdout(&mut self) -> &mut BufReader<ChildStdout> {
        self.stdout.as_mut().unwrap()
    }

    /// Reads nothing of what it prints from now on.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout: Some(stdout) }
    }

    /// Starts it and writes to its standard input, as far as it reads that before it ends.
    pub(crate) fn start_with_input(mut command: Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped());
        let mut running = Self::start(command);
        let mut stdin = running.child.stdin.take().unwrap();
        match stdin.write_all(input) {
            Err(fault) if fault.kind() == ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        running
    }

    /// The next line that it prints.
    pub(crate) fn line(self, what: &str) -> (Self, String) {
        within(what, move || {
            let mut running = self;
            let mut line = String::new();
            running.stdout().read_line(&mut line).unwrap();
            (running, line)
        })
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Output {
        within("the end of the program", move || {
            let mut running = self;
            let stderr = running.child.stderr.take().unwrap();
            let stderr = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
            let stdout = running.stdout.take().map(|stdout| std::io::read_to_string(stdout).unwrap());
            let stdout = stdout.unwrap_or_default();
            let status: ExitStatus = running.child.wait().unwrap();
            Output { code: status.code(), stdout, stderr: stderr.join().unwrap() }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
