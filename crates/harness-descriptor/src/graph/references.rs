//! `context.references`: what templates and gates may read.

use std::collections::HashMap;

use harness_diagnostics::document::{Bytes, Document, Entry, Kind, NodeId};

use super::path::ContextPath;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field, PathUse};

/// Declared context paths by normal form.
#[derive(Debug, Default)]
pub(super) struct References {
    declared: HashMap<ContextPath, Reference>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// A missing value renders as nothing instead of failing.
    pub(super) optional: bool,
    boolean: bool,
    /// The key as written.
    pub(super) key_bytes: Bytes,
}

impl References {
    /// Reads the section; of two keys with one normal form the later wins.
    pub(super) fn read(document: &Document, root: NodeId, faults: &Faults) -> Result<Self, DescriptorError> {
        let mut references = Self::default();
        let section = document.get_path(root, &["context", "references"]);
        for entry in section.and_then(|id| document.object(id)).unwrap_or_default() {
            if let Some(Some((path, reference))) = faults.keep(Self::entry(document, entry))? {
                references.declared.insert(path, reference);
            }
        }
        Ok(references)
    }

    /// One declaration; `None` if it is `false`.
    fn entry(
        document: &Document,
        entry: &Entry,
    ) -> Result<Option<(ContextPath, Reference)>, DescriptorError> {
        let key = document.resolve(&entry.key);
        let place = |fault| DescriptorError::new(fault, Some(document.place_of(entry.key_bytes)));
        let (optional, boolean) = match document.kind(entry.value) {
            // Not declared, and its path is not looked at.
            Kind::Bool(false) => return Ok(None),
            Kind::Bool(true) => (false, false),
            Kind::Map(_) | Kind::Instant(_) => {
                let get = |key| document.get(entry.value, key);
                let optional = get("optional").is_some_and(|id| is_truthy(document, id));
                (optional, get("type").and_then(|id| document.string(id)) == Some("boolean"))
            }
            Kind::Null | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
                // The fault of the path comes first.
                ContextPath::parse(key, || PathUse::Reference).map_err(place)?;
                let field = Field::Reference(key.to_owned());
                return Err(place(Fault::WrongType { field, expected: Expected::FlagOrObject }));
            }
        };
        let path = ContextPath::parse(key, || PathUse::Reference).map_err(place)?;
        Ok(Some((path, Reference { optional, boolean, key_bytes: entry.key_bytes })))
    }

    /// The paths that are declared, in no order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(ContextPath::as_str)
    }

    /// The declaration of a path.
    pub(super) fn get(&self, path: &ContextPath) -> Option<Reference> {
        self.declared.get(path).copied()
    }

    /// The declaration of a path that a placeholder reads.
    pub(super) fn declared(
        &self,
        path: &ContextPath,
        used_by: impl FnOnce() -> PathUse,
    ) -> Result<Reference, Fault> {
        self.get(path).ok_or_else(|| Fault::Undeclared { used_by: used_by(), path: path.as_str().to_owned() })
    }

    /// Checks that a gate's path is declared with type boolean.
    pub(super) fn declared_boolean(
        &self,
        path: &ContextPath,
        used_by: impl Fn() -> PathUse,
    ) -> Result<(), Fault> {
        if self.declared(path, &used_by)?.boolean {
            return Ok(());
        }
        Err(Fault::NotDeclaredBoolean { used_by: used_by(), path: path.as_str().to_owned() })
    }
}

/// ECMAScript truthiness.
fn is_truthy(document: &Document, id: NodeId) -> bool {
    match document.kind(id) {
        Kind::Null => false,
        Kind::Bool(value) => *value,
        Kind::Number(number) => *number != 0.0 && !number.is_nan(),
        Kind::Text(text) => !document.resolve(text).is_empty(),
        Kind::Instant(_) | Kind::List(_) | Kind::Map(_) => true,
    }
}
