//! Trace pages in Chromium: nothing is fetched or refused by the page's own policy, keys, links and search work,
//! nothing is too wide for a phone, and axe-core finds no obstacle.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Answer, Gate, Project, Reply, Running, Server, copy, harness, root};
use crate::{LONG, installed, other, ran};

const SCRIPT: &str = include_str!("trace_page.mjs");
const LIVE: &str = include_str!("live_trace.mjs");

/// What was found of a page in one view.
#[derive(Debug, Deserialize)]
struct Found {
    path: String,
    view: String,
    problems: Vec<String>,
    wide: bool,
    faults: Vec<String>,
    closed: bool,
    visited: String,
    opened: bool,
    help: bool,
    link: bool,
    search: bool,
}

#[test]
fn trace_pages_work_in_a_browser() {
    let folder = installed("trace-page");
    let pages = pages(&folder.join("pages"));
    fs::write(folder.join("look.mjs"), SCRIPT).unwrap();
    let mut node = other("node", &folder);
    node.args(["look.mjs", &chromium().to_string_lossy()]).args(&pages);
    let found: Vec<Found> = ran(node).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), pages.len() * 3, "each page in three views");
    for page in &found {
        let place = format!("{} {}", page.path, page.view);
        assert!(page.problems.is_empty() && page.faults.is_empty(), "{page:#?}");
        assert!(!page.wide, "{place} is wider than its window");
        assert!(page.closed && page.opened && page.help, "{page:#?}");
        assert!(page.visited.starts_with('#') && page.link, "{page:#?}");
        assert!(page.search, "{page:#?}");
    }
    println!("{} pages in 3 views", pages.len());
}

/// What was found of the trace page of a server, of which parts were opened during the run.
#[derive(Debug, Deserialize)]
struct Followed {
    problems: Vec<String>,
    faults: Vec<String>,
    widths: Vec<f64>,
    opened: bool,
    search: String,
    hits: String,
}

#[test]
fn trace_page_of_a_server_follows_a_run() {
    let folder = installed("trace-page");
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("Here it is.");
    let model = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::Paused { answer, after: 1, gate: gate.clone() },
    ]);
    let project = Project::plain();
    let serve = ["serve", "harness.yaml", "--listen", "127.0.0.1:0", "--base-url", &model.url];
    let (server, line) = Running::start(project.command(&serve)).line("the address of the server");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("the server says {line:?}"));
    fs::write(folder.join("live.mjs"), LIVE).unwrap();
    let mut node = other("node", &folder);
    node.args(["live.mjs", &chromium().to_string_lossy(), url]);
    let (browser, line) = Running::start(node).line("the run on the page");
    assert_eq!(line, "running\n", "{:?}", browser.end_in(LONG));
    arrived.recv().unwrap();
    gate.open();
    let output = browser.end_in(LONG);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let page: Followed = serde_json::from_str(&output.stdout).unwrap();
    assert!(page.problems.is_empty() && page.faults.is_empty(), "{page:#?}");
    assert!(page.widths.len() > 2 && page.widths.iter().all(|width| *width > 0.0), "{page:#?}");
    assert!(page.opened && page.search == "look" && page.hits.ends_with("steps"), "{page:#?}");
    server.signal(Signal::TERM);
    assert_eq!(server.end_in(LONG).code, Some(0));
}

/// Pages of one run, of two runs side by side, of a folder, and of a run with a sub-agent.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    let examples = root().join("fixtures").join("examples");
    for (example, arguments) in [
        ("customer-support", ["Where is my order 1042?", "--replay=recordings/where-is-my-order.jsonl"]),
        ("folder-report", ["Write the report.", "--replay=recordings/report.jsonl"]),
    ] {
        let folder = folder.join(example);
        copy(&examples.join(example), &folder);
        let record = format!("--run-record=../{example}.json");
        ran(harness(&folder, &["run", "harness.yaml", arguments[0], arguments[1], &record]));
    }
    fs::create_dir(folder.join("runs")).unwrap();
    for record in ["customer-support.json", "folder-report.json"] {
        fs::copy(folder.join(record), folder.join("runs").join(record)).unwrap();
    }
    for arguments in [
        ["inspect", "folder-report.json", "--html", "one.html"].as_slice(),
        &["inspect", "customer-support.json", "folder-report.json", "--html", "two.html"],
        &["inspect", "runs", "--html", "all.html"],
    ] {
        ran(harness(folder, arguments));
    }
    team(folder);
    ["one.html", "two.html", "all.html", "team.html"].map(|page| folder.join(page)).to_vec()
}

/// Makes the page of a run with a sub-agent.
fn team(folder: &Path) {
    const REGISTRY: &str = "version: 1
tools:
  look: { description: Looks at something., command: sh, args: [look.sh], class: pure }
  team:
    builtin: subagents
    agents: { scout: { description: looks at things, instructions: You look., tools: [look] } }
";
    let project = Project::plain();
    project.write("registry.yaml", REGISTRY);
    project.write(
        "harness.yaml",
        "runtime: { entry_agent: desk }\ntools: { look: { target: look }, give: { target: team.task } }\n\
         agents: { desk: { model: scripted, instructions: You are the desk., tools: [look, give] } }\n",
    );
    let task = json!({ "description": "Look at it.", "subagent_type": "scout" });
    let model = Server::start([
        Reply::Stream(Answer::call("c1", "task", &task)),
        Reply::Stream(Answer::call("s1", "look", &json!({ "n": 1 }))),
        Reply::text("I saw it."),
        Reply::text("It was seen."),
    ]);
    let output = project.ask(&model.url, &["--run-record", "run.json"]);
    assert_eq!(output.stdout, "It was seen.\n", "{}", output.stderr);
    let page = folder.join("team.html");
    ran(project.command(&["inspect", "run.json", "--html", &page.to_string_lossy()]));
}

/// The browser, which `cargo xtask e2e` has looked for.
#[expect(clippy::disallowed_methods, reason = "the folders of programs are in the environment alone")]
pub(crate) fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = || std::env::split_paths(&path);
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        names.iter().find_map(|name| places().map(|place| place.join(name)).find(|file| file.is_file()));
    found.unwrap_or_else(|| panic!("none of {names:?} is installed"))
}
