//! The page of the server in Chromium: a person signs in, chats, decides on calls, steers and aborts, and the page finds
//! back after a restart. Nothing is refused by the page's own policy, nothing is too wide for a phone, and axe-core
//! finds no obstacle.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::openai::TOKEN;
use crate::support::{Answer, Gate, Project, Reply, Running, Server};
use crate::trace_page::chromium;
use crate::{LONG, installed, other};

const SCRIPT: &str = include_str!("server_page.mjs");

/// The page of the documentation that uses the client.
fn example() -> &'static str {
    let page = include_str!("../../../../docs/cookbook/serve-typescript.md");
    let (_, block) = page.split_once("```html\n").unwrap();
    block.split_once("```").unwrap().0
}

#[test]
fn a_person_works_with_the_page_of_a_server() {
    let folder = installed("server-page");
    let project = project();
    let model = Server::by(script());
    let (server, url) = serve(&project, &model.url, "127.0.0.1:0");
    std::fs::write(folder.join("look.mjs"), SCRIPT).unwrap();
    std::fs::write(folder.join("example.html"), example()).unwrap();
    let mut node = other("node", &folder);
    node.args(["look.mjs", &chromium().to_string_lossy(), &url, &model.url, TOKEN]);
    let (node, line) = Running::start(node).line("the script wants the server to stop");
    assert_eq!(line.trim(), "stop", "{}", node.end_in(LONG).stderr);
    stop(server);
    let (node, line) = node.line("the script wants the server back");
    assert_eq!(line.trim(), "start", "{}", node.end_in(LONG).stderr);
    let address = url.strip_prefix("http://").unwrap();
    let (server, _) = serve(&project, &model.url, address);
    let output = node.end_in(LONG);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "ok"), "{}", output.stderr);
    stop(server);
}

/// A sub-agent that can pay.
const SCOUT: &str = "  team:
    builtin: subagents
    agents: { scout: { description: Pays., instructions: You pay., tools: [pay] } }
";

/// A project whose tool `pay` requires approval, also of a sub-agent.
pub(crate) fn project() -> Project {
    let project = Project::new("echo '{\"seen\":1}'", "echo paid").with_pay("    requires_approval: true\n");
    project.write("registry.yaml", &(project.read("registry.yaml") + SCOUT));
    let descriptor = project.read("harness.yaml");
    let descriptor = descriptor
        .replace("  pay: { target: pay }\n", "  pay: { target: pay }\n  give: { target: team.task }\n");
    project.write("harness.yaml", &descriptor.replace("[look, pay]", "[look, pay, give]"));
    project
}

/// A server with a token at an address, and its URL.
pub(crate) fn serve(project: &Project, model: &str, address: &str) -> (Running, String) {
    let token = project.path().join("token");
    private(&token);
    let token = token.to_string_lossy();
    let arguments =
        ["serve", "harness.yaml", "--sessions=threads", "--token-file", &token, "--base-url", model];
    let command = project.command(&[&arguments[..], &["--listen", address]].concat());
    let (running, line) = Running::start(command).line("the address of the server");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("the server says {line:?}"));
    let url = url.to_owned();
    (running, url)
}

fn private(token: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(token, TOKEN).unwrap();
    std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn stop(server: Running) {
    server.signal(Signal::TERM);
    assert_eq!(server.end_in(LONG).code, Some(0));
}

/// A model that does what the last message of the user names. `hello` and `look` stop in the middle until a request
/// `{"open": true}`, `hang` forever.
pub(crate) fn script() -> impl FnMut(&Value) -> Reply + Send + 'static {
    let mut last_gate: Option<Gate> = None;
    move |request| {
        if request["open"] == true {
            last_gate.take().iter().for_each(Gate::open);
            return Reply::status(200, "{}");
        }
        let messages = request["messages"].as_array().unwrap();
        let said = |role: &str| {
            let last = messages.iter().rfind(|message| message["role"] == role).unwrap();
            text_of(&last["content"])
        };
        let user = said("user");
        let call = format!("c{}", messages.len());
        let mut pause = |answer, after| {
            let (gate, _) = Gate::closed();
            last_gate = Some(gate.clone());
            Reply::Paused { answer, after, gate }
        };
        match (messages.last().unwrap()["role"].as_str(), user.as_str()) {
            (Some("tool"), "ask the scout") => Reply::text("The scout has paid."),
            (_, "ask the scout") => {
                let task = json!({ "description": "pay and allow", "subagent_type": "scout" });
                Reply::Stream(Answer::call(&call, "task", &task))
            }
            (Some("tool"), "pay and deny" | "pay and allow") => {
                Reply::text(&format!("Result: {}", said("tool")))
            }
            (_, "pay and deny" | "pay and allow") => Reply::Stream(Answer::call(&call, "pay", &payment())),
            (_, "hello") => pause(Answer::text("One two three four **five.**"), 3),
            (_, "look") => pause(Answer::text("Looking now.").and_call(&call, "look", &json!({})), 2),
            (_, "hang") => Reply::silence(),
            (_, said) => Reply::text(&format!("You said: {said}")),
        }
    }
}

/// Arguments that a page can get wrong: a number that a double cannot hold, HTML, and a character that reorders text.
fn payment() -> Value {
    json!({ "amount": 12_345_678_901_234_567_890_u64, "note": format!("<b>bold</b>\u{202e} {}", "long ".repeat(40)) })
}

fn text_of(content: &Value) -> String {
    let part = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    content.as_str().map_or_else(|| content.as_array().unwrap().iter().map(part).collect(), str::to_owned)
}
