//! Keys that nothing reads, where that is no fault: in a descriptor that is read as source 000 reads it.

use super::finder::Finder;
use crate::check::diagnostic::Diagnostic;
use crate::unknown;

const CODE: &str = "lint.unknown_key";

pub(super) fn check(finder: &mut Finder<'_>) {
    for unknown in unknown::keys(finder.document, finder.root, true) {
        let message = format!("{} has no key `{}`, so nothing reads it", unknown.owner, unknown.key);
        finder.push(Diagnostic::warning(CODE, message, unknown.place).hint(unknown.hint));
    }
}
