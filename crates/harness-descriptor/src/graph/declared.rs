//! Values for a context: which paths a descriptor declares.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agents::Graph;
use crate::error::{DescriptorError, Fault};
use crate::number::trim;
use crate::value::{Map, Value};

/// How a value lies to the declared paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    /// At a declared path, or inside its value.
    Declared,
    /// Above declared paths.
    Above,
    Apart,
}

impl Graph {
    /// Checks that values for a context are values of paths that the descriptor declares, under `context.fields` or
    /// `context.references`: nothing reads others, so they are misspelled.
    ///
    /// # Errors
    /// [`Fault::UndeclaredValue`] for the first other path, with the declared path that was probably meant.
    pub fn check_values(&self, values: &Map) -> Result<(), DescriptorError> {
        let declared = self.declared_paths();
        let Some(path) = first_undeclared(&declared, "", values) else { return Ok(()) };
        let fault = DescriptorError::from(Fault::UndeclaredValue { path: path.clone() });
        Err(fault.suggest(&path, declared.iter().map(String::as_str)))
    }

    /// Leaves out the values that [`Self::check_values`] would refuse: for values that were recorded with an earlier
    /// form of the descriptor.
    #[must_use]
    pub fn declared_values(&self, mut values: Map) -> Map {
        let declared = self.declared_paths();
        while let Some(path) = first_undeclared(&declared, "", &values) {
            remove(&mut values, &path);
        }
        values
    }

    /// The declared paths, in normal form.
    fn declared_paths(&self) -> BTreeSet<String> {
        let (document, root) = (self.descriptor.document(), self.descriptor.root_id());
        let keys = ["fields", "references"].into_iter().flat_map(|section| {
            let section = document.get_path(root, &["context", section]);
            section.and_then(|id| document.object(id)).unwrap_or_default()
        });
        let paths = keys.map(|entry| {
            let segments = document.resolve(&entry.key).split('.').map(trim);
            segments.filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join(".")
        });
        paths.filter(|path| !path.is_empty()).collect()
    }
}

fn lies(declared: &BTreeSet<String>, path: &str) -> Lies {
    let below = |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
    if declared.iter().any(|known| known == path || below(path, known)) {
        Lies::Declared
    } else if declared.iter().any(|known| below(known, path)) {
        Lies::Above
    } else {
        Lies::Apart
    }
}

fn first_undeclared(declared: &BTreeSet<String>, above: &str, values: &Map) -> Option<String> {
    values.iter().find_map(|(key, value)| {
        let path = if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") };
        match (lies(declared, &path), value) {
            (Lies::Declared, _) => None,
            (Lies::Above, Value::Map(inner)) => first_undeclared(declared, &path, inner),
            (Lies::Above | Lies::Apart, _) => Some(path),
        }
    })
}

fn remove(values: &mut Map, path: &str) {
    // A key may have a dot of its own.
    if values.get(path).is_some() {
        let kept = values.iter().filter(|(key, _)| *key != path);
        *values = kept.map(|(key, value)| (Arc::from(key), value.clone())).collect();
        return;
    }
    for (at, _) in path.match_indices('.') {
        let (first, rest) = (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default());
        if let Some(Value::Map(inner)) = values.get_mut(first) {
            return remove(inner, rest);
        }
    }
}
