//! The key `sandbox` of an entry.

use std::path::{Path, PathBuf};

use harness_diagnostics::Fields;
use harness_diagnostics::document::Kind;
use harness_host::process::Sandbox;

/// Sandbox of an entry, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SandboxEntry {
    Off,
    On {
        read: Vec<String>,
        /// `None`: the directory that the program runs in.
        write: Option<Vec<String>>,
        network: bool,
    },
}

impl SandboxEntry {
    /// The default of tools that run commands of a model.
    pub(crate) const DEFAULT: Self = Self::On { read: Vec::new(), write: None, network: false };

    /// Sandbox of a program that runs in `folder`; `rooted` makes paths of the file absolute.
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

/// Reads the key; `None` when it is absent or invalid.
pub(crate) fn read(fields: &Fields<'_>) -> Option<SandboxEntry> {
    let document = fields.document();
    let node = fields.node("sandbox")?;
    match (document.kind(node), document.string(node)) {
        (Kind::Bool(true), _) | (_, Some("on")) => return Some(SandboxEntry::DEFAULT),
        (Kind::Bool(false), _) | (_, Some("off")) => return Some(SandboxEntry::Off),
        (Kind::Map(_), _) => {}
        _ => {
            let what = "`on`, `off` or a mapping of `read`, `write` and `network`";
            fields.expected("sandbox", what, "");
            return None;
        }
    }
    let sandbox = fields.section("sandbox", "")?;
    sandbox.known(&["read", "write", "network"]);
    let write = sandbox.has("write").then(|| sandbox.texts("write"));
    let network = sandbox.flag("network").unwrap_or(false);
    Some(SandboxEntry::On { read: sandbox.texts("read"), write, network })
}
