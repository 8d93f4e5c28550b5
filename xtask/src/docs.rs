//! `cargo xtask docs`: the site of the documentation.
//!
//! The pages are those that `docs/SUMMARY.md` lists, at the root of the repository or below `docs`. A copy of them, with the
//! files that they link to, is built by mdBook: so a link that works in the repository works on the site. `cargo xtask tidy` checks
//! the links and that every page is listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::{Fault, Result};
use crate::markdown;
use crate::process;
use crate::repo::{Workspace, copy_folder, read, root, shown};
use crate::tidy;

const SUMMARY: &str = "docs/SUMMARY.md";

/// The version that is installed when there is none.
const MDBOOK: &str = "mdbook@^0.5";

/// What to build.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Build the pages alone, without the documentation of the crates.
    #[arg(long)]
    pages: bool,
}

/// Builds the site into `target/site`, and installs mdBook into `target/tools` when there is none.
pub(crate) fn run(options: &Options) -> Result<()> {
    tidy::check_links()?;
    let target = Workspace::load()?.target_directory;
    let mdbook = match installed(&target) {
        Some(mdbook) => mdbook,
        None => install(&target)?,
    };
    let site = build(&mdbook, &target)?;
    if !options.pages {
        add_api(&target, &site)?;
    }
    println!("{}", shown(&site.join("index.html")));
    Ok(())
}

/// Builds the pages if mdBook is installed; says so if not.
pub(crate) fn build_if_installed() -> Result<()> {
    let target = Workspace::load()?.target_directory;
    if let Some(mdbook) = installed(&target) {
        return build(&mdbook, &target).map(drop);
    }
    println!("note: mdbook is not installed; `cargo xtask docs` installs it and builds the site");
    Ok(())
}

fn installed(target: &Path) -> Option<PathBuf> {
    let candidates = [target.join("tools/bin/mdbook"), PathBuf::from("mdbook")];
    candidates.into_iter().find(|program| process::succeeds(process::command(program).arg("--version")))
}

fn install(target: &Path) -> Result<PathBuf> {
    let tools = target.join("tools");
    let mut cargo = process::cargo(["install", "--locked", MDBOOK]);
    process::run(cargo.arg("--root").arg(&tools))?;
    Ok(tools.join("bin/mdbook"))
}

/// Builds the pages without a warning, from a copy. Returns the directory of the site.
fn build(mdbook: &Path, target: &Path) -> Result<PathBuf> {
    let book = target.join("book");
    let site = target.join("site");
    stage(&book)?;
    let mut command = process::command(mdbook);
    let output = command.arg("build").arg(&book).arg("--dest-dir").arg(&site).output();
    let output = output.map_err(|e| Fault::because(process::line_of(&command), e))?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if !output.status.success() || text.contains("WARN") || text.contains("ERROR") {
        return Err(Fault::new(format!("`{}` failed:\n{text}", process::line_of(&command))));
    }
    Ok(site)
}

/// Copies the pages and what they link to, at their paths; the summary is at the root, where mdBook looks for it.
fn stage(book: &Path) -> Result<()> {
    remove(book)?;
    let src = book.join("src");
    let summary = read(&root().join(SUMMARY))?;
    let mut at_root = summary.clone();
    let mut files = BTreeSet::new();
    for link in markdown::links(&summary) {
        let Some(page) = markdown::resolve(SUMMARY, &link.path) else { continue };
        at_root = at_root.replace(&format!("]({})", link.path), &format!("]({page})"));
        for link in markdown::links(&read(&root().join(&page))?) {
            files.extend(markdown::resolve(&page, &link.path).filter(|path| root().join(path).is_file()));
        }
        files.insert(page);
    }
    for file in files {
        copy(&root().join(&file), &src.join(&file))?;
    }
    write(&src.join("SUMMARY.md"), &at_root)?;
    copy(&root().join("docs/book.toml"), &book.join("book.toml"))
}

/// Adds what `cargo doc` generates for the crates.
fn add_api(target: &Path, site: &Path) -> Result<()> {
    let mut cargo = process::cargo(["doc", "--no-deps", "--workspace", "--all-features"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;
    let api = target.join("doc");
    copy_folder(&api, &site.join("api")).map_err(|e| Fault::because(shown(&api), e))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    create_parent(to)?;
    fs::copy(from, to).map(drop).map_err(|e| Fault::because(shown(from), e))
}

fn write(path: &Path, text: &str) -> Result<()> {
    create_parent(path)?;
    fs::write(path, text).map_err(|e| Fault::because(shown(path), e))
}

fn create_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(|e| Fault::because(shown(parent), e))
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Fault::because(shown(directory), e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_pages_have_their_links() {
        let book = tempfile::TempDir::new().unwrap();
        stage(book.path()).unwrap();
        let src = book.path().join("src");
        let summary = fs::read_to_string(src.join("SUMMARY.md")).unwrap();
        assert!(summary.contains("[Introduction](README.md)"), "{summary}");
        assert!(summary.contains("(docs/cookbook/first-run.md)"), "{summary}");
        for file in ["README.md", "docs/cookbook/first-run.md", "crates/harness/examples/streaming.rs"] {
            assert!(src.join(file).is_file(), "{file}");
        }
    }
}
