//! Programs under a supervisor, which outlives its own parent just long enough to end them.
//!
//! A supervisor is this executable, or one that the host names, started once more for each program. It is
//! the *child subreaper* of the program: whatever the program starts stays a descendant of the supervisor,
//! in whatever group or session. Its stdin is one end of a socket, the *lifeline*; the other end is open in
//! the starting process alone. When that end is closed, the starting process has ended, however that came
//! about, and the supervisor ends the program and all of its descendants.
//!
//! Over the lifeline a supervisor is first handed the program's stdin, and then asked to end the program
//! or to kill it. It reports that the program was started or why it was not, and how it ended. It ends itself
//! when nothing of the program is left.

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod report;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
pub(crate) use control::{Control, start};

/// The first argument of an executable that is started as a supervisor. After it: whose it is, the grace in
/// milliseconds, its sandbox if it has one, [`END`], the program and its arguments.
#[cfg(target_os = "linux")]
const ARGUMENT: &str = "--supervise-program";

/// The argument before the program; before it, what its sandbox allows.
#[cfg(target_os = "linux")]
const END: &str = "--";

/// Name of a supervisor in process lists.
#[cfg(target_os = "linux")]
const NAME: &str = "harness-supervisor";

/// The executable that supervises the programs of this process.
static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Lets this executable supervise the programs that this process starts. Call it first in `main`.
///
/// When the process is a supervisor, this does its work and never returns. Otherwise it returns at once, and
/// every program is then started under a supervisor: on Linux nothing that a program started, not even with
/// `setsid`, `nohup` or a double fork, outlives its call or this process, even when this process is killed by
/// SIGKILL. A supervisor costs one start of this executable for each program, some milliseconds, and
/// ends when nothing of its program is left.
///
/// The guarantee has three limits. A supervisor can itself be killed by SIGKILL, and with it the guarantee.
/// A process of another user, started through a set-user-ID program, cannot be signalled. A program that forks
/// faster than processes can be listed is killed repeatedly for ten seconds and then given up.
///
/// Without this call, and on systems other than Linux, where it does nothing, a call of a program still
/// ends its process group; on Linux also descendants that left the group, if they can be found by their parents
/// at that moment. Nothing ends them when this process is killed.
///
/// ```no_run
/// // The first statement of `main`.
/// harness_host::process::supervise();
/// ```
pub fn supervise() {
    #[cfg(target_os = "linux")]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|first| first == ARGUMENT) {
            host::run(args.collect());
        }
        let own = Path::new("/proc/self/exe");
        // Without `/proc` neither this nor the descendants of a program can be found.
        if own.exists() {
            supervise_by(own);
        }
    }
}

/// Lets another executable, whose `main` calls [`supervise`] first, supervise the programs that this process
/// starts. The first call of this function or of [`supervise`] decides.
///
/// Does nothing on systems other than Linux.
pub fn supervise_by(executable: impl Into<PathBuf>) {
    if cfg!(target_os = "linux") {
        EXECUTABLE.get_or_init(|| executable.into());
    }
}

/// The executable that supervises, if the host has called for one.
pub(crate) fn executable() -> Option<&'static Path> {
    EXECUTABLE.get().map(PathBuf::as_path)
}

/// Waits until no supervised program of an ended process of this user still runs.
///
/// When a process is killed, its supervisors end what it had started, which takes up to the grace of the
/// program. A program that is started once more, because a call is repeated after a crash, must not run beside its
/// predecessor: call this before.
///
/// # Errors
/// [`OrphansLeft`] when some still run after 30 s. Returns at once where there are no supervisors.
pub async fn wait_for_orphans() -> Result<(), OrphansLeft> {
    #[cfg(target_os = "linux")]
    orphans::wait().await?;
    Ok(())
}

/// Programs of an ended process that still run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphansLeft {
    /// The process numbers of their supervisors.
    pub supervisors: Vec<i32>,
}

impl std::fmt::Display for OrphansLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<_> = self.supervisors.iter().map(ToString::to_string).collect();
        write!(f, "programs of an earlier process are still running, under supervisor {}", numbers.join(", "))
    }
}

impl std::error::Error for OrphansLeft {}
