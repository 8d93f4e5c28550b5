//! `harness chat`, over a pipe and on a terminal.

use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use crate::support::{Answer, Output, Person, Project, Reply, Running, Server, harness, root};

/// A chat in a project whose home is the project's folder, with these lines as standard input.
fn chat(project: &Project, url: &str, more: &[&str], input: &str) -> Output {
    let mut command = project.command(&[&["chat", "harness.yaml", "--base-url", url], more].concat());
    command.env("HOME", project.path());
    Running::start_with_input(command, input.as_bytes()).end()
}

/// What a request says, one line a message.
fn said(request: &serde_json::Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let text = |message: &serde_json::Value| message["content"].as_str().unwrap_or("…").to_owned();
    messages.filter(|message| message["role"] != "system").map(text).collect()
}

#[test]
fn each_line_of_a_pipe_is_a_message() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = Project::plain();
    let output = chat(&project, &server.url, &[], "first\n\nsecond\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "One.\nTwo.\n"), "{}", output.stderr);
    let requests = server.requests();
    assert_eq!(said(&requests[1]), ["first", "One.", "second"]);
}

#[test]
fn all_of_a_pipe_can_be_one_message() {
    let server = Server::start([Reply::text("One.")]);
    let project = Project::plain();
    let output = chat(&project, &server.url, &["--whole"], "first\n/second\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "One.\n"), "{}", output.stderr);
    assert_eq!(said(&server.requests()[0]), ["first\n/second"]);
}

#[test]
fn a_conversation_goes_on_in_the_next_chat() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = Project::plain();
    chat(&project, &server.url, &[], "first\n");
    let output = chat(&project, &server.url, &["--continue"], "second\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Two.\n"), "{}", output.stderr);
    assert_eq!(said(&server.requests()[1]), ["first", "One.", "second"]);
}

#[test]
fn the_exit_code_is_that_of_the_last_answer() {
    let pay = Answer::call("p1", "pay", &json!({}));
    let server = Server::start([Reply::text("One."), Reply::Stream(pay)]);
    let project = Project::plain().with_pay("    requires_approval: true\n");
    let output = chat(&project, &server.url, &[], "first\nsecond\n");
    assert_eq!(output.code, Some(4), "{}", output.stderr);
}

/// What is refused before anything is said.
#[track_caller]
fn check_refused(arguments: &[&str], expected: &str) {
    let project = Project::plain();
    let mut command = project.command(&[&["chat"], arguments].concat());
    command.env("HOME", project.path());
    let output = Running::start_with_input(command, b"hello\n").end();
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn a_chat_that_nobody_can_answer_is_refused() {
    check_refused(&["--model", "scripted"], "no API key for model `scripted`");
    check_refused(&["harness.yaml", "--model", "scripted"], "no API key for model `scripted`");
    let local = ["harness.yaml", "--base-url", "http://127.0.0.1:9/v1"];
    check_refused(&[&local[..], &["--continue"]].concat(), "no previous session");
    check_refused(&[&local[..], &["--resume"]].concat(), "`--resume` requires a terminal");
}

#[test]
fn another_descriptors_conversation_is_gone_on_with_only_when_that_is_said() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = Project::plain();
    chat(&project, &server.url, &["--session", "s.jsonl"], "first\n");
    project.write("harness.yaml", &project.read("harness.yaml").replace("the desk", "the front desk"));
    let output = chat(&project, &server.url, &["--session", "s.jsonl"], "second\n");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("--allow-changed"), "{}", output.stderr);
    let output = chat(&project, &server.url, &["--session", "s.jsonl", "--allow-changed"], "second\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Two.\n"), "{}", output.stderr);
}

