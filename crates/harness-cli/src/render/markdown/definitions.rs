//! Link definitions of earlier blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulldown_cmark::RefDefs;

/// Maximum number of definitions.
const MOST: usize = 1_000;

/// Maximum length of names and addresses.
const LONGEST: usize = 2_000;

/// Addresses by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions(Arc<BTreeMap<String, String>>);

impl Definitions {
    pub(super) fn address(&self, name: &str) -> Option<&str> {
        self.0.get(&folded(name)).map(String::as_str)
    }

    /// Adds the definitions of a block; the first definition of a name wins.
    pub(super) fn learn(&mut self, found: &RefDefs<'_>) {
        for (name, definition) in found.iter() {
            let short = name.len() <= LONGEST && definition.dest.len() <= LONGEST;
            let name = folded(name);
            if short && self.0.len() < MOST && !self.0.contains_key(&name) {
                Arc::make_mut(&mut self.0).insert(name, definition.dest.to_string());
            }
        }
    }
}

/// A name in its comparable form, without case and extra white space.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
