//! The side of the supervisor: a separate process, which does nothing else.
//!
//! Three threads, all of them simple and blocking: the first starts the program and reaps whatever ends, one
//! reads the lifeline, one sends signals. The process ends when there is nothing left to reap.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};

use super::END;
use super::report::{ASK, KILL, NO_STDIN, Report, STDIN};
use crate::process::environment::Environment;
use crate::process::sandbox::Sandbox;
use crate::process::signal::is_ignored;
use crate::process::table::{descendants, rows, signal_all};

/// How long is waited between two rounds of killing.
const ROUND: Duration = Duration::from_millis(5);

/// How many rounds are made before the rest is given up: ten seconds.
const ROUNDS: u32 = 2000;

/// The signals that must not end a supervisor before its program.
const IGNORED: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Request to the thread that sends signals.
enum Request {
    /// Ask everything to end, once.
    Ask,
    /// Ask everything to end, and kill what is left after the grace.
    End,
    /// Kill everything.
    Kill,
}

/// A program to supervise.
struct Job {
    grace: Duration,
    sandbox: Option<Sandbox>,
    program: OsString,
    args: Vec<OsString>,
}

/// Supervises a program to the end of all that it started, and ends this process.
pub(super) fn run(args: Vec<OsString>) -> ! {
    let code = match job(args).map_err(io::Error::other).and_then(|job| supervise(&job)) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error);
            1
        }
    };
    std::process::exit(code)
}

/// The job that the arguments after the first describe.
fn job(args: Vec<OsString>) -> Result<Job, &'static str> {
    let mut args = args.into_iter();
    // Whose supervisor this is, is there for those who look for orphans.
    let (Some(_owner), Some(grace)) = (args.next(), args.next()) else { return Err("too few arguments") };
    let grace = grace.to_str().and_then(|grace| grace.parse().ok()).ok_or("invalid grace")?;
    let sandbox: Vec<_> = args.by_ref().take_while(|arg| arg != END).collect();
    let sandbox = match sandbox.as_slice() {
        [] => None,
        sandbox => Some(Sandbox::of_args(sandbox).ok_or("invalid sandbox")?),
    };
    let program = args.next().ok_or("no program")?;
    Ok(Job { grace: Duration::from_millis(grace), sandbox, program, args: args.collect() })
}

fn supervise(job: &Job) -> io::Result<()> {
    for signal in IGNORED.into_iter().filter(|signal| !is_ignored(signal.as_raw())) {
        // A handler and not "ignored", which the program would inherit.
        signal_hook::flag::register(signal.as_raw(), Arc::<AtomicBool>::default())?;
    }
    set_child_subreaper(Some(getpid()))?;
    let stdin = receive_stdin()?;
    let (requests, queue) = channel();
    let group = Arc::<AtomicI32>::default();
    let (reader, enders_group, grace) = (requests.clone(), Arc::clone(&group), job.grace);
    std::thread::Builder::new().spawn(move || read_lifeline(&reader))?;
    std::thread::Builder::new().spawn(move || end_on_request(&queue, grace, &enders_group))?;
    let program = start(job, stdin)?;
    group.store(program, Ordering::Release);
    // From here on only the program holds its pipes.
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    report(Report::Started(program));
    reap(program, &requests);
    Ok(())
}

/// Receives the program's stdin, if it has one.
fn receive_stdin() -> io::Result<Option<OwnedFd>> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0];
    let mut buffers = [io::IoSliceMut::new(&mut first)];
    let received = recvmsg(io::stdin().as_fd(), &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut handed = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message {
            handed = files.next();
        }
    }
    // A process that has ended meanwhile must not start anything: those who take over from it count on that.
    let alive = match recv(io::stdin().as_fd(), &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((read, _)) => read > 0,
        Err(errno) => errno == Errno::AGAIN,
    };
    if !alive {
        return Err(Errno::PIPE.into());
    }
    match (received.bytes, first, handed) {
        (1, [NO_STDIN], None) => Ok(None),
        (1, [STDIN], Some(stdin)) => Ok(Some(stdin)),
        _ => Err(Errno::PIPE.into()),
    }
}

/// Starts the program in a new group. Returns the number of both.
fn start(job: &Job, stdin: Option<OwnedFd>) -> io::Result<i32> {
    #[expect(clippy::disallowed_methods, reason = "a supervisor starts its program")]
    let mut command = std::process::Command::new(&job.program);
    command.args(&job.args).process_group(0).stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    let child = match &job.sandbox {
        Some(sandbox) => sandbox.start(&job.program, &Environment::of_process(), || command.spawn())?,
        None => command.spawn()?,
    };
    Ok(Pid::from_child(&child).as_raw_nonzero().get())
}

/// Waits for everything that the program started, and reports the program's own end.
fn reap(program: i32, requests: &Sender<Request>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                report(Report::Exited(status.as_raw()));
                let _ = requests.send(Request::End);
            }
            Ok(_) | Err(Errno::INTR) => {}
            // There is no child any more: nothing that descends from the program is left.
            Err(_) => return,
        }
    }
}

/// Passes on what comes over the lifeline. Its end is the end of the process that started this one.
fn read_lifeline(requests: &Sender<Request>) {
    loop {
        let mut byte = [0];
        let request = match recv(io::stdin().as_fd(), byte.as_mut_slice(), RecvFlags::empty()) {
            Err(Errno::INTR) => continue,
            Ok((1, _)) if byte == [ASK] => Request::Ask,
            Ok((1, _)) if byte == [KILL] => Request::Kill,
            Ok(_) | Err(_) => {
                let _ = requests.send(Request::End);
                return;
            }
        };
        if requests.send(request).is_err() {
            return;
        }
    }
}

/// Sends signals as requested. After the grace, or when asked to, kills until this process ends.
fn end_on_request(queue: &Receiver<Request>, grace: Duration, group: &AtomicI32) {
    let mut ending = false;
    loop {
        let request = if ending { queue.recv_timeout(grace) } else { queue.recv().map_err(Into::into) };
        match request {
            Ok(Request::Ask) => signal(group, Signal::TERM),
            Ok(Request::End) => {
                signal(group, Signal::TERM);
                ending = true;
            }
            Ok(Request::Kill) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    for _ in 0..ROUNDS {
        signal(group, Signal::KILL);
        std::thread::sleep(ROUND);
    }
    // What cannot be killed, because it is another user's, does not keep this process.
    std::process::exit(1);
}

/// Signals everything that descends from this process.
fn signal(group: &AtomicI32, signal: Signal) {
    let left = descendants(&rows(), &[getpid().as_raw_nonzero().get()]);
    signal_all(&left, Pid::from_raw(group.load(Ordering::Acquire)), signal);
}

/// Reports why the program was not started.
fn fail(error: &io::Error) {
    if let Some(errno) = Errno::from_io_error(error) {
        return report(Report::Failed(errno));
    }
    let message = error.to_string();
    let length = i32::try_from(message.len()).unwrap_or_default();
    report(Report::Refused(length));
    let _ = send(io::stdin().as_fd(), message.as_bytes(), SendFlags::NOSIGNAL);
}

fn report(report: Report) {
    // Nobody reads it when the process that started this one has ended.
    let _ = send(io::stdin().as_fd(), &report.to_bytes(), SendFlags::NOSIGNAL);
}
