//! Packages of Node, each set in a folder of its own below the target folder.

use std::fs;
use std::path::Path;

use crate::e2e::once;
use crate::fault::{Fault, Result};
use crate::process;

/// Installs packages, given as `NAME@VERSION`, unless they are there in just these versions. Options of npm
/// may stand among them.
pub(crate) fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    once(folder, &packages.join("\n"), || {
        if !process::succeeds(process::command("npm").arg("--version")) {
            return Err(Fault::new("npm is not installed"));
        }
        // A package of its own, or npm would install into one further up.
        let package = folder.join("package.json");
        if !package.exists() {
            fs::write(&package, "{ \"private\": true }\n")
                .map_err(|e| Fault::because(package.display(), e))?;
        }
        let mut npm = process::command("npm");
        npm.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
        process::run(npm.args(packages))
    })
}

/// The newest version of a package, where the registry can be asked.
pub(crate) fn newest(package: &str) -> Option<String> {
    let mut npm = process::command("npm");
    let version = process::try_capture(npm.args(["view", package, "version", "--loglevel=silent"]))?;
    Some(version.trim().to_owned()).filter(|version| !version.is_empty())
}
