//! Programs of the operating system: started without a shell, bounded, and ended with all that they
//! started.
//!
//! A program gets exactly the arguments, the environment and the input of its [`Launch`], and leads a new process
//! group. It ends at its time limit, when it prints too much, and when the run is cancelled: the group gets SIGTERM, and
//! SIGKILL soon after. Children that it left behind end with it and never delay its result. Dropping a run kills all of it. What it prints can be
//! read while it runs ([`run_with`], [`Lines`]), and the beginning and the end of it are kept ([`Capture`]).
//!
//! On Linux, in a host that calls [`supervise`], nothing that a program started outlives its run or the host,
//! in whatever group or session it is and whatever ended the host.
//!
//! Nothing else in the workspace starts or ends processes. It needs a Unix system and the runtime of tokio.
//!
//! ```
//! use std::time::Duration;
//!
//! use harness_host::process::{Ending, Launch, Limits, ProgramSpec, run};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let program = ProgramSpec::new("/bin/sh").args(["-c", "read name; echo hello $name"]);
//! let launch = Launch::new(program, Limits::new(Duration::from_secs(10))).stdin("bob\n");
//! let ended = run(launch, std::future::pending()).await?;
//! assert!(matches!(ended.ending, Ending::Exited(status) if status.success()));
//! assert_eq!(ended.stdout.lossy(), "hello bob\n");
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(unix))]
compile_error!("harness-host ends process groups by signals and needs a Unix system");

mod capture;
mod child;
mod environment;
mod foreground;
mod group;
mod inspection;
mod launcher;
mod lines;
mod program;
mod run;
mod sandbox;
mod signal;
mod start;
mod supervisor;
mod table;

pub use capture::{Capture, Shown};
pub use child::Child;
pub use environment::{Environment, PASSED};
pub use foreground::foreground;
pub use group::REAP;
pub use inspection::deny_inspection;
pub use launcher::{DynLauncher, Launcher};
pub use lines::{Line, Lines};
pub use program::ProgramSpec;
pub use run::{Ended, Ending, Launch, Limits, MAX_PRINTED, run, run_with};
pub use sandbox::{SYSTEM_FOLDERS, Sandbox, SandboxFault};
pub use signal::{is_ignored, signal_name};
pub use start::{is_path, start, why_not_started};
pub use supervisor::{OrphansLeft, supervise, supervise_by, wait_for_orphans};
