//! The pictures of the documentation: `cargo xtask screenshots` writes them to `docs/images`.
//!
//! Chat, trace page and server page are the real ones: the program at a terminal, its trace page and its server's page
//! in Chromium. The model of the chat is scripted.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Answer, Person, Project, Reply, Running, Server, copy, harness, root};
use crate::trace_page::chromium;
use crate::{EXAMPLE, LONG, guarded_example, installed, other, ran};

const SCRIPT: &str = include_str!("screenshots.mjs");
const ROWS: u16 = 20;
const COLUMNS: u16 = 108;

#[test]
fn pictures_show_the_chat_a_trace_and_the_page_of_the_server() {
    let folder = installed("screenshots");
    let images = root().join("docs").join("images");
    fs::create_dir_all(&images).unwrap();
    fs::write(folder.join("chat.html"), chat()).unwrap();
    trace(&folder);
    let desk = folder.join("desk");
    let _ = fs::remove_dir_all(&desk);
    guarded_example(&desk);
    let server = Running::start(harness(&desk, &["serve", "harness.yaml", "--listen", "127.0.0.1:0"]));
    let (server, line) = server.line("the address of the server");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("the server says {line:?}"));
    fs::write(folder.join("screenshots.mjs"), SCRIPT).unwrap();
    let mut node = other("node", &folder);
    node.args(["screenshots.mjs", &chromium().to_string_lossy(), url, &images.to_string_lossy()]);
    print!("{}", ran(node));
    server.signal(Signal::TERM);
    assert_eq!(server.end_in(LONG).code, Some(0));
    for image in ["chat.png", "trace.png", "serve.png"] {
        assert!(fs::metadata(images.join(image)).unwrap().len() > 10_000, "{image} shows something");
    }
}

/// Makes the trace page of a run of the example.
fn trace(folder: &Path) {
    let example = folder.join("example");
    let _ = fs::remove_dir_all(&example);
    copy(root().join(EXAMPLE).parent().unwrap(), &example);
    let replay = "--replay=recordings/where-is-my-order.jsonl";
    ran(harness(&example, &["run", "Where is my order 1042?", replay, "--run-record=run.json"]));
    ran(harness(&example, &["inspect", "run.json", "--html", "../trace.html"]));
}

/// The screen of a chat that asks before it edits a file, as a page.
fn chat() -> String {
    let edit = json!({
        "path": "src/price.rs",
        "old_string": "    cents + cents * 19 / 100",
        "new_string": "    cents + (cents * 19 + 50) / 100",
    });
    let words = "The tax is cut off, not rounded: 19 % of 2,499 cents are 474.81, and `gross` adds 474. I add half a cent \
                 before the division.";
    let server = Server::start([Reply::Stream(Answer::text(words).and_call("e1", "file_edit", &edit))]);
    let source =
        "/// Price with 19 % tax.\npub fn gross(cents: u64) -> u64 {\n    cents + cents * 19 / 100\n}\n";
    let project = Project::of(&[("shop/src/price.rs", source), ("shop/.git/HEAD", "ref: refs/heads/main\n")]);
    let mut command =
        project.command(&["chat", "--base-url", &server.url, "--model", "gpt-5-mini", "--window", "400000"]);
    command.env("HOME", project.path()).current_dir(project.path().join("shop"));
    let person = Person::sit_down(command, ROWS, COLUMNS);
    person
        .sees("/help for commands")
        .says("Why is the total of order 1042 one cent too low?")
        .sees("y once")
        .sees("awaiting approval");
    let page = person.screen(page);
    person.types("n");
    page
}

/// A terminal's screen as a page.
fn page(screen: &vt100::Screen) -> String {
    let mut page = "<!doctype html><meta charset=utf-8><style>body{margin:0;background:#12161c}pre{margin:0;padding:18px 22px;\
                    display:inline-block;font:14px/1.4 'DejaVu Sans Mono',monospace;color:#d7dde5}</style><pre>"
        .to_owned();
    for row in 0..ROWS {
        for cell in (0..COLUMNS).filter_map(|column| screen.cell(row, column)) {
            let (dim, bold) = (
                if cell.dim() { ";opacity:.6" } else { "" },
                if cell.bold() { ";font-weight:700" } else { "" },
            );
            let inverse = if cell.inverse() { ";background:#d7dde5;color:#12161c" } else { "" };
            let text = cell.contents().replace('&', "&amp;").replace('<', "&lt;");
            let text = if text.is_empty() { " " } else { &text };
            write!(page, "<span style='color:{}{dim}{bold}{inverse}'>{text}</span>", color(cell.fgcolor()))
                .unwrap();
        }
        page.push('\n');
    }
    page + "</pre>"
}

fn color(color: vt100::Color) -> String {
    const PALETTE: [&str; 8] =
        ["#5c6773", "#f0717a", "#86c166", "#e6b450", "#6aa8f0", "#c792ea", "#5ccfe6", "#d7dde5"];
    match color {
        vt100::Color::Default => "#d7dde5".to_owned(),
        vt100::Color::Idx(index) => PALETTE[usize::from(index % 8)].to_owned(),
        vt100::Color::Rgb(red, green, blue) => format!("rgb({red},{green},{blue})"),
    }
}
