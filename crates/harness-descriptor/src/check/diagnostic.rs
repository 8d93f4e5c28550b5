//! One thing that is wrong, or looks wrong.

use harness_core::display::mask_secrets;
use serde::Serialize;

use super::render::{Rendered, Style};
use crate::descriptor::Warning;
use crate::error::DescriptorError;
use crate::place::Place;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The descriptor cannot be used, or every run of it fails.
    Error,
    /// The descriptor can be used, but probably does not do what is meant.
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
    /// How bad it is.
    pub severity: Severity,
    /// The stable code, such as `descriptor.unknown_tool`; each is described in
    /// `docs/reference/diagnostics.md`.
    pub code: &'static str,
    /// Description of the problem, without a full stop.
    pub message: String,
    /// Place of the problem; `None` if it concerns no place in a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
}

/// A place that a [`Diagnostic`] refers to beside its own.
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
    /// A diagnostic of something else than a descriptor that is checked with it, such as a registry.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        let message = mask_secrets(&message.into()).into_owned();
        Self { severity, code, message, place: None, hint: None, related: Vec::new() }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) fn warning(code: &'static str, message: impl Into<String>, place: Place) -> Self {
        Self {
            severity: Severity::Warning,
            code,
            message: mask_secrets(&message.into()).into_owned(),
            place: Some(place),
            hint: None,
            related: Vec::new(),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn relate(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push(Related { place, message: message.into() });
        self
    }

    /// Renders the diagnostic: place and code, the line with a caret below the value, the hint, and
    /// the related places.
    pub fn render(&self, style: Style) -> Rendered<'_> {
        Rendered::of(std::slice::from_ref(self), style)
    }
}

impl From<&DescriptorError> for Diagnostic {
    fn from(error: &DescriptorError) -> Self {
        let related = error.related().iter();
        Self {
            severity: Severity::Error,
            code: error.kind(),
            message: mask_secrets(&error.fault().to_string()).into_owned(),
            place: error.place().cloned(),
            hint: error.hint().map(ToOwned::to_owned),
            related: related
                .map(|(place, message)| Related { place: place.clone(), message: message.clone() })
                .collect(),
        }
    }
}

impl From<Warning> for Diagnostic {
    fn from(warning: Warning) -> Self {
        Self::warning(warning.kind.code(), warning.kind.to_string(), warning.place)
    }
}
