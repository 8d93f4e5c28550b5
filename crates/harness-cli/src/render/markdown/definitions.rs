//! Addresses of links that were defined earlier in a text.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulldown_cmark::RefDefs;

/// More definitions than these are not remembered.
const MOST: usize = 1_000;

/// Longer names and addresses are not remembered.
const LONGEST: usize = 2_000;

/// Addresses by the names of their definitions. Copies are cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions(Arc<BTreeMap<String, String>>);

impl Definitions {
    pub(super) fn address(&self, name: &str) -> Option<&str> {
        self.0.get(&folded(name)).map(String::as_str)
    }

    /// Remembers what a block defines; the first definition of a name counts.
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

/// A name as names are compared: case and the amount of white space do not matter.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
