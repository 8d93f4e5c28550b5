//! Clock, terminal and sandbox.

use std::io::{IsTerminal as _, stdin};

use harness::core::Time;
use harness::host::process::Sandbox;

use super::finding::{Area, Finding, Status};
use crate::terminal::Stream;

/// Earliest plausible time, before any release of the program: 2026-01-01T00:00:00Z, in milliseconds.
const BEFORE_ANY: Time = Time(1_767_225_600_000);

/// Findings about them.
pub(super) fn findings(now: Time) -> Vec<Finding> {
    vec![clock(now), terminal(), sandbox()]
}

fn clock(now: Time) -> Finding {
    if now < BEFORE_ANY {
        let message = format!("the clock is wrong: {now}");
        return Finding::new(Area::Machine, "clock", Status::Fault, message)
            .fix("set the clock; certificates and the order of sessions depend on it");
    }
    Finding::new(Area::Machine, "clock", Status::Ok, format!("the clock is set: {now}"))
}

/// Approval prompts use standard error and standard input.
fn terminal() -> Finding {
    let asks = stdin().is_terminal() && Stream::Err.is_terminal();
    let shows = if Stream::Out.is_terminal() {
        "standard output is a terminal"
    } else {
        "standard output is not a terminal"
    };
    let approvals = if asks {
        "approvals can be prompted for"
    } else {
        "no terminal for approvals: runs that need one stop with exit code 4"
    };
    Finding::new(Area::Machine, "terminal", Status::Ok, format!("{shows}; {approvals}"))
}

/// Whether commands of the shell tool can be sandboxed.
fn sandbox() -> Finding {
    match Sandbox::available() {
        Ok(()) => {
            let message = "programs can be sandboxed (Landlock and seccomp)".to_owned();
            Finding::new(Area::Machine, "sandbox", Status::Ok, message)
        }
        Err(fault) => {
            let message = format!("programs cannot be sandboxed: {fault}");
            Finding::new(Area::Machine, "sandbox", Status::Absent, message)
                .fix("use Linux 6.2 or later, or set `sandbox: off` for tools in the registry file")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_the_program_cannot_be_right() {
        assert_eq!(clock(Time(0)).status, Status::Fault);
        assert_eq!(clock(BEFORE_ANY).status, Status::Ok);
    }
}
