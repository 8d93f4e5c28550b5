//! One program from its start to its end.

use std::io;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::time::{sleep, timeout};

use crate::process::capture::Capture;
use crate::process::child::Child;
use crate::process::group::REAP;
use crate::process::program::ProgramSpec;
use crate::process::sandbox::Sandbox;
use crate::process::start::start;

/// How many bytes a program may print to stdout or stderr before it is stopped: 128 MiB. What is
/// printed is read and counted up to there, and only what [`Limits`] say of it is kept.
pub const MAX_PRINTED: u64 = 128 * 1024 * 1024;

/// Bytes read at once from a pipe.
const PART: usize = 64 * 1024;

/// A program to run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Launch<'a> {
    /// Program, with its arguments and environment.
    pub program: ProgramSpec,
    /// Input on stdin; `None` is empty.
    pub stdin: Option<Vec<u8>>,
    /// Limits of the run.
    pub limits: Limits,
    /// Sandbox; `None` restricts nothing.
    pub sandbox: Option<&'a Sandbox>,
    /// Whether it runs under the supervisor of this process, if there is one. Default `true`; see
    /// [`supervise`](crate::process::supervise).
    pub supervised: bool,
}

impl<'a> Launch<'a> {
    /// A program with an empty stdin.
    pub fn new(program: ProgramSpec, limits: Limits) -> Self {
        Self { program, stdin: None, limits, sandbox: None, supervised: true }
    }

    /// Sets the sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Option<&'a Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Sets the input. The program need not read it.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(input.into());
        self
    }
}

/// The bounds of one run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How long it may run.
    pub time: Duration,
    /// How long it may take to end after SIGTERM. Default 500 ms.
    pub grace: Duration,
    /// How many bytes of stdout are kept. Default 64 KiB.
    pub stdout: usize,
    /// How many bytes of stderr are kept. Default 16 KiB.
    pub stderr: usize,
}

impl Limits {
    /// A time limit, and the defaults.
    pub fn new(time: Duration) -> Self {
        Self { time, grace: Duration::from_millis(500), stdout: 64 * 1024, stderr: 16 * 1024 }
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
        (self.stdout, self.stderr) = (stdout, stderr);
        self
    }
}

/// How a run ended. Exhaustive, so that every report has words for each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Exited(ExitStatus),
    /// It was stopped at its time limit.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It was stopped because it had printed more than [`MAX_PRINTED`].
    Flooded,
}

/// Result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How it ended.
    pub ending: Ending,
    /// Its stdout until then.
    pub stdout: Capture,
    /// Its stderr until then.
    pub stderr: Capture,
}

impl Ended {
    /// Creates the result of a program that a [`Launcher`](crate::process::Launcher) ran.
    pub fn new(ending: Ending, stdout: Capture, stderr: Capture) -> Self {
        Self { ending, stdout, stderr }
    }
}

/// Runs a program to its end; `unwanted` completes when the run is cancelled. Dropping the future kills the whole
/// process group.
///
/// Answers at the latest when the time limit, the grace and twice [`REAP`] have passed.
///
/// # Errors
/// When it cannot be started, or the operating system loses track of it.
pub async fn run(launch: Launch<'_>, unwanted: impl Future<Output = ()> + Send) -> io::Result<Ended> {
    run_with(launch, unwanted, |_: &[u8]| {}).await
}

/// Like [`run`], passing each part of stdout to `tap` as it is read; [`Lines`](crate::process::Lines) cuts lines. `tap`
/// must not block.
///
/// # Errors
/// Those of [`run`].
pub async fn run_with(
    launch: Launch<'_>,
    unwanted: impl Future<Output = ()> + Send,
    tap: impl FnMut(&[u8]) + Send,
) -> io::Result<Ended> {
    let mut child = start(&launch).await?;
    let limits = launch.limits;
    let (mut stdout, mut stderr) = (Capture::new(limits.stdout), Capture::new(limits.stderr));
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ending = {
        let flow = pin!(async {
            let feed = feed(stdin, launch.stdin.unwrap_or_default());
            tokio::try_join!(feed, pump(out, &mut stdout, tap), pump(err, &mut stderr, |_: &[u8]| {}))
                .map(|_| ())
        });
        let mut watch = Watch { child: &mut child, flow, flowing: true };
        let ending = watch.until_ended(limits.time, unwanted).await?;
        watch.end(limits.grace).await;
        ending
    };
    let flooded = stdout.total() > MAX_PRINTED || stderr.total() > MAX_PRINTED;
    Ok(Ended { ending: if flooded { Ending::Flooded } else { ending }, stdout, stderr })
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
async fn pump(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Capture,
    mut tap: impl FnMut(&[u8]),
) -> Result<(), Flood> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut part = vec![0; PART];
    loop {
        match pipe.read(&mut part).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(n) => {
                let part = part.get(..n).unwrap_or_default();
                into.push(part);
                tap(part);
            }
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
}

impl<F: Future<Output = Result<(), Flood>>> Watch<'_, F> {
    /// Waits until the program exits or has to be stopped. A program that has exited is never counted
    /// as stopped: its work is done.
    async fn until_ended(
        &mut self,
        limit: Duration,
        unwanted: impl Future<Output = ()>,
    ) -> io::Result<Ending> {
        let (mut limit, mut unwanted) = (pin!(sleep(limit)), pin!(unwanted));
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return Ok(Ending::Exited(status?)),
                () = &mut unwanted => return Ok(Ending::Cancelled),
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

    /// Waits, at most for `span`, until the program and all that its supervisor knows of it have ended and
    /// its pipes are read to their end. Whether they have.
    async fn settle(&mut self, span: Duration) -> bool {
        let mut running = true;
        let settled = async {
            while self.flowing || running {
                tokio::select! {
                    biased;
                    _ = &mut self.flow, if self.flowing => self.flowing = false,
                    // An error says that nobody knows of it any more.
                    _ = self.child.wait_for_all(), if running => running = false,
                }
            }
        };
        // What does not settle in time is given up: the caller has something stronger, or answers.
        timeout(span, settled).await.is_ok()
    }

    /// Ends whatever still runs of the program: asks first, and kills what does not go within `grace`.
    async fn end(&mut self, grace: Duration) {
        self.child.ask_to_end();
        self.settle(grace).await;
        self.child.kill();
        if !self.settle(REAP).await {
            self.child.kill_without_supervisor();
        }
    }
}
