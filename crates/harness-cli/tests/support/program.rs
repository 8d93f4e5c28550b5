//! The program as a process, with nothing of the surrounding environment but `PATH`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, in_time, within};

/// What the program printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program under test: what cargo has built for the tests, unless `HARNESS_PROGRAM` names another one.
#[expect(clippy::disallowed_methods, reason = "`cargo xtask e2e` says which program it has built")]
pub(crate) fn program() -> OsString {
    std::env::var_os("HARNESS_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_harness").into())
}

/// A start of the program in a folder.
#[expect(clippy::disallowed_methods, reason = "this module starts the program under test")]
pub(crate) fn harness(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    // A real pager would wait for a key.
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PAGER", "cat");
    command
}

/// A line of a shell that finds the program, both output streams together.
#[expect(clippy::disallowed_methods, reason = "this module starts the program under test")]
pub(crate) fn shell(folder: &Path, line: &str) -> Command {
    let program = program();
    let bin = Path::new(&program).parent().unwrap();
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
    command.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""]).arg(program());
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A command, started by another program: what ran the tests may have had signals ignored.
#[expect(clippy::disallowed_methods, reason = "a test starts the program under test through another one")]
pub(crate) fn through(starter: &[&str], command: &Command) -> Command {
    let mut other = Command::new(starter[0]);
    other.current_dir(command.get_current_dir().unwrap()).env_clear().stdin(Stdio::null());
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.args(&starter[1..]).arg(command.get_program()).args(command.get_args());
    other
}

/// The program while it runs. It is killed when the test gives up on it.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// What it wrote to standard error in the end; it is read all the time, so that the program never waits for that.
    stderr: Option<JoinHandle<String>>,
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
        let stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
        Self { child, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// Starts it; what it prints goes to a file.
    pub(crate) fn start_logging(mut command: Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { child, stdout: None, stderr: None }
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
    #[track_caller]
    pub(crate) fn end(self) -> Output {
        self.end_in(PATIENCE)
    }

    /// Waits for its end, which must come in so much time.
    #[track_caller]
    pub(crate) fn end_in(self, patience: Duration) -> Output {
        in_time(patience, "the end of the program", move || {
            let mut running = self;
            let stdout = running.stdout.take().map(|stdout| std::io::read_to_string(stdout).unwrap());
            let stdout = stdout.unwrap_or_default();
            let status: ExitStatus = running.child.wait().unwrap();
            let stderr = running.stderr.take().map(|stderr| stderr.join().unwrap()).unwrap_or_default();
            Output { code: status.code(), stdout, stderr }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
