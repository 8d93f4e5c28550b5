//! Collects the errors of a document.

use std::cell::{Cell, RefCell};

use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Bytes, Document, NodeId};

/// Maximum number of errors that are listed.
const MAX_LISTED: usize = 50;

/// Codes of the errors of a document.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    /// A key that its mapping does not have.
    pub unknown: &'static str,
    /// A required key that is absent.
    pub missing: &'static str,
    /// Everything else.
    pub invalid: &'static str,
}

impl From<&'static str> for Codes {
    /// One code for all.
    fn from(code: &'static str) -> Self {
        Self { unknown: code, missing: code, invalid: code }
    }
}

/// Which of the [`Codes`] an error has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Unknown,
    Missing,
    Invalid,
}

/// Errors found in one document, so that a reader can report all of them at once.
#[derive(Debug)]
pub struct Findings<'d> {
    document: &'d Document,
    codes: Codes,
    found: RefCell<Vec<(Problem, Diagnostic)>>,
    omitted: Cell<usize>,
}

impl<'d> Findings<'d> {
    /// No errors yet. They will have these codes.
    pub fn new(document: &'d Document, codes: impl Into<Codes>) -> Self {
        Self { document, codes: codes.into(), found: RefCell::default(), omitted: Cell::new(0) }
    }

    /// The document that is read.
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Reports an error of a value.
    pub fn value(&self, node: NodeId, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.at(self.document.bytes(node), message, hint);
    }

    /// Reports an error at a place in the text.
    pub fn at(&self, bytes: Bytes, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.report(Problem::Invalid, bytes, message, hint);
    }

    pub(crate) fn report(
        &self,
        problem: Problem,
        bytes: Bytes,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        if self.found.borrow().len() == MAX_LISTED {
            self.omitted.set(self.omitted.get() + 1);
            return;
        }
        let code = match problem {
            Problem::Unknown => self.codes.unknown,
            Problem::Missing => self.codes.missing,
            Problem::Invalid => self.codes.invalid,
        };
        let error =
            Diagnostic::new(Severity::Error, code, message).at(self.document.place_of(bytes)).with_hint(hint);
        self.found.borrow_mut().push((problem, error));
    }

    /// The errors in the order of the text; the last one counts those that are not listed.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> =
            self.found.into_inner().into_iter().map(|(_, error)| error).collect();
        found.sort_by_key(start);
        if self.omitted.get() > 0 {
            let message = format!("{} more errors in {}", self.omitted.get(), self.document.label());
            found.push(Diagnostic::new(Severity::Error, self.codes.invalid, message));
        }
        found
    }

    /// A value that was read, unless there are errors.
    ///
    /// # Errors
    /// The first unknown key in the order of the text, as it may be the misspelled name of a missing one; else the first
    /// error.
    pub fn finish<T>(self, value: T) -> Result<T, Box<Diagnostic>> {
        let first = self
            .found
            .into_inner()
            .into_iter()
            .min_by_key(|(problem, error)| (*problem != Problem::Unknown, start(error)));
        first.map_or(Ok(value), |(_, error)| Err(Box::new(error)))
    }
}

fn start(error: &Diagnostic) -> Option<usize> {
    error.place.as_ref().map(|place| place.bytes.start)
}
