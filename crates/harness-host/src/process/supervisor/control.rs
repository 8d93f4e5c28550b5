//! The side of the process that starts programs.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::ChildStdin;

use super::orphans;
use super::report::{ASK, KILL, LENGTH, NO_STDIN, Report, STDIN};
use super::{ARGUMENT, END, NAME};
use crate::process::child::{Child, number_of};
use crate::process::run::Launch;
use crate::process::sandbox::Sandbox;
use crate::process::start::process;

/// Time for a supervisor to report the start of its program before it gets the next `SIGCONT`.
const START_ROUND: Duration = Duration::from_secs(1);

/// Attempts.
const START_ROUNDS: u32 = 10;

/// This process's end of a lifeline.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UnixStream,
    /// The part of a report that was read so far.
    read: Vec<u8>,
    /// Whether the supervisor ended without a report of the program's end.
    lost: AtomicBool,
}

/// Starts a program under a supervisor.
pub(crate) async fn start(executable: &Path, launch: &Launch<'_>) -> io::Result<Child> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut control =
        Control { socket: UnixStream::from_std(ours)?, read: Vec::new(), lost: AtomicBool::new(false) };
    let mut process = process(executable.as_os_str(), launch);
    let owner = orphans::own()?.to_string();
    let grace = launch.limits.grace.as_millis().to_string();
    process
        .arg0(NAME)
        .args([OsString::from(ARGUMENT), owner.into(), grace.into()])
        .args(launch.sandbox.map(Sandbox::to_args).transpose()?.unwrap_or_default())
        .args([OsStr::new(END), &launch.program.path])
        .args(&launch.program.args)
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    let mut supervisor = process.spawn()?;
    // The supervisor's end of the lifeline must be open in the supervisor alone.
    drop(process);
    let stdin = control.hand_over_stdin(launch.stdin.is_some())?;
    match control.first_report(&supervisor).await? {
        Report::Started(number) => Ok(Child::supervised(supervisor, control, stdin, Pid::from_raw(number))),
        Report::Failed(errno) => {
            supervisor.wait().await?;
            Err(errno.into())
        }
        Report::Refused(length) => Err(io::Error::other(control.text(length).await)),
        Report::Exited(_) => Err(out_of_order()),
    }
}

impl Control {
    /// Gives the supervisor the reading end of a pipe, or nothing, as the program's stdin.
    fn hand_over_stdin(&self, piped: bool) -> io::Result<Option<ChildStdin>> {
        let (reader, writer) = match piped.then(io::pipe).transpose()? {
            Some((reader, writer)) => (Some(reader), Some(writer)),
            None => (None, None),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let handed: Vec<_> = reader.iter().map(PipeReader::as_fd).collect();
        if !handed.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&handed));
        }
        let first = [if piped { STDIN } else { NO_STDIN }];
        sendmsg(&self.socket, &[IoSlice::new(&first)], &mut ancillary, SendFlags::NOSIGNAL)?;
        let stdin = writer.map(|writer| std::process::ChildStdin::from(OwnedFd::from(writer)));
        stdin.map(ChildStdin::from_std).transpose()
    }

    /// Result of the start. A program can stop its supervisor before the report, so the supervisor gets `SIGCONT` several
    /// times. Giving up closes the lifeline, which kills everything that was started.
    async fn first_report(&mut self, supervisor: &tokio::process::Child) -> io::Result<Report> {
        for _ in 0..START_ROUNDS {
            if let Ok(report) = tokio::time::timeout(START_ROUND, self.report()).await {
                return report;
            }
            if let Some(supervisor) = number_of(supervisor) {
                let _ = rustix::process::kill_process(supervisor, Signal::CONT);
            }
        }
        let seconds = (START_ROUND * START_ROUNDS).as_secs();
        Err(io::Error::other(format!("the supervisor of the program did not answer within {seconds} s")))
    }

    /// Waits for the program's end.
    pub(crate) async fn status(&mut self) -> io::Result<ExitStatus> {
        match self.report().await? {
            Report::Exited(status) => Ok(ExitStatus::from_raw(status)),
            Report::Started(_) | Report::Failed(_) | Report::Refused(_) => Err(out_of_order()),
        }
    }

    /// Whether the supervisor ended before its program did.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn ask_to_end(&self) {
        self.send(ASK);
    }

    pub(crate) fn kill(&self) {
        self.send(KILL);
    }

    fn send(&self, what: u8) {
        // The one failure is that the supervisor has ended.
        let _ = send(&self.socket, &[what], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// The text that follows a report, which is at most a few lines.
    async fn text(&mut self, length: i32) -> String {
        let mut text = Vec::new();
        let length = u64::try_from(length).unwrap_or_default().min(4096);
        // Half of it is better than nothing.
        let _ = (&mut self.socket).take(length).read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The next report. Nothing of it is lost when the future is dropped.
    async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Ok(whole) = <[u8; LENGTH]>::try_from(self.read.as_slice()) {
                self.read.clear();
                return Report::of_bytes(whole).ok_or_else(out_of_order);
            }
            self.socket.readable().await?;
            let mut part = [0; LENGTH];
            let room = part.get_mut(self.read.len()..).unwrap_or_default();
            match self.socket.try_read(room) {
                Ok(0) => {
                    self.lost.store(true, Ordering::Relaxed);
                    return Err(io::Error::other("the supervisor of the program was killed"));
                }
                Ok(read) => self.read.extend_from_slice(room.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn out_of_order() -> io::Error {
    io::Error::other("the supervisor of the program sent an invalid report")
}
