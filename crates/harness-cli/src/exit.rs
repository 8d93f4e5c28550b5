//! Exit codes.

use std::fmt::Write as _;
use std::process::ExitCode;

use harness::core::{Outcome, StopReason};

/// End of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Refused,
    NeedsClarification,
    AwaitingApproval,
    Deferred,
    Unwritten,
    HungUp,
    Cancelled,
    Quit,
    OutputClosed,
    Terminated,
}

impl Exit {
    /// All ends, by code.
    pub(crate) const ALL: [Self; 12] = [
        Self::Completed,
        Self::Failed,
        Self::Refused,
        Self::NeedsClarification,
        Self::AwaitingApproval,
        Self::Deferred,
        Self::Unwritten,
        Self::HungUp,
        Self::Cancelled,
        Self::Quit,
        Self::OutputClosed,
        Self::Terminated,
    ];

    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::NeedsClarification => 3,
            Self::AwaitingApproval => 4,
            Self::Deferred => 5,
            Self::Unwritten => 6,
            Self::HungUp => 129,
            Self::Cancelled => 130,
            Self::Quit => 131,
            Self::OutputClosed => 141,
            Self::Terminated => 143,
        }
    }

    /// Its outcome, in the words of `--json`.
    #[cfg(test)]
    fn outcome(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Refused | Self::Unwritten | Self::OutputClosed => "-",
            Self::NeedsClarification => "needs_clarification",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Deferred => "deferred",
            Self::HungUp | Self::Cancelled | Self::Quit | Self::Terminated => "failed, cancelled",
        }
    }

    /// Human-readable description.
    fn meaning(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "run failed; `diff` found a difference; `doctor` found a problem",
            Self::Refused => "invalid arguments or configuration; nothing was run and no model was called",
            Self::NeedsClarification => "the agent asks a question",
            Self::AwaitingApproval => "awaiting approval",
            Self::Deferred => "limit reached; the session can be resumed",
            Self::Unwritten => {
                "output could not be written: the answer, the session, the record, the report or a deliverable"
            }
            Self::HungUp => "SIGHUP: the terminal was closed",
            Self::Cancelled => "Ctrl-C",
            Self::Quit => "SIGQUIT",
            Self::OutputClosed => "broken pipe",
            Self::Terminated => "SIGTERM",
        }
    }

    /// The end of a run with that outcome and reason.
    pub(crate) fn of(outcome: Outcome, reason: StopReason) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::NeedsClarification => Self::NeedsClarification,
            Outcome::AwaitingApproval => Self::AwaitingApproval,
            Outcome::Deferred => Self::Deferred,
            Outcome::Failed if reason == StopReason::Cancelled => Self::Cancelled,
            Outcome::Failed => Self::Failed,
        }
    }

    /// The end of a run of which some output could not be written. A failed or cancelled run takes precedence.
    pub(crate) fn unwritten(self) -> Self {
        match self {
            Self::Failed
            | Self::HungUp
            | Self::Cancelled
            | Self::Quit
            | Self::Terminated
            | Self::Refused
            | Self::OutputClosed => self,
            Self::Completed
            | Self::NeedsClarification
            | Self::AwaitingApproval
            | Self::Deferred
            | Self::Unwritten => Self::Unwritten,
        }
    }

    /// The table as plain text, for `--help` of commands that run agents.
    pub(crate) fn help() -> String {
        Self::help_without(&[])
    }

    /// The table as plain text, for `--help` of a command that never ends with some codes.
    pub(crate) fn help_without(omitted: &[Self]) -> String {
        let listed: Vec<Self> = Self::ALL.into_iter().filter(|exit| !omitted.contains(exit)).collect();
        Self::help_with(&listed)
    }

    /// The rows of these codes as plain text, for `--help`.
    pub(crate) fn help_with(listed: &[Self]) -> String {
        let mut text = String::from("Exit codes:\n");
        for exit in listed {
            let meaning = if *exit == Self::Failed { "failed" } else { exit.meaning() };
            let _ = writeln!(text, "  {:>3}  {meaning}", exit.code());
        }
        text
    }

    /// The table as Markdown, for `docs/reference/exit-codes.md`.
    #[cfg(test)]
    fn markdown() -> String {
        let mut text = String::from("| code | outcome | meaning |\n|---|---|---|\n");
        for exit in Self::ALL {
            let _ = writeln!(text, "| {} | {} | {} |", exit.code(), exit.outcome(), exit.meaning());
        }
        text
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_has_the_table_of_the_program() {
        let page = include_str!("../../../docs/reference/exit-codes.md");
        assert!(page.contains(&Exit::markdown()), "put this table into the page:\n\n{}", Exit::markdown());
    }

    #[test]
    fn every_stop_has_one_ending() {
        for reason in StopReason::ALL {
            let exit = Exit::of(reason.outcome(), reason);
            let named = exit.outcome().split(',').next();
            assert_eq!(named, Some(reason.outcome().as_str()), "{reason}");
        }
    }

    #[test]
    fn codes_are_distinct_and_in_order() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }
}
