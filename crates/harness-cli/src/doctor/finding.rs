//! Findings of `harness doctor`.

use serde::Serialize;

/// Area of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Area {
    Descriptor,
    Keys,
    Endpoints,
    Agents,
    Relay,
    Engine,
    Files,
    Machine,
}

impl Area {
    /// The area as a heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Descriptor => "descriptor",
            Self::Keys => "keys",
            Self::Endpoints => "endpoints",
            Self::Agents => "local agents",
            Self::Relay => "relay",
            Self::Engine => "engine",
            Self::Files => "files",
            Self::Machine => "machine",
        }
    }
}

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// As expected.
    Ok,
    /// Not available, and needed only by some users.
    Absent,
    /// Works with restrictions.
    Warning,
    /// Does not work.
    Fault,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) area: Area,
    /// Stable name of the subject, for programs.
    pub(super) name: String,
    pub(super) status: Status,
    /// Human-readable finding.
    pub(super) message: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    /// Creates a finding.
    pub(super) fn new(area: Area, name: &str, status: Status, message: impl Into<String>) -> Self {
        Self { area, name: name.to_owned(), status, message: message.into(), fix: None }
    }

    /// Adds a suggested fix.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
