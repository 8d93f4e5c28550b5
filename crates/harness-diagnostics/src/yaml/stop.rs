//! Errors that stop reading.

use granit_parser::{ErrorKind, ScanError};

use super::fault::{YamlError, YamlFault};
use crate::document::{Bytes, Document};

/// An error and its bytes in the text.
pub(super) struct Stop {
    pub(super) fault: Box<YamlFault>,
    pub(super) bytes: Bytes,
    /// The parser's own error, if it is the reason.
    pub(super) parser: Option<Box<ScanError>>,
}

impl Stop {
    pub(super) fn yaml(fault: YamlFault, bytes: Bytes) -> Self {
        Self { fault: Box::new(fault), bytes, parser: None }
    }

    pub(super) fn too_large(what: &'static str, limit: u64, actual: u64, bytes: Bytes) -> Self {
        Self { fault: Box::new(YamlFault::TooLarge { what, limit, actual }), bytes, parser: None }
    }

    pub(super) fn parser(error: ScanError) -> Self {
        let at = error.marker().byte_offset().and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
        let reason = if *error.kind() == ErrorKind::InvalidQuotedScalarIndent {
            "a quoted value is not closed, or cannot be read".to_owned()
        } else {
            error.info()
        };
        let fault = Box::new(YamlFault::Syntax(reason));
        Self { fault, bytes: Bytes { start: at, end: at }, parser: Some(Box::new(error)) }
    }

    /// The error, with its place in the document.
    pub(super) fn error(self, document: &Document) -> YamlError {
        YamlError { fault: *self.fault, place: Some(document.place_of(self.bytes)) }
    }
}
