//! Doing what the README tells its reader to do first.

use std::path::Path;
use std::process::Command;

use crate::fault::{Fault, Result};
use crate::process;
use crate::repo::{Workspace, read, root};
use crate::stopwatch::{Stopwatch, Took};

/// The first command of the README's first shell block.
fn first_command() -> Result<String> {
    let text = read(&root().join("README.md"))?;
    let command = first_shell_line(&text).ok_or_else(|| Fault::new("README.md has no shell block"))?;
    Ok(command)
}

/// Clones the last commit into an empty folder and runs the command there, with an empty target folder; it must
/// succeed and print something. The time is printed.
pub(super) fn try_first_command(workspace: &Workspace) -> Result<()> {
    let line = first_command()?;
    let folder = tempfile::tempdir_in(&workspace.target_directory);
    let folder = folder.map_err(|e| Fault::because("temporary folder", e))?;
    let clone = folder.path().join("clone");
    clone_into(&clone)?;
    println!("$ {line}");
    let mut printed = 0;
    let mut shell = shell(&line);
    shell.current_dir(&clone).env("CARGO_TARGET_DIR", folder.path().join("target"));
    // The promise is that it works without a key.
    process::without_keys(&mut shell);
    let watch = Stopwatch::start();
    process::run_watching(&mut shell, &mut |text| printed += text.len())?;
    println!("from a clone to the answer: {}", Took(watch.elapsed()));
    if printed == 0 { Err(Fault::new(format!("`{line}` printed nothing"))) } else { Ok(()) }
}

fn clone_into(folder: &Path) -> Result<()> {
    let status = process::capture(process::command("git").args(["status", "--porcelain"]))?;
    if !status.is_empty() {
        println!("note: uncommitted changes are not part of the clone");
    }
    let mut git = process::command("git");
    git.args(["clone", "--quiet", "--no-hardlinks"]).arg(root()).arg(folder);
    process::run(&mut git)
}

fn shell(line: &str) -> Command {
    let mut shell = process::command("sh");
    shell.args(["-c", line]);
    shell
}

/// The first line of the first block fenced as `sh`, `shell`, `bash` or `console`; a leading `$`
/// prompt is not part of it, a trailing backslash joins the next line.
fn first_shell_line(markdown: &str) -> Option<String> {
    let mut lines = markdown.lines();
    lines.find(|line| matches!(line.trim(), "```sh" | "```shell" | "```bash" | "```console"))?;
    let block = lines.take_while(|line| line.trim() != "```");
    let mut command = String::new();
    for line in block.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let part = line.trim_start_matches("$ ");
        match part.strip_suffix('\\') {
            Some(part) => command.push_str(part),
            None => return Some(command + part),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, expected: Option<&str>) {
        assert_eq!(first_shell_line(markdown).as_deref(), expected);
    }

    #[test]
    fn the_first_command_is_found() {
        check("text\n```rust\nfn main() {}\n```\n```sh\n# first\n$ cargo run\nls\n```\n", Some("cargo run"));
        check("```console\ncargo run \\\n  -- x\n```", Some("cargo run -- x"));
    }

    #[test]
    fn no_shell_block_means_no_command() {
        check("```rust\nx\n```", None);
        check("```sh\n```\ncargo run", None);
    }

    #[test]
    fn the_readme_has_a_first_command() {
        assert!(first_command().unwrap().starts_with("cargo run "));
    }
}
