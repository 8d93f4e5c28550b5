//! Braces that look like a placeholder and are none.

use harness_diagnostics::document::NodeId;
use harness_diagnostics::{Diagnostic, Severity};

use super::finder::Finder;
use crate::field::Form;
use crate::graph::{Placeholder, placeholders};
use crate::number::trim;

/// Characters of a text that are looked at for the closing braces.
const MAX_LENGTH: usize = 80;

pub(super) fn check(finder: &mut Finder<'_>) {
    for owner in finder.owners() {
        let Some(instructions) = finder.document.get(owner, Form::Inline.key()) else { continue };
        text(finder, instructions);
        for part in finder.document.list(instructions).unwrap_or_default() {
            if let Some(node) = finder.document.get(*part, "text") {
                text(finder, node);
            }
        }
    }
}

fn text(finder: &mut Finder<'_>, node: NodeId) {
    let Some(text) = finder.document.string(node) else { return };
    let mut read = placeholders(text).map(|Placeholder { at, .. }| at).peekable();
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find("{{")).map(|at| from + at) {
        while read.next_if(|at| at.end <= start).is_some() {}
        if let Some(at) = read.peek().filter(|at| at.start < start + 2) {
            from = at.end;
            continue;
        }
        let end = end(text, start);
        from = end;
        let written = text.get(start..end).unwrap_or_default();
        let message = format!("`{written}` is not a placeholder and stays in the text unchanged");
        let place = finder.document.place_in(node, start..end);
        let warning = Diagnostic::new(Severity::Warning, "lint.placeholder", message).at(place);
        let hint = meant(finder, written);
        finder.push(
            warning.hint(hint.unwrap_or_else(|| "a placeholder is written `{{context.PATH}}`".to_owned())),
        );
    }
}

/// Where the braces that begin at `start` end: behind `}}`, or with their line.
fn end(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let near = rest.char_indices().nth(MAX_LENGTH).map_or(rest, |(at, _)| rest.get(..at).unwrap_or(rest));
    let line = near.split(['\n', '\r']).next().unwrap_or(near);
    start + line.find("}}").map_or(line.trim_end().len(), |at| at + 2)
}

/// The declared path that the braces name without `context.`, or with another word before it.
fn meant(finder: &Finder<'_>, written: &str) -> Option<String> {
    let inner = trim(written.trim_matches(['{', '}']));
    let declared = finder.entries(&["context", "references"]).iter().map(|entry| finder.key(entry));
    let path = declared
        .filter(|path| inner == *path || inner.strip_suffix(path).is_some_and(|head| head.ends_with('.')))
        .max_by_key(|path| path.len())?;
    Some(format!("did you mean `{{{{context.{path}}}}}`?"))
}
