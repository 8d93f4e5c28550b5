//! Collects the errors of a document.

use std::cell::{Cell, RefCell};

use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Bytes, Document, NodeId};

/// Maximum number of errors that are listed.
const MAX_LISTED: usize = 50;

/// Errors found in one document, so that a reader can report all of them at once.
#[derive(Debug)]
pub struct Findings<'d> {
    document: &'d Document,
    code: &'static str,
    found: RefCell<Vec<Diagnostic>>,
    omitted: Cell<usize>,
}

impl<'d> Findings<'d> {
    /// No errors yet. All of them will have this code.
    pub fn new(document: &'d Document, code: &'static str) -> Self {
        Self { document, code, found: RefCell::default(), omitted: Cell::new(0) }
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
        if self.found.borrow().len() == MAX_LISTED {
            self.omitted.set(self.omitted.get() + 1);
            return;
        }
        let error = Diagnostic::new(Severity::Error, self.code, message)
            .at(self.document.place_of(bytes))
            .with_hint(hint);
        self.found.borrow_mut().push(error);
    }

    /// The errors in the order of the text; the last one counts those that are not listed.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|error| error.place.as_ref().map(|place| place.bytes.start));
        if self.omitted.get() > 0 {
            let message = format!("{} more errors in {}", self.omitted.get(), self.document.label());
            found.push(Diagnostic::new(Severity::Error, self.code, message));
        }
        found
    }
}
