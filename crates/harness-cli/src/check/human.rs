//! Human-readable results.

use std::fmt::Write as _;
use std::io::Write as _;

use harness::descriptor::check::Style;

use super::{Checked, Sound};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, GOOD, NOTE, counted};
use crate::terminal::{self, painted};

/// Prints problems on standard error and valid files on standard output.
pub(super) fn print(checked: &[Checked], exit: Exit) -> Result<Exit, CliError> {
    let mut err = terminal::messages();
    for diagnostic in checked.iter().flat_map(|checked| &checked.diagnostics) {
        // What is not shown because nobody reads it is no reason to end.
        let _ = writeln!(err, "{}", painted(&diagnostic.render(Style::Ansi).to_string()));
    }
    let mut text = String::new();
    for one in checked {
        if let Some(Sound { hash, entry, agents, tools }) = one.sound.as_ref().filter(|_| one.errors() == 0) {
            let (agents, tools) = (counted(*agents, "agent"), counted(*tools, "tool"));
            let file = one.file.display();
            let _ =
                writeln!(text, "{file} is {GOOD}valid{GOOD:#}: {agents}, entry `{entry}`, {tools}\n{hash}");
            if one.registry.is_none() && one.sound.as_ref().is_some_and(|sound| sound.tools > 0) {
                let _ = writeln!(
                    err,
                    "{NOTE}note{NOTE:#}: no registry file next to {file}; tool targets were not checked"
                );
            }
        }
        if let Some(contract) = one.contract.as_ref().filter(|_| one.errors() == 0) {
            let (file, outputs) =
                (one.file.display(), counted(contract.required_outputs.len(), "required output"));
            let _ = writeln!(text, "{file} is {GOOD}valid{GOOD:#}: a contract with {outputs}");
        }
        if one.truncated {
            let _ = writeln!(err, "{}: further errors are not listed", one.file.display());
        }
    }
    let exit = output::print(&text, exit)?;
    summary(checked, &mut err);
    Ok(exit)
}

/// `3 errors, 2 warnings`; empty if there are none.
fn summary(checked: &[Checked], err: &mut impl std::io::Write) {
    let errors: usize = checked.iter().map(Checked::errors).sum();
    let warnings: usize = checked.iter().map(Checked::warnings).sum();
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(format!("{BAD}{}{BAD:#}", counted(errors, "error")));
    }
    if warnings > 0 {
        parts.push(format!("{NOTE}{}{NOTE:#}", counted(warnings, "warning")));
    }
    if parts.is_empty() {
        return;
    }
    let what = if checked.iter().any(|one| one.is_contract) { "files" } else { "descriptors" };
    let files = if checked.len() > 1 { format!(" in {} {what}", checked.len()) } else { String::new() };
    let _ = writeln!(err, "{}{files}", parts.join(", "));
}
