//! Processes of the cluster.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use harness::core::Cancel;
use harness::host::process::{
    Child, Launch, Limits, Line, Lines, ProgramSpec, signal_name, start, why_not_started,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::error::CliError;
use crate::{env, terminal};

/// Bytes of one line of a log that are shown.
const LINE: usize = 4 << 10;
/// How long a process may take to end.
const GRACE: Duration = Duration::from_secs(15);

/// A process of the cluster, and what it prints.
#[derive(Debug)]
struct Part {
    name: String,
    id: Option<u32>,
    stop: Cancel,
    is_over: bool,
}

/// Processes, whose output goes to standard error under their names. Dropping it kills all of them.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    running: JoinSet<(usize, String)>,
}

impl Parts {
    /// Starts a program, which sees the whole environment: a worker reads API keys in it. Returns its number here, and the
    /// first line of its standard output.
    pub(super) async fn start(
        &mut self,
        name: &str,
        mut program: ProgramSpec,
    ) -> Result<(usize, oneshot::Receiver<String>), CliError> {
        program.passed = env::surroundings();
        let launch = Launch::new(program, Limits::new(Duration::MAX).grace(GRACE));
        let started = start(&launch).await;
        let child = started.map_err(|error| not_started(name, &why_not_started(&launch.program, &error)))?;
        let (stop, at) = (Cancel::new(), self.parts.len());
        self.parts.push(Part { name: name.to_owned(), id: child.id(), stop: stop.clone(), is_over: false });
        let (say, first) = oneshot::channel();
        let running = run(name.to_owned(), child, stop, say);
        self.running.spawn(async move { (at, running.await) });
        Ok((at, first))
    }

    /// Waits for something, and fails when a process ends before.
    pub(super) async fn before_an_end<T>(
        &mut self,
        done: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            (at, why) = self.ended() => Err(not_started(self.name(at), &format!("it {why}; its log is above"))),
            done = done => done,
        }
    }

    /// Waits for the end of a process: its number here, and how it ended.
    pub(super) async fn ended(&mut self) -> (usize, String) {
        let Some(Ok((at, why))) = self.running.join_next().await else { return std::future::pending().await };
        if let Some(part) = self.parts.get_mut(at) {
            part.is_over = true;
        }
        (at, why)
    }

    pub(super) fn name(&self, at: usize) -> &str {
        self.parts.get(at).map(|part| &*part.name).unwrap_or_default()
    }

    /// The number of a process in the system.
    pub(super) fn id(&self, at: usize) -> Option<u32> {
        self.parts.get(at)?.id
    }

    /// Ends the processes, the last one first: a front end before the workers, and these before the engine.
    pub(super) async fn end(&mut self) {
        for at in (0..self.parts.len()).rev() {
            while let Some(part) = self.parts.get(at).filter(|part| !part.is_over) {
                part.stop.cancel();
                self.ended().await;
            }
        }
    }
}

/// Runs a process until it ends or is stopped; how it ended, as the rest of a sentence.
async fn run(name: String, mut child: Child, stop: Cancel, say: oneshot::Sender<String>) -> String {
    let mut logs = JoinSet::new();
    if let Some(out) = child.stdout.take() {
        logs.spawn(forward(name.clone(), out, Some(say)));
    }
    if let Some(err) = child.stderr.take() {
        logs.spawn(forward(name, err, None));
    }
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = stop.cancelled() => {
            child.ask_to_end();
            let Ok(ended) = tokio::time::timeout(GRACE, child.wait()).await else {
                return "did not end in time".to_owned();
            };
            ended
        }
    };
    // What the process has left behind ends, too, and lets go of its log.
    child.kill();
    while logs.join_next().await.is_some() {}
    match ended {
        Ok(status) => ending(status),
        Err(error) => format!("was lost: {error}"),
    }
}

/// How a process ended, as the rest of a sentence.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by {}", signal_name(signal)),
        (None, None) => "ended".to_owned(),
    }
}

fn not_started(name: &str, why: &str) -> CliError {
    CliError::Part {
        kind: "cli.part_not_started".to_owned(),
        message: format!("{name} did not start: {why}"),
        hint: Some("correct what its log says, then start the cluster again".to_owned()),
    }
}

/// Writes each line under a name, and hands on the first.
async fn forward(name: String, mut from: impl AsyncRead + Unpin, mut first: Option<oneshot::Sender<String>>) {
    let mut lines = Lines::new(LINE);
    let mut part = vec![0; 8 << 10];
    let mut show = |line: Line<'_>| {
        let (Line::Whole(bytes) | Line::Cut(bytes)) = line;
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return;
        }
        let _ = writeln!(terminal::messages(), "{name} | {text}");
        if let Some(first) = first.take() {
            let _ = first.send(text.into_owned());
        }
    };
    while let Ok(read @ 1..) = from.read(&mut part).await {
        lines.push(part.get(..read).unwrap_or_default(), &mut show);
    }
    if let Some(rest) = lines.rest() {
        show(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_told_in_words() {
        assert_eq!(ending(ExitStatus::from_raw(0x300)), "ended with exit code 3");
        assert_eq!(ending(ExitStatus::from_raw(9)), "was ended by SIGKILL");
    }
}
