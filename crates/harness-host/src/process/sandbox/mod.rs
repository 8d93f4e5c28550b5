//! Sandbox of a program: files by Landlock, sockets by seccomp.

use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt as _;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

use crate::process::environment::Environment;

#[cfg(target_os = "linux")]
mod linux;

/// System directories that every sandboxed program may read and execute: programs, libraries, settings, devices and
/// processes. Missing ones are skipped.
pub const SYSTEM_FOLDERS: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/run/current-system",
    "/proc",
    "/sys",
    "/dev",
];

/// The argument of a supervisor whose program may make sockets, and of one whose program may not.
#[cfg(target_os = "linux")]
const NETWORK: &str = "network";
#[cfg(target_os = "linux")]
const NO_NETWORK: &str = "no-network";

/// Access of a program and its children. The kernel refuses everything else.
///
/// A program may read the [`SYSTEM_FOLDERS`], the directories of its `PATH` and those of `read` and `write`,
/// write below those of `write` and to `/dev/null`, and without `network` make no socket of any kind: not to
/// other machines, nor to programs of this one. It gains no rights by set-user-ID programs, keeps of root's
/// rights only those over files, and cannot look into processes outside of the sandbox. Names, sizes and dates of other files stay visible.
///
/// Needs Linux 6.2 with Landlock and seccomp. Where one of them is missing a program is not started: a sandbox is
/// never silently weaker than this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sandbox {
    /// More files and directories to read and execute.
    pub read: Vec<PathBuf>,
    /// Files and directories to read, execute and change.
    pub write: Vec<PathBuf>,
    /// Whether it may make sockets. Default `false`.
    pub network: bool,
}

/// Error of a machine that cannot sandbox programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxFault(String);

impl SandboxFault {
    #[cfg(target_os = "linux")]
    fn new(what: &str, why: impl fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

impl fmt::Display for SandboxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SandboxFault {}

impl From<SandboxFault> for io::Error {
    fn from(fault: SandboxFault) -> Self {
        Self::other(fault)
    }
}

impl Sandbox {
    /// A sandbox in which nothing can be written, without a network.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or directory to read.
    #[must_use]
    pub fn reading(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Adds a file or directory to change.
    #[must_use]
    pub fn writing(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Allows sockets.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Whether this machine can sandbox programs.
    ///
    /// # Errors
    /// What it lacks.
    pub fn available() -> Result<(), SandboxFault> {
        #[cfg(target_os = "linux")]
        return linux::available();
        #[cfg(not(target_os = "linux"))]
        Err(SandboxFault("only Linux is supported".to_owned()))
    }

    /// Starts a program from a new thread that is restricted first: restrictions hold for a thread and its children, and
    /// are permanent.
    pub(crate) fn start<T: Send>(
        &self,
        program: &OsStr,
        env: &Environment,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (program, env);
            Self::available()?;
            start()
        }
        #[cfg(target_os = "linux")]
        {
            let programs = folders_of(program, env);
            // The program is started from it and nothing else is done: it is gone as soon as a start takes.
            std::thread::scope(|scope| {
                let start = || {
                    linux::restrict(self, &programs)?;
                    start()
                };
                let thread =
                    std::thread::Builder::new().name("sandbox".to_owned()).spawn_scoped(scope, start)?;
                let panicked = |_| Err(io::Error::other("the start of a sandboxed program panicked"));
                thread.join().unwrap_or_else(panicked)
            })
        }
    }

    /// The sandbox as arguments of a supervisor, which may run in a different directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn to_args(&self) -> io::Result<Vec<OsString>> {
        let mut args = vec![OsString::from(if self.network { NETWORK } else { NO_NETWORK })];
        for (letter, paths) in [("r", &self.read), ("w", &self.write)] {
            for path in paths {
                let mut arg = OsString::from(letter);
                arg.push(std::path::absolute(path)?);
                args.push(arg);
            }
        }
        Ok(args)
    }

    /// The sandbox of the arguments that [`to_args`](Self::to_args) makes.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_args(args: &[OsString]) -> Option<Self> {
        let (network, paths) = args.split_first()?;
        let mut sandbox = Self { network: network == NETWORK, ..Self::default() };
        for path in paths {
            match path.as_bytes().split_first()? {
                (b'r', path) => sandbox.read.push(OsStr::from_bytes(path).into()),
                (b'w', path) => sandbox.write.push(OsStr::from_bytes(path).into()),
                _ => return None,
            }
        }
        (network == NETWORK || network == NO_NETWORK).then_some(sandbox)
    }
}

/// Places of a program: the program itself and the directories of its `PATH`.
#[cfg(target_os = "linux")]
fn folders_of(program: &OsStr, env: &Environment) -> Vec<PathBuf> {
    let own = Path::new(program).canonicalize().ok();
    let path = env.get("PATH").into_iter().flat_map(std::env::split_paths);
    own.into_iter().chain(path.filter(|folder| folder.is_absolute())).collect()
}
