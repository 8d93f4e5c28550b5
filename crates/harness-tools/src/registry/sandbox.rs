//! The key `sandbox` of an entry.

use std::path::{Path, PathBuf};

use harness_host::process::Sandbox;

use super::entry::{Fields, child, unknown_keys};
use super::yaml::Node;

const KEYS: [&str; 3] = ["read", "write", "network"];

/// What an entry says of its sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SandboxEntry {
    Off,
    On {
        read: Vec<String>,
        /// `None`: the folder that the program runs in.
        write: Option<Vec<String>>,
        network: bool,
    },
}

impl SandboxEntry {
    /// The usual one.
    pub(crate) const USUAL: Self = Self::On { read: Vec::new(), write: None, network: false };

    /// The sandbox of a program that runs in a folder; `rooted` makes the file's paths absolute.
    pub(crate) fn of(&self, folder: &Path, rooted: &dyn Fn(&str) -> PathBuf) -> Option<Sandbox> {
        let Self::On { read, write, network } = self else { return None };
        let paths = |paths: &[String]| paths.iter().map(|path| rooted(path)).collect::<Vec<_>>();
        let mut sandbox = Sandbox::new();
        sandbox.read = paths(read);
        sandbox.read.push(folder.to_owned());
        sandbox.write = write.as_deref().map_or_else(|| vec![folder.to_owned()], paths);
        sandbox.network = *network;
        Some(sandbox)
    }
}

/// Reads the key; `None` when it is absent or wrong.
pub(crate) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<SandboxEntry> {
    const FORM: &str = "write `on`, `off`, or a mapping of `read`, `write` and `network`";
    let node = fields.get("sandbox")?;
    let entries = match node {
        Node::Bool(true) => return Some(SandboxEntry::USUAL),
        Node::Bool(false) => return Some(SandboxEntry::Off),
        Node::Text(word) if word == "on" => return Some(SandboxEntry::USUAL),
        Node::Text(word) if word == "off" => return Some(SandboxEntry::Off),
        Node::Text(word) => {
            fields.fault("sandbox", format!("unknown word `{word}`"), FORM);
            return None;
        }
        Node::Map(entries) => entries,
        Node::Null | Node::Number(..) | Node::List(_) | Node::Other => {
            fields.fault("sandbox", format!("expected a mapping, found {}", node.kind()), FORM);
            return None;
        }
    };
    let path = child(fields.path(), "sandbox");
    unknown_keys(entries, &KEYS, &path, fields.faults());
    let mut inner = Fields::new(entries, &path, fields.faults());
    let write = inner.get("write").is_some().then(|| inner.texts("write"));
    Some(SandboxEntry::On { read: inner.texts("read"), write, network: inner.flag("network", false) })
}
