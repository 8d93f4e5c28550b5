//! Where things are, and what the workspace consists of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::fault::{Fault, Result};
use crate::process;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// A path as people write it: relative to the workspace where it lies inside.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Reads a text file; the fault names the path.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| Fault::because(shown(path), e))
}

/// What `cargo metadata` says of the workspace's own packages.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The workspace's packages, without their dependencies.
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    pub(crate) target_directory: PathBuf,
}

/// One package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its features with what each switches on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// Everything it depends on, dev dependencies included.
    pub(crate) dependencies: Vec<Dependency>,
    /// `Some([])` means that it cannot be published.
    pub(crate) publish: Option<Vec<String>>,
    /// The path of its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
}

/// One line of a dependency table.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package depended on.
    pub(crate) name: String,
    /// `None` for an ordinary one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// Copies a folder with everything in it, over what is there.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Workspace {
    /// Asks cargo; needs no network.
    pub(crate) fn load() -> Result<Self> {
        let mut cargo = process::cargo(["metadata", "--no-deps", "--format-version", "1"]);
        let text = process::capture(&mut cargo)?;
        serde_json::from_str(&text).map_err(|e| Fault::because("output of cargo metadata", e))
    }
}
