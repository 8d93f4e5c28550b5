//! The cookbook's pages do what they say.
//!
//! A page is played in one folder, from its first block to its last. A block whose opening fence is `yaml FILE`, `markdown FILE`
//! or `sh FILE` is a file. The commands of an `sh` block must succeed; in a `console` block the lines that begin with `$` are
//! commands and the others their output, both streams together. What needs a key or another program is a `text` block.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Running, copy, shell};

/// A fenced block: what stands behind its opening fence, and its text.
pub(crate) fn blocks(page: &str) -> Vec<(&str, String)> {
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

/// Where a page is played.
const EMPTY: &str = "";
const SUPPORT: &str = "customer-support";
const REPORT: &str = "folder-report";

/// Every page, and the example in whose copy it is played.
const PAGES: [(&str, &str); 45] = [
    ("approvals.md", EMPTY),
    ("assistant.md", EMPTY),
    ("backends.md", EMPTY),
    ("chat.md", SUPPORT),
    ("custom-models.md", EMPTY),
    ("deploy.md", EMPTY),
    ("descriptors.md", EMPTY),
    ("editors.md", SUPPORT),
    ("finish-the-work.md", REPORT),
    ("first-run.md", EMPTY),
    ("flows.md", EMPTY),
    ("hosted-models.md", EMPTY),
    ("local-agents.md", EMPTY),
    ("long-conversations.md", SUPPORT),
    ("mcp.md", EMPTY),
    ("memory-code.md", EMPTY),
    ("memory-layers.md", EMPTY),
    ("memory.md", SUPPORT),
    ("model-endpoints.md", EMPTY),
    ("models.md", EMPTY),
    ("observability.md", SUPPORT),
    ("operations.md", SUPPORT),
    ("outcomes.md", EMPTY),
    ("records.md", SUPPORT),
    ("regressions.md", SUPPORT),
    ("resume.md", SUPPORT),
    ("serve-ag-ui.md", SUPPORT),
    ("serve-approvals.md", SUPPORT),
    ("serve-openai.md", SUPPORT),
    ("serve-threads.md", SUPPORT),
    ("serve-typescript.md", SUPPORT),
    ("serve.md", SUPPORT),
    ("sessions.md", SUPPORT),
    ("several-machines.md", EMPTY),
    ("shared-sessions.md", EMPTY),
    ("skills.md", EMPTY),
    ("steering.md", EMPTY),
    ("streaming.md", EMPTY),
    ("sub-agents.md", EMPTY),
    ("testing.md", EMPTY),
    ("threads.md", EMPTY),
    ("tools.md", EMPTY),
    ("trace.md", SUPPORT),
    ("typed-answers.md", EMPTY),
    ("workers.md", EMPTY),
];

pub(crate) fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cookbook")
}

/// Plays a page in a folder of its own; a server in it listens on a port that is free.
#[track_caller]
fn check(page: &str) {
    let (_, example) = PAGES.iter().find(|(name, _)| *name == page).unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    if !example.is_empty() {
        copy(&pages().join("../../fixtures/examples").join(example), folder.path());
    }
    let _ends = Ends(folder.path());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    play(folder.path(), &fs::read_to_string(pages().join(page)).unwrap().replace("8787", &free.to_string()));
}

#[track_caller]
fn play(folder: &Path, page: &str) {
    for (info, text) in blocks(page) {
        match info.split_once(' ') {
            Some(("yaml" | "markdown" | "sh", file)) => {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, &text).unwrap();
            }
            _ if info == "console" => {
                let played = played(folder, &text);
                assert!(played == text, "the page says:\n{text}\nthe program says:\n{played}");
            }
            _ if info == "sh" => {
                let output = Running::start(shell(folder, &format!("set -e\n{text}"))).end();
                assert_eq!(output.code, Some(0), "{text}\n{}", output.stdout);
            }
            _ => {}
        }
    }
}

/// Ends the server that a page leaves behind.
struct Ends<'a>(&'a Path);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        Running::start(shell(self.0, "test ! -e server.pid || kill $(cat server.pid)")).end();
    }
}

#[test]
fn every_page_is_played() {
    let files = fs::read_dir(pages()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort_unstable();
    assert_eq!(files, PAGES.map(|(page, _)| page));
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {$(
        #[test]
        fn $test() {
            check($page);
        }
    )*};
}

pages! {
    assistant: "assistant.md",
    backends: "backends.md",
    chat: "chat.md",
    descriptors: "descriptors.md",
    editors: "editors.md",
    finish_the_work: "finish-the-work.md",
    first_run: "first-run.md",
    long_conversations: "long-conversations.md",
    memory: "memory.md",
    memory_layers: "memory-layers.md",
    models: "models.md",
    observability: "observability.md",
    operations: "operations.md",
    records: "records.md",
    regressions: "regressions.md",
    resume: "resume.md",
    serve: "serve.md",
    serve_ag_ui: "serve-ag-ui.md",
    serve_approvals: "serve-approvals.md",
    serve_openai: "serve-openai.md",
    serve_threads: "serve-threads.md",
    serve_typescript: "serve-typescript.md",
    sessions: "sessions.md",
    skills: "skills.md",
    tools: "tools.md",
    trace: "trace.md",
}

#[test]
fn pages_without_a_test_have_no_commands() {
    for page in [
        "approvals.md",
        "custom-models.md",
        "deploy.md",
        "flows.md",
        "hosted-models.md",
        "local-agents.md",
        "mcp.md",
        "memory-code.md",
        "outcomes.md",
        "several-machines.md",
        "shared-sessions.md",
        "steering.md",
        "streaming.md",
        "sub-agents.md",
        "testing.md",
        "threads.md",
        "typed-answers.md",
        "workers.md",
    ] {
        check(page);
        let text = fs::read_to_string(pages().join(page)).unwrap();
        assert!(blocks(&text).iter().all(|(info, _)| *info != "console" && *info != "sh"), "{page}");
    }
}
