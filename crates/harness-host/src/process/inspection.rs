//! Keeping other programs from looking into this one.

use std::io;

/// Keeps other programs of the same user from reading this process's memory and environment: on Linux
/// `/proc/PID/environ` and `/proc/PID/mem` belong to root from here on, and debuggers cannot attach. Programs that
/// are started from here are not affected. Call it first in `main`.
///
/// The process leaves no core dumps. Root still reads everything. Does nothing on other systems.
///
/// # Errors
/// Those of the operating system.
pub fn deny_inspection() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
