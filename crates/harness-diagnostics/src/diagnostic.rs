//! Errors and warnings with their places.

use std::fmt;

use harness_core::display::mask_secrets;
use serde::Serialize;

use crate::place::Place;
use crate::render::{Rendered, Style};

/// Severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably contains a mistake.
    Warning,
}

impl Severity {
    /// Name of the severity: `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Error or warning, with its place.
///
/// Serializes as `{severity, code, message, place?, hint?, related}`; a place is
/// `{file, line, column, endLine, endColumn, start, end}` with lines and columns from 1 and
/// `start..end` in bytes of the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// The stable code, such as `descriptor.unknown_tool`.
    pub code: &'static str,
    /// Description of the problem, without a full stop.
    pub message: String,
    /// Place of the problem; `None` if it concerns no place in a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Related places.
    pub related: Vec<Related>,
}

/// A further place of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Related {
    /// Related place.
    pub place: Place,
    /// Description of the place, such as `declared here`.
    pub message: String,
}

impl Diagnostic {
    /// Creates a diagnostic without a place. Secrets in the message are masked.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        let message = mask_secrets(&message.into()).into_owned();
        Self { severity, code, message, place: None, hint: None, related: Vec::new() }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.place = place.into();
        self
    }

    /// Sets or removes the suggested fix.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Sets the suggested fix.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.with_hint(Some(hint.into()))
    }

    /// Adds a related place with its description.
    #[must_use]
    pub fn relate(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push(Related { place, message: message.into() });
        self
    }

    /// Renders the diagnostic: place and code, the line with a caret below the value, the hint, and
    /// the related places.
    pub fn render(&self, style: Style) -> Rendered<'_> {
        Rendered::of(std::slice::from_ref(self), style)
    }
}

impl std::error::Error for Diagnostic {}

/// Displays as one line: `file:line:column: message; hint`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}
