//! Packages of Node, each set in a folder of its own under the target folder.

use std::fs;
use std::path::Path;

use xtask::fault::{Fault, Result};
use xtask::process;

/// Installs packages, given as `NAME@VERSION`, unless they are there in just these versions. Options of npm
/// may stand among them.
pub(super) fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    let wanted = packages.join("\n");
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if !process::succeeds(process::command("npm").arg("--version")) {
        return Err(Fault::new("npm is not installed"));
    }
    let failed = |e| Fault::because(folder.display(), e);
    fs::create_dir_all(folder).map_err(failed)?;
    // A package of its own, or npm would install into one further up.
    fs::write(folder.join("package.json"), "{ \"private\": true }\n").map_err(failed)?;
    let mut npm = process::command("npm");
    npm.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).args(packages);
    process::run(&mut npm)?;
    fs::write(installed, wanted).map_err(failed)
}

/// The newest version of a package, where the registry can be asked.
pub(super) fn newest(package: &str) -> Option<String> {
    let mut npm = process::command("npm");
    let version = process::try_capture(npm.args(["view", package, "version", "--loglevel=silent"]))?;
    Some(version.trim().to_owned()).filter(|version| !version.is_empty())
}
