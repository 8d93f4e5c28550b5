//! What was found about one thing.

use serde::Serialize;

/// What an area of findings is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Area {
    Descriptor,
    Keys,
    Endpoints,
    Agents,
    Relay,
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
            Self::Files => "files",
            Self::Machine => "machine",
        }
    }
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Not there, and only missed by those who want it.
    Absent,
    /// Works, but not as it should.
    Warning,
    /// Does not work.
    Fault,
}

/// One line of what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) area: Area,
    /// What it is about: stable, for programs.
    pub(super) name: String,
    pub(super) status: Status,
    /// What was found, for people.
    pub(super) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    /// A finding about something.
    pub(super) fn new(area: Area, name: &str, status: Status, message: impl Into<String>) -> Self {
        Self { area, name: name.to_owned(), status, message: message.into(), fix: None }
    }

    /// The finding with what to do about it.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
