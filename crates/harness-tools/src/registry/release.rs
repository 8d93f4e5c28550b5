//! The version of the tools that a registry file names.

use super::bound::Registry;
use super::entry::child;
use super::faults::Faults;
use super::yaml::{self, Node};

const KEY: &str = "registry_version";
/// The longest version, in bytes.
const LONGEST: usize = 256;

/// Finds a version that is no text.
pub(super) fn check(keys: &[(String, Node)], faults: &mut Faults<'_>) {
    let Some((_, node)) = keys.iter().find(|(key, _)| key == KEY) else { return };
    if version_of(node).is_none() {
        let problem = format!("expected a text of at most {LONGEST} bytes, found {}", node.kind());
        let hint = format!("name a version of your tools, for example `{KEY}: \"2026-11-01\"`");
        faults.value(&child(&[], KEY), problem, Some(hint));
    }
}

fn version_of(node: &Node) -> Option<&str> {
    let (Node::Text(text) | Node::Number(text, _)) = node else { return None };
    let text = text.trim();
    (!text.is_empty() && text.len() <= LONGEST).then_some(text)
}

impl Registry {
    /// The version of the tools, from the key `registry_version`; `None` when the file names none. Records and
    /// the digest of their candidates carry it.
    pub fn registry_version(&self) -> Option<String> {
        let root = yaml::parse(self.text()).ok()?;
        let (_, node) = root.as_map()?.iter().find(|(key, _)| key == KEY)?;
        version_of(node).map(str::to_owned)
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
        assert_eq!(read("version: 1\ntools: {}\n"), Ok(None));
        let fault = read("version: 1\nregistry_version: [7]\ntools: {}\n").unwrap_err();
        assert!(fault.contains("expected a text"), "{fault}");
    }
}
