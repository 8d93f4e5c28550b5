//! The version of the tools that a registry file names.

use harness_diagnostics::Fields;
use harness_diagnostics::document::{Document, NodeId};

use super::bound::Registry;

const KEY: &str = "registry_version";
/// Maximum length of a version, in bytes.
const MAX_LENGTH: usize = 256;

/// Reports an invalid version.
pub(super) fn check(fields: &Fields<'_>) {
    if fields.node(KEY).is_some_and(|node| version_of(fields.document(), node).is_none()) {
        let hint = format!("name a version of your tools, for example `{KEY}: \"2026-11-01\"`");
        fields.expected(KEY, &format!("a string of at most {MAX_LENGTH} bytes"), &hint);
    }
}

/// A string, or a number or date as written.
fn version_of(document: &Document, node: NodeId) -> Option<String> {
    let text = document.string(node).unwrap_or_else(|| document.written(node)).trim();
    let is_scalar = document.list(node).is_none() && document.entries(node).is_none();
    (is_scalar && !document.is_null(node) && !text.is_empty() && text.len() <= MAX_LENGTH)
        .then(|| text.to_owned())
}

impl Registry {
    /// Version of the tools, from the key `registry_version`; `None` if the file has none. Records and
    /// the digest of their candidates contain it.
    pub fn registry_version(&self) -> Option<String> {
        let document = self.document();
        version_of(document, document.get(document.root()?, KEY)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use harness_host::process::Environment;

    use super::*;

    fn read(text: &str) -> Result<Option<String>, String> {
        let read = Registry::parse(text, Path::new("registry.yaml"), &Environment::default());
        read.map(|registry| registry.registry_version()).map_err(|error| error.to_string())
    }

    #[test]
    fn fault_21_a_registry_file_carries_a_version() {
        assert_eq!(read("version: 1\nregistry_version: tools-7\ntools: {}\n"), Ok(Some("tools-7".into())));
        assert_eq!(read("version: 1\nregistry_version: 7\ntools: {}\n"), Ok(Some("7".into())));
        let dated = read("version: 1\nregistry_version: 2026-11-01\ntools: {}\n");
        assert_eq!(dated, Ok(Some("2026-11-01".into())));
        assert_eq!(read("version: 1\ntools: {}\n"), Ok(None));
        let error = read("version: 1\nregistry_version: [7]\ntools: {}\n").unwrap_err();
        assert!(error.contains("must be a string"), "{error}");
    }
}
