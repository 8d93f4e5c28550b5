//! No languages, in a build without the feature `highlight`.

use anstyle::Style;

/// A language; there is none.
#[derive(Clone, Debug)]
pub(super) enum Syntax {}

impl Syntax {
    pub(super) fn of_language(_name: &str) -> Option<Self> {
        None
    }

    pub(super) fn of_file(_name: &str) -> Option<Self> {
        None
    }

    pub(super) fn line<'l>(&mut self, _line: &'l str) -> Vec<(&'l str, Style)> {
        match *self {}
    }
}
