//! Problems of a registry as diagnostics.

use std::fs;
use std::path::Path;

use harness::descriptor::Place;
use harness::descriptor::check::{Diagnostic, Severity};
use harness::tools::{self, Registry, ToolsError};

/// A dependency of the registry that this machine lacks.
const MISSING: &str = "tools.missing";

/// Errors of an invalid registry.
pub(super) fn faults(error: &ToolsError) -> Vec<Diagnostic> {
    let code = error.kind();
    let whole = |file: Option<&Path>, place: Option<tools::Place>, message: String| {
        let place = file.and_then(|file| Some(Text::of(file).place(place?)));
        vec![Diagnostic::new(Severity::Error, code, message).at(place).with_hint(error.hint())]
    };
    match error {
        ToolsError::Faulty { file, faults, more } => {
            let text = Text::of(file);
            let mut found: Vec<Diagnostic> = faults
                .iter()
                .map(|fault| {
                    let message = match fault.path.as_str() {
                        "" => fault.problem.clone(),
                        path => format!("{path}: {}", fault.problem),
                    };
                    let place = fault.place.map(|place| text.place(place));
                    Diagnostic::new(Severity::Error, code, message).at(place).with_hint(fault.hint.clone())
                })
                .collect();
            if *more > 0 {
                let message = format!("{more} more errors in {}", file.display());
                found.push(Diagnostic::new(Severity::Error, code, message));
            }
            found
        }
        ToolsError::Syntax { file, place, problem, .. } => {
            whole(Some(file), *place, format!("not valid YAML: {problem}"))
        }
        ToolsError::NewerVersion { file, place, found, supported } => {
            let message = format!("unsupported registry version {found}, expected {supported}");
            whole(Some(file), *place, message)
        }
        // Their messages name the file, and no place in it.
        ToolsError::Unreadable { .. }
        | ToolsError::TooLong { .. }
        | ToolsError::NotText { .. }
        | ToolsError::Unbound { .. }
        | ToolsError::Schema { .. }
        | _ => whole(None, None, error.to_string()),
    }
}

/// Dependencies of the registry's tools that this machine lacks.
pub(super) fn problems(registry: &Registry) -> Vec<Diagnostic> {
    diagnostics(registry, registry.problems())
}

/// Problems of a registry as diagnostics.
pub(super) fn diagnostics(registry: &Registry, problems: Vec<tools::Problem>) -> Vec<Diagnostic> {
    let text = Text::of(registry.file());
    let diagnostic = |problem: tools::Problem| {
        let message = format!("tool target `{}`: {}", problem.target, problem.problem);
        Diagnostic::new(Severity::Error, MISSING, message)
            .at(problem.place.map(|place| text.place(place)))
            .with_hint(Some(problem.hint))
    };
    problems.into_iter().map(diagnostic).collect()
}

/// Text of a registry, read again for the quoted lines.
struct Text<'f> {
    file: &'f Path,
    text: String,
}

impl<'f> Text<'f> {
    /// A file that can no longer be read has no quoted lines.
    fn of(file: &'f Path) -> Self {
        Self { file, text: fs::read_to_string(file).unwrap_or_default() }
    }

    fn place(&self, place: tools::Place) -> Place {
        Place::in_text(&self.file.display().to_string(), &self.text, place.line, place.column)
    }
}
