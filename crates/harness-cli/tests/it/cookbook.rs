//! The cookbook's pages do what they say.
//!
//! In a page, a block whose first line is `yaml FILE` or `markdown FILE` is a file, and in a `console` block the lines that
//! begin with `$` are commands and the others their output, both streams together.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::example::copy;
use crate::support::{Running, shell};

/// A fenced block: what stands behind its opening fence, and its text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((info, text.join("\n") + "\n"));
        }
    }
    blocks
}

/// The block with the output that the commands really have, in this folder.
fn played(folder: &Path, block: &str) -> String {
    let mut played = String::new();
    for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let output = Running::start(shell(folder, command)).end();
        write!(played, "$ {command}\n{}", output.stdout).unwrap();
    }
    played
}

/// A page whose commands run in a copy of an example's folder.
#[track_caller]
fn check_in(example: &str, page: &str) {
    let folder = tempfile::TempDir::new().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples").join(example);
    copy(&example, folder.path());
    check_here(folder.path(), page);
}

#[track_caller]
fn check(page: &str) {
    check_here(tempfile::TempDir::new().unwrap().path(), page);
}

#[track_caller]
fn check_here(folder: &Path, page: &str) {
    play(folder, &read(page));
}

fn read(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cookbook").join(page);
    fs::read_to_string(path).unwrap()
}

#[track_caller]
fn play(folder: &Path, page: &str) {
    let mut commands = 0;
    for (info, text) in blocks(page) {
        if let Some(("yaml" | "markdown", file)) = info.split_once(' ') {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &text).unwrap();
        } else if info == "console" {
            commands += 1;
            let played = played(folder, &text);
            assert!(played == text, "the page says:\n{text}\nthe program says:\n{played}");
        }
    }
    assert!(commands > 0, "the page has commands");
}

#[test]
fn backends() {
    check("backends.md");
}

#[test]
fn chat() {
    check_in("customer-support", "chat.md");
}

#[test]
fn descriptors() {
    check("descriptors.md");
}

#[test]
fn skills() {
    check("skills.md");
}

/// Ends the server that a page leaves behind.
struct Ends<'a>(&'a Path);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        Running::start(shell(self.0, "kill $(cat server.pid)")).end();
    }
}

#[test]
fn serve() {
    let folder = tempfile::TempDir::new().unwrap();
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/customer-support"),
        folder.path(),
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _ends = Ends(folder.path());
    play(folder.path(), &read("serve.md").replace("8787", &free.to_string()));
}

#[test]
fn observability() {
    check_in("customer-support", "observability.md");
}

#[test]
fn finish_the_work() {
    check_in("folder-report", "finish-the-work.md");
}
