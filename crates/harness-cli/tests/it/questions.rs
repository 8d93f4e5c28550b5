//! Questions on a real terminal: what a person sees of a call, and which keys decide.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use crate::support::{Answer, Gate, Project, Reply, Server, terminal, within};

/// The program with its input and its messages on a terminal of 24 rows and 80 columns.
struct Person {
    ours: File,
    child: Child,
}

impl Person {
    fn at(mut command: Command, answer_too: bool) -> Self {
        let (ours, theirs) = terminal();
        tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let answer = if answer_too { theirs.try_clone().unwrap().into() } else { Stdio::null() };
        command.stdin(theirs.try_clone().unwrap()).stdout(answer).stderr(theirs).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { ours, child }
    }

    /// What is shown until a text, which included.
    fn reads(&mut self, text: &str) -> String {
        let (mut ours, end) = (self.ours.try_clone().unwrap(), text.to_owned());
        within(&format!("`{text}` on the terminal"), move || {
            let (mut shown, mut byte) = (Vec::new(), [0]);
            while !shown.ends_with(end.as_bytes()) {
                if let Err(fault) = ours.read_exact(&mut byte) {
                    panic!("{fault}: {}", String::from_utf8_lossy(&shown));
                }
                shown.push(byte[0]);
            }
            String::from_utf8(shown).unwrap().replace("\r\n", "\n")
        })
    }

    fn types(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).unwrap();
    }

    /// The exit code, and what was shown until then.
    fn leaves(self) -> (Option<i32>, String) {
        let Self { mut ours, mut child } = self;
        within("the end", move || {
            let mut rest = Vec::new();
            // Reading fails when the program's side is closed.
            let _ = ours.read_to_end(&mut rest);
            (child.wait().unwrap().code(), String::from_utf8_lossy(&rest).replace("\r\n", "\n"))
        })
    }
}

const LATER: &str = "[l]ater: ";

fn project() -> Project {
    Project::new("", "cat >>pay.log; echo >>pay.log").with_pay("    requires_approval: true\n")
}

fn runs(project: &Project) -> usize {
    // Each run appends its arguments and an empty line.
    let ran = |line: &&str| !line.is_empty();
    if project.path().join("pay.log").exists() {
        project.read("pay.log").lines().filter(ran).count()
    } else {
        0
    }
}

/// A run that asks about one call of `pay`.
fn asked(arguments: &Value) -> (Project, Server, Person) {
    let server = Server::start([Reply::Stream(Answer::call("p1", "pay", arguments)), Reply::text("done")]);
    let project = project();
    let command = project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]);
    let person = Person::at(command, false);
    (project, server, person)
}

fn hostile() -> Value {
    json!({
        "to": "alice", "note": "x".repeat(90), "swapped": "a\u{202e}b\u{2066}c\u{200b}d\u{9b}e",
        "z_account": "ATTACKER", "z_amount_real": 99_999_999,
    })
}

#[track_caller]
fn check_whole(shown: &str) {
    let rows: String = shown.split('\n').map(str::trim).collect();
    for part in ["ATTACKER", "99999999", r"a\u{202e}b\u{2066}c\u{200b}d\u{9b}e", &"x".repeat(90)] {
        assert!(rows.contains(part), "{part} is not in {shown}");
    }
    let raw = |c: char| matches!(c, '\u{202e}' | '\u{2066}' | '\u{200b}' | '\u{9b}');
    assert!(!shown.contains(raw), "{shown:?}");
}

