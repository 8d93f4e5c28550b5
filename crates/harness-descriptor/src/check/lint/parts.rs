//! Unused instruction parts.

use std::collections::HashSet;

use super::finder::Finder;
use crate::field::Form;

pub(super) fn check(finder: &mut Finder<'_>) {
    let document = finder.document;
    let mut used: HashSet<&str> = HashSet::new();
    for owner in finder.owners() {
        for item in finder.items(owner, Form::Sequence.key()) {
            used.extend(document.get(*item, "ref").and_then(|name| document.string(name)));
        }
    }
    for entry in finder.entries(&["instruction_parts"]) {
        let name = finder.key(entry);
        if !used.contains(name) {
            let message = format!("instruction part `{name}` is used by no instructions_sequence");
            let warning = finder.at_key("lint.unused_part", message, entry);
            finder.push(warning.hint(format!("use it with `ref: {name}`, or remove it")));
        }
    }
}