#[test]
fn the_example_is_answered_by_the_demo_model_and_the_chat_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = harness(&root(), &["chat", "fixtures/examples/customer-support/harness.yaml"]);
    command.env("HOME", folder.path());
    let input =
        "Where is my order 1042?\nPlease refund order 1041.\n/new\nWhere is my order 1042?\nWhat else?\n";
    let output = Running::start_with_input(command, input.as_bytes()).end();
    assert!(
        output.stderr.starts_with("no API key set: using the rule-based demo model"),
        "{}",
        output.stderr
    );
    assert!(
        output.stdout.contains("NP-77342") && output.stdout.contains("refunded already"),
        "{}",
        output.stdout
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

fn at_terminal(project: &Project, url: &str) -> Person {
    at_tall_terminal(project, url, 24)
}

/// A person sees only what is on the screen: what scrolls off it has gone, at a moment that differs from run to run.
fn at_tall_terminal(project: &Project, url: &str, rows: u16) -> Person {
    let mut command = project.command(&["chat", "harness.yaml", "--base-url", url]);
    command.env("HOME", project.path());
    Person::sit_down(command, rows, 80)
}

#[test]
fn a_person_talks_and_leaves() {
    let server = Server::start([Reply::text("**All** is well.")]);
    let project = Project::plain();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("hello\r").sees("is well.");
    person.types("/quit\r");
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("› hello"), "{shown}");
    assert!(shown.contains("continue with: harness chat harness.yaml --continue"), "{shown}");
}

#[test]
fn the_terminal_is_put_back_whatever_ends_the_chat() {
    let server = Server::start([]);
    let project = Project::plain();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands");
    let terminal = person.terminal().try_clone().unwrap();
    let raw = tcgetattr(&terminal).unwrap().local_modes;
    person.sends(Signal::TERM);
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(143), "{shown}");
    let cooked = tcgetattr(&terminal).unwrap().local_modes;
    assert!(!raw.contains(LocalModes::ICANON) && cooked.contains(LocalModes::ICANON | LocalModes::ECHO));
}

#[test]
fn a_person_allows_a_tool_for_good() {
    let calls = |id: &str| Reply::Stream(Answer::call(id, "pay", &json!({})));
    let server = Server::start([calls("p1"), calls("p2"), Reply::text("Paid twice.")]);
    let project = Project::new("", "echo ran >>pay.log").with_pay("    requires_approval: true\n");
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("pay\r");
    person.sees("a always").types("a").sees("2 every call of pay").types("2");
    person.sees("Grant every call?").sees("y yes").types("y").sees("Paid twice.");
    person.types("\u{4}");
    let (code, shown) = person.leaves();
    assert_eq!((code, project.read("pay.log").lines().count()), (Some(0), 2), "{shown}");
}

#[test]
fn fault_05_a_grant_of_one_payment_does_not_approve_another_and_can_be_revoked() {
    let pays = |id: &str, cents: u64| Reply::Stream(Answer::call(id, "pay", &json!({ "cents": cents })));
    let replies = [
        pays("p1", 1),
        pays("p2", 1),
        pays("p3", 1_000_000),
        Reply::text("First done."),
        pays("p4", 1),
        Reply::text("Second done."),
    ];
    let server = Server::start(replies);
    let project = Project::new("", "cat >>pay.log; echo >>pay.log").with_pay("    requires_approval: true\n");
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("pay\r");
    person.sees("a always").types("a").sees("1 pay with exactly these").types("1");
    person.sees("y yes").types("y").sees("1000000").sees("y once").types("n").sees("First done.");
    person.types("/grants\r").sees("/revoke N removes a grant");
    person.types("/revoke 1\r").sees("revoked: pay").types("/grants\r").sees("no grants");
    person.types("again\r").sees("y once").types("n").sees("Second done.");
    person.types("\u{4}");
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(project.read("pay.log").lines().filter(|line| !line.is_empty()).count(), 2, "{shown}");
    assert!(!project.read("pay.log").contains("1000000"), "{shown}");
}

#[test]
fn a_person_finds_templates_and_skills_and_uses_them() {
    let server = Server::start([Reply::text("It is fixed."), Reply::text("It is out.")]);
    let project = Project::plain();
    project.write(".harness/templates/fix.md", "---\ndescription: Fixes an issue\n---\nFix issue $1.\n");
    project.write(".harness/skills/release/SKILL.md", "---\ndescription: Cuts a release\n---\nTest first.\n");
    let person = at_tall_terminal(&project, &server.url, 80);
    person.sees("templates: /fix").sees("skills: release");
    person.sees("/help for commands").types("/help\r").sees("Fixes an issue");
    person.types("/skills\r").sees("Cuts a release (.harness/skills");
    person.types("/fi\t7\r").sees("It is fixed.");
    person.types("/skill:release\r").sees("It is out.").types("\u{4}");
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("› Fix issue 7."), "{shown}");
    assert!(server.requests()[1]["messages"].to_string().contains("Test first."), "{shown}");
}
