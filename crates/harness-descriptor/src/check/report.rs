//! The outcome of a check.

use harness_diagnostics::{Diagnostic, Rendered, Severity, Style};
use std::fmt;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use harness_control::contract::TaskContract;

use crate::descriptor::Descriptor;
use crate::graph::Graph;

/// All that was found, and the descriptor and its graph if they can be used.
///
/// Serializes as `{sound, hash?, faults, warnings, truncated, diagnostics}`: whether it can be used,
/// the hash if so, how many diagnostics of each severity there are, whether there were more than are
/// listed, and the list.
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) descriptor: Option<Descriptor>,
    pub(super) graph: Option<Graph>,
    pub(super) contract: Option<TaskContract>,
    pub(super) truncated: bool,
}

impl Report {
    /// Report of a contract.
    pub(crate) fn of_contract(
        diagnostics: Vec<Diagnostic>,
        contract: Option<TaskContract>,
        truncated: bool,
    ) -> Self {
        Self { diagnostics, descriptor: None, graph: None, contract, truncated }
    }

    /// Errors and warnings: first those without a place, then by file (the descriptor's first) and
    /// place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Errors, in order.
    pub fn faults(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Error)
    }

    /// Warnings, in order.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |diagnostic| diagnostic.severity == severity)
    }

    /// Whether there are no errors.
    pub fn is_sound(&self) -> bool {
        self.faults().next().is_none()
    }

    /// Whether there are neither errors nor warnings.
    pub fn is_clean(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Whether there is more to find than is listed; lists are cut after a few hundred entries.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Materialized descriptor; `None` if there are errors.
    pub fn descriptor(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref()
    }

    /// Agent graph; `None` if there are errors.
    ///
    /// Without a registry in the options, tools are named by their ids and have no description.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// Contract, if a contract file was checked; `None` if there are errors.
    pub fn contract(&self) -> Option<&TaskContract> {
        self.contract.as_ref()
    }

    /// Renders all diagnostics, without a summary.
    pub fn render(&self, style: Style) -> Rendered<'_> {
        Rendered::of(&self.diagnostics, style)
    }
}

/// Displays all diagnostics without colors.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.render(Style::Plain))
    }
}

impl std::error::Error for Report {}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Report", 6)?;
        out.serialize_field("sound", &self.is_sound())?;
        match &self.descriptor {
            Some(descriptor) => out.serialize_field("hash", &descriptor.hash().to_string())?,
            None => out.skip_field("hash")?,
        }
        out.serialize_field("faults", &self.faults().count())?;
        out.serialize_field("warnings", &self.warnings().count())?;
        out.serialize_field("truncated", &self.truncated)?;
        out.serialize_field("diagnostics", &self.diagnostics)?;
        out.end()
    }
}
