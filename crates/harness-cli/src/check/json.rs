//! Results as JSON: a line for each descriptor or contract, then the summary.

use std::path::Path;

use harness::descriptor::check::Diagnostic;
use serde::Serialize;

use super::Checked;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Descriptor {
        file: &'a Path,
        #[serde(skip_serializing_if = "Option::is_none")]
        registry: Option<&'a Path>,
        sound: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<&'a str>,
        errors: usize,
        warnings: usize,
        truncated: bool,
        diagnostics: &'a [Diagnostic],
    },
    Contract {
        file: &'a Path,
        sound: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        required_outputs: Option<usize>,
        errors: usize,
        warnings: usize,
        truncated: bool,
        diagnostics: &'a [Diagnostic],
    },
    Summary {
        descriptors: usize,
        errors: usize,
        warnings: usize,
    },
}

/// Prints the lines.
pub(super) fn print(checked: &[Checked], exit: Exit) -> Result<Exit, CliError> {
    let mut lines: Vec<Line<'_>> = checked.iter().map(Line::of).collect();
    lines.push(Line::Summary {
        descriptors: checked.iter().filter(|checked| !checked.is_contract).count(),
        errors: checked.iter().map(Checked::errors).sum(),
        warnings: checked.iter().map(Checked::warnings).sum(),
    });
    output::print_lines(&lines, exit)
}

impl<'a> Line<'a> {
    fn of(checked: &'a Checked) -> Self {
        if checked.is_contract {
            return Self::Contract {
                file: &checked.file,
                sound: checked.errors() == 0,
                required_outputs: checked.contract.as_ref().map(|contract| contract.required_outputs.len()),
                errors: checked.errors(),
                warnings: checked.warnings(),
                truncated: checked.truncated,
                diagnostics: &checked.diagnostics,
            };
        }
        Self::Descriptor {
            file: &checked.file,
            registry: checked.registry.as_deref(),
            sound: checked.errors() == 0,
            hash: checked.sound.as_ref().map(|sound| sound.hash.as_str()),
            errors: checked.errors(),
            warnings: checked.warnings(),
            truncated: checked.truncated,
            diagnostics: &checked.diagnostics,
        }
    }
}
