//! The one place where processes are started and ended.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use harness_core::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::time::{sleep, timeout};

use super::capture::Capture;
use crate::environment::Environment;

/// How many bytes a program may print to stdout or stderr before it is stopped: 128 MiB. What is
/// printed is read and counted up to there, and only the tool's `max_output` of it is kept.
pub const MAX_PRINTED: u64 = 128 * 1024 * 1024;

/// How long is waited, after everything was killed, for the kernel to hand over the rest.
pub(crate) const REAP: Duration = Duration::from_millis(500);

/// What is read at once from a pipe.
const PART: usize = 64 * 1024;

/// A program to run.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) args: &'a [OsString],
    pub(crate) cwd: Option<&'a Path>,
    /// Its whole environment.
    pub(crate) env: Environment,
    /// What it reads from stdin; `None` gives it an empty one.
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) limits: Limits,
}

/// The bounds of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long it may run.
    pub(crate) time: Duration,
    /// How long it may take to end after SIGTERM.
    pub(crate) grace: Duration,
    /// How many bytes of stdout are kept.
    pub(crate) stdout: usize,
    /// How many bytes of stderr are kept.
    pub(crate) stderr: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself.
    Exited(ExitStatus),
    /// It was stopped at its time limit.
    TimedOut,
    /// It was stopped because nobody wants its result any more.
    Cancelled,
    /// It was stopped because it had printed more than [`MAX_PRINTED`].
    Flooded,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

/// Runs a program to its end. Dropping the future kills it with its whole process group.
///
/// # Errors
/// When it cannot be started, or the operating system loses track of it.
pub(crate) async fn run(launch: Launch<'_>, cancel: &Cancel) -> io::Result<Ended> {
    let mut child = spawn(&launch)?;
    let mut group = Group::of(&child);
    let limits = launch.limits;
    let (mut stdout, mut stderr) = (Capture::new(limits.stdout), Capture::new(limits.stderr));
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ending = {
        let flow = pin!(async {
            let feed = feed(stdin, launch.stdin.unwrap_or_default());
            tokio::try_join!(feed, pump(out, &mut stdout), pump(err, &mut stderr)).map(|_| ())
        });
        let mut watch = Watch { child: &mut child, flow, flowing: true, status: None };
        let ending = watch.until_ended(limits.time, cancel).await?;
        group.end(&mut watch, limits.grace).await;
        ending
    };
    let flooded = stdout.total() > MAX_PRINTED || stderr.total() > MAX_PRINTED;
    Ok(Ended { ending: if flooded { Ending::Flooded } else { ending }, stdout, stderr })
}

fn spawn(launch: &Launch<'_>) -> io::Result<Child> {
    let stdin = if launch.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
    start(launch.program, launch.args, launch.cwd, &launch.env, stdin)
}

/// Starts a program as the leader of a process group of its own, with its output in pipes. Dropping the
/// child kills it, but not its group: see [`Group`].
pub(crate) fn start(
    program: &OsStr,
    args: &[OsString],
    cwd: Option<&Path>,
    env: &Environment,
    stdin: Stdio,
) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "this is the one module that starts processes")]
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(env.iter())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // Lets the runtime reap the process when the future is dropped before its end.
        .kill_on_drop(true);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    command.spawn()
}

/// More than [`MAX_PRINTED`] came through a pipe.
struct Flood;

/// Writes what the program is to read, and closes the pipe. A program need not read it.
async fn feed(pipe: Option<ChildStdin>, input: Vec<u8>) -> Result<(), Flood> {
    if let Some(mut pipe) = pipe {
        // A program that closes its stdin or ends without reading it decides by its exit code.
        let _ = pipe.write_all(&input).await;
    }
    Ok(())
}

/// Reads a pipe to its end.
async fn pump(pipe: Option<impl AsyncRead + Unpin>, into: &mut Capture) -> Result<(), Flood> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut part = vec![0; PART];
    loop {
        match pipe.read(&mut part).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(n) => into.push(part.get(..n).unwrap_or_default()),
        }
        if into.total() > MAX_PRINTED {
            return Err(Flood);
        }
    }
}

/// A running program and what flows through its pipes.
struct Watch<'a, F> {
    child: &'a mut Child,
    flow: Pin<&'a mut F>,
    flowing: bool,
    status: Option<ExitStatus>,
}

impl<F: Future<Output = Result<(), Flood>>> Watch<'_, F> {
    /// Waits until the program exits or has to be stopped. A program that has exited is never counted
    /// as stopped: its work is done.
    async fn until_ended(&mut self, limit: Duration, cancel: &Cancel) -> io::Result<Ending> {
        let mut limit = pin!(sleep(limit));
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => {
                    let status = status?;
                    self.status = Some(status);
                    return Ok(Ending::Exited(status));
                }
                () = cancel.cancelled() => return Ok(Ending::Cancelled),
                () = &mut limit => return Ok(Ending::TimedOut),
                flood = &mut self.flow, if self.flowing => {
                    self.flowing = false;
                    if flood.is_err() {
                        return Ok(Ending::Flooded);
                    }
                }
            }
        }
    }

    /// Waits, at most for `span`, until the program has exited and its pipes are read to their end.
    async fn settle(&mut self, span: Duration) {
        let settled = async {
            while self.flowing || self.status.is_none() {
                tokio::select! {
                    biased;
                    _ = &mut self.flow, if self.flowing => self.flowing = false,
                    status = self.child.wait(), if self.status.is_none() => match status {
                        Ok(status) => self.status = Some(status),
                        Err(_) => return,
                    },
                }
            }
        };
        // What does not settle in time is given up: the caller has something stronger, or answers.
        let _ = timeout(span, settled).await;
    }
}

/// A process group, killed when it is dropped.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads.
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Ends whatever of the group still runs: asks first, and kills what does not go within `grace`.
    ///
    /// After a program's own exit only children that it left behind are in the group. They would
    /// otherwise hold its pipes open, and outlive a call whose result was already given. As long as one
    /// is left, the group's number cannot be given to another process.
    async fn end<F: Future<Output = Result<(), Flood>>>(
        &mut self,
        watch: &mut Watch<'_, F>,
        grace: Duration,
    ) {
        self.signal(Signal::TERM);
        watch.settle(grace).await;
        self.signal(Signal::KILL);
        // From here the number may be given to a stranger.
        self.0 = None;
        watch.settle(REAP).await;
    }

    /// Asks what still runs of it to end.
    #[cfg(feature = "mcp")]
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills what still runs of it, and forgets its number, which may be given to a stranger from here on.
    #[cfg(feature = "mcp")]
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The one failure is that nobody is left to get it.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