#[test]
fn fault_01_a_run_shows_the_whole_call_before_it_may_run() {
    let (project, _server, mut person) = asked(&hostile());
    check_whole(&person.reads(LATER));
    person.types("n\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 0);
}

#[test]
fn fault_01_a_tool_that_is_tried_shows_the_whole_call() {
    let project = project();
    let input = hostile().to_string();
    let command = project.command(&["tools", "registry.yaml", "--call", "pay", "--input", &input]);
    let mut person = Person::at(command, false);
    check_whole(&person.reads(LATER));
    person.types("y\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 1);
}

#[test]
fn fault_01_a_resumed_run_shows_the_whole_call() {
    let call = Answer::call("p1", "pay", &hostile());
    let server = Server::start([Reply::Stream(call), Reply::text("done")]);
    let project = project();
    assert_eq!(project.ask(&server.url, &["--session", "s.jsonl"]).code, Some(4));
    let mut person = Person::at(project.command(&["resume", "s.jsonl", "--base-url", &server.url]), false);
    check_whole(&person.reads(LATER));
    person.types("y\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 1);
}

#[test]
fn fault_01_a_call_longer_than_the_screen_is_paged_through_before_it_may_run() {
    let (project, _server, mut person) =
        asked(&json!({ "note": "x".repeat(3_000), "z_account": "ATTACKER" }));
    let shown = person.reads(LATER);
    assert!(shown.contains("characters in") && shown.contains("are not shown yet"), "{shown}");
    assert!(shown.contains("[v]iew more") && !shown.contains("[y]es"), "{shown}");
    person.types("y\n");
    let mut shown = person.reads(LATER);
    assert!(shown.contains("view the whole call first"), "{shown}");
    while !shown.contains("[y]es") {
        assert!(!shown.contains("ATTACKER") && runs(&project) == 0, "{shown}");
        person.types("v\n");
        shown = person.reads(LATER);
    }
    assert!(shown.contains("ATTACKER"), "{shown}");
    person.types("y\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 1);
}

#[test]
fn fault_02_what_was_typed_before_the_question_approves_nothing() {
    let (gate, arrived) = Gate::closed();
    let bait = "Shall I look at the logs first? [y]es, [n]o:";
    let answer = Answer::text(bait).and_call("p1", "pay", &json!({}));
    let after = bait.split_inclusive(' ').count() + 1;
    let server = Server::start([Reply::Paused { answer, after, gate: gate.clone() }, Reply::text("done")]);
    let project = project();
    let command = project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]);
    let mut person = Person::at(command, true);
    within("the pause", move || arrived.recv().unwrap());
    person.reads("first?");
    person.types("y\n");
    gate.open();
    let shown = person.reads(LATER);
    assert!(shown.contains("? pay {}"), "{shown}");
    assert_eq!(runs(&project), 0);
    person.types("n\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 0);
}

#[test]
fn fault_02_an_answer_that_is_not_offered_asks_again_and_is_no_reason() {
    let (project, server, mut person) = asked(&json!({}));
    for line in ["what does it do?\n", "\n", "yep\n"] {
        person.reads(LATER);
        person.types(line);
    }
    person.reads(LATER);
    person.types("d\n");
    person.reads("why? ");
    person.types("it costs too much\n");
    assert_eq!(person.leaves().0, Some(0));
    assert_eq!(runs(&project), 0);
    let told = server.requests()[1].to_string();
    assert!(told.contains("it costs too much"), "{told}");
    assert!(!told.contains("what does it do?") && !told.contains("yep"), "{told}");
}

#[test]
fn fault_27_the_notice_of_ctrl_c_stands_below_the_answer_which_is_shown_once() {
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("It is **a long** answer. And more of it.");
    let server = Server::start([Reply::Paused { answer, after: 6, gate }]);
    let project = Project::plain();
    let command = project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]);
    let mut person = Person::at(command, true);
    within("the pause", move || arrived.recv().unwrap());
    let mut screen = vt100::Parser::new(24, 80, 0);
    // The last word that arrived, and the row of the cursor after it.
    screen.process(person.reads("answer.").replace('\n', "\r\n").as_bytes());
    kill_process(Pid::from_child(&person.child), Signal::INT).unwrap();
    let (code, rest) = person.leaves();
    screen.process(rest.replace('\n', "\r\n").as_bytes());
    let shown = screen.screen().contents();
    assert_eq!(code, Some(130), "{shown}");
    assert_eq!(shown.matches("a long answer").count(), 1, "{shown}");
    assert_eq!(shown.matches("stopping; press Ctrl-C again").count(), 1, "{shown}");
    assert!(shown.find("a long answer") < shown.find("stopping"), "{shown}");
}
