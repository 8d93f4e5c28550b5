//! A server that is a program: its start, its pipes and its end.

use std::os::unix::process::ExitStatusExt as _;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use harness_core::Cancel;
use harness_core::redact::KnownSecrets;
use harness_host::process::{
    Capture, Child, Launch, Limits, ProgramSpec, REAP, Shown, start, why_not_started,
};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::fault::McpFault;

/// The longest message that is read from a server: 16 MiB. One that is longer ends the connection.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// How many bytes of stderr are kept: the first and the last lines.
const STDERR: usize = 4096;

/// The pipes of a program that was started.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: Bounded<ChildStdout>,
}

/// A running program. Dropping it stops the program.
#[derive(Debug)]
pub(super) struct Life {
    /// Signals the keeper to stop the program.
    stop: Cancel,
    /// How it ended.
    ended: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<Capture>>,
    /// Whether it sent too long a message.
    flooded: Arc<AtomicBool>,
    /// How long it may take to end, first by itself and then when asked.
    grace: Duration,
}

/// Starts a program and a task that keeps it: reads its stderr, reaps it, and ends its group.
pub(super) async fn launch(program: &ProgramSpec, grace: Duration) -> Result<(Pipes, Life), McpFault> {
    let not_started =
        |problem: String| McpFault::NotStarted { program: program.name().into_owned(), problem };
    let launch = Launch::new(program.clone(), Limits::new(Duration::MAX).grace(grace)).stdin("");
    let mut child = start(&launch).await.map_err(|error| not_started(why_not_started(program, &error)))?;
    let (Some(stdin), Some(stdout), Some(err)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_started("its pipes are missing".to_owned()));
    };
    let stderr = Arc::new(Mutex::new(Capture::new(STDERR)));
    let flooded = Arc::<AtomicBool>::default();
    let stop = Cancel::new();
    let (tell, ended) = watch::channel(None);
    let keeper = Keeper { child, grace, stop: stop.clone(), tell };
    tokio::spawn(keeper.keep(err, Arc::clone(&stderr)));
    let stdout = Bounded { pipe: stdout, line: 0, most: MAX_MESSAGE, flooded: Arc::clone(&flooded) };
    Ok((Pipes { stdin, stdout }, Life { stop, ended, stderr, flooded, grace }))
}

impl Life {
    /// Reason why the connection ended. Waits until the program exits, which follows the end of its output.
    pub(super) async fn why(&self, secrets: &KnownSecrets) -> McpFault {
        if self.flooded.load(Ordering::Acquire) {
            return McpFault::MessageTooLong { limit: MAX_MESSAGE };
        }
        let mut ended = self.ended.clone();
        let waited = timeout(REAP + self.grace, ended.wait_for(Option::is_some)).await;
        let status = waited.ok().and_then(Result::ok).and_then(|status| *status);
        match status {
            Some(status) => McpFault::Ended { how: how(status), stderr: self.stderr(secrets) },
            None => McpFault::Ended { how: "it closed its output".to_owned(), stderr: self.stderr(secrets) },
        }
    }

    /// Stderr of the program so far.
    pub(super) fn stderr(&self, secrets: &KnownSecrets) -> String {
        let capture = self.stderr.lock();
        match capture.show(true) {
            Shown::Text { text, .. } => secrets.text(text.trim_end_matches(['\n', '\r'])).into_owned(),
            Shown::Binary(bytes) => format!("(binary output of {bytes} bytes)"),
        }
    }

    /// Ends the program, and waits until it and its group are gone.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // An error says that the keeper is gone, and with it the program.
        let _ = timeout(2 * self.grace + 2 * REAP, ended.wait_for(Option::is_some)).await;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// `exit code 1`, `killed by signal 9`.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The task that a running program belongs to. When it is dropped, with its runtime, the group is killed.
struct Keeper {
    child: Child,
    grace: Duration,
    stop: Cancel,
    tell: watch::Sender<Option<ExitStatus>>,
}

impl Keeper {
    async fn keep(mut self, stderr: ChildStderr, into: Arc<Mutex<Capture>>) {
        let mut reading = tokio::spawn(read(stderr, into));
        let status = tokio::select! {
            status = self.child.wait() => status.ok(),
            () = self.stop.cancelled() => self.end().await,
        };
        // Children that it left behind would hold its pipes open.
        self.child.ask_to_end();
        let settled = timeout(self.grace, self.settle(&mut reading)).await;
        self.child.kill();
        if settled.is_err() {
            let _ = timeout(REAP, self.settle(&mut reading)).await;
            reading.abort();
        }
        // Without a status the kernel has lost track of it, and the dropped sender says that it is gone.
        if let Some(status) = status {
            self.tell.send_replace(Some(status));
        }
    }

    /// Waits until everything of it is gone and its stderr is read to its end.
    async fn settle(&mut self, reading: &mut JoinHandle<()>) {
        // An error says that nobody knows of it any more.
        let _ = self.child.wait_for_all().await;
        if !reading.is_finished() {
            let _ = reading.await;
        }
    }

    /// Lets it end by itself, now that its stdin is closed; asks it to; kills it.
    async fn end(&mut self) -> Option<ExitStatus> {
        if let Ok(status) = timeout(self.grace, self.child.wait()).await {
            return status.ok();
        }
        self.child.ask_to_end();
        if let Ok(status) = timeout(self.grace, self.child.wait()).await {
            return status.ok();
        }
        self.child.kill();
        timeout(REAP, self.child.wait()).await.ok()?.ok()
    }
}

/// Reads a pipe to its end.
async fn read(mut pipe: ChildStderr, into: Arc<Mutex<Capture>>) {
    let mut part = vec![0; 8 * 1024];
    while let Ok(n @ 1..) = pipe.read(&mut part).await {
        into.lock().push(part.get(..n).unwrap_or_default());
    }
}

/// Lines of at most a given length. At a longer one the stream ends.
pub(super) struct Bounded<R> {
    pipe: R,
    line: usize,
    most: usize,
    flooded: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin> Bounded<R> {
    /// Bounds another stream.
    pub(super) fn new(pipe: R, flooded: Arc<AtomicBool>) -> Self {
        Self { pipe, line: 0, most: MAX_MESSAGE, flooded }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.flooded.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.pipe).poll_read(cx, buf);
        let new = buf.filled().get(before..).unwrap_or_default();
        for line in new.split_inclusive(|byte| *byte == b'\n') {
            self.line += line.len();
            if self.line > self.most {
                self.flooded.store(true, Ordering::Release);
                buf.set_filled(before);
                return Poll::Ready(Ok(()));
            }
            if line.ends_with(b"\n") {
                self.line = 0;
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &'static [u8], most: usize, expected: &[u8], flooded: bool) {
        let flag = Arc::<AtomicBool>::default();
        let mut bounded = Bounded { pipe: input, line: 0, most, flooded: Arc::clone(&flag) };
        let mut read = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(bounded.read_to_end(&mut read)).unwrap();
        assert_eq!((read.as_slice(), flag.load(Ordering::Acquire)), (expected, flooded));
    }

    #[test]
    fn a_stream_ends_at_a_line_that_is_too_long() {
        check(b"1234\n1234\n", 5, b"1234\n1234\n", false);
        check(b"12345\n", 5, b"", true);
        check(b"1234", 5, b"1234", false);
        check(b"123456", 5, b"", true);
    }
}
