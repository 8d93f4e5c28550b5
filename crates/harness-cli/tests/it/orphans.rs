//! Nothing that a run started outlives it, whatever ended the program.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufReader, Read as _};

use rustix::process::Signal;
use serde_json::json;

use crate::signal::started;
use crate::support::{
    Answer, Gate, Output, Project, Reply, Running, Server, at_own_terminal, through, within,
};

/// Keeps the pipe `alive` open for as long as it lives, and says so.
const SLEEPER: &str = "sh -c 'exec 3>alive; echo started >&3; exec sleep 77'";

/// The same, deaf to SIGTERM and SIGHUP.
const DEAF: &str = "sh -c 'trap \"\" TERM HUP; exec 3>alive; echo started >&3; exec sleep 77'";

/// A line that starts a command which leaves the group of the tool.
fn escapes(command: &str) -> [String; 3] {
    [
        format!("setsid {command} </dev/null >/dev/null 2>&1 &"),
        format!(
            "bash -c 'set -m; nohup {} </dev/null >/dev/null 2>&1 & disown'",
            command.replace('\'', r"'\''")
        ),
        format!("( ( setsid {command} </dev/null >/dev/null 2>&1 & ) & )"),
    ]
}

fn pay() -> Reply {
    Reply::Stream(Answer::call("pay-1", "pay", &json!({})))
}

fn project(script: &str) -> Project {
    let project = Project::new("", script);
    project.pipe("alive");
    project.pipe("release");
    project
}

fn run<'a>(server: &'a Server, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url], more].concat()
}

#[track_caller]
fn gone(mut alive: BufReader<File>) {
    within("the end of what was started", move || {
        let mut rest = String::new();
        alive.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    });
}

#[test]
fn fault_08_what_left_the_group_does_not_outlive_its_call() {
    for line in escapes(SLEEPER) {
        let (gate, arrived) = Gate::closed();
        let server = Server::start([pay(), Reply::Paused { answer: Answer::text("Paid."), after: 0, gate }]);
        let project = project(&format!("{line}\ncat release"));
        let running = Running::start(project.command(&run(&server, &[])));
        let alive = started(&project);
        // Lets the tool end; the program goes on, with a request that is not answered.
        let release = project.path().join("release");
        within("the tool", move || File::options().write(true).open(release).map(drop).unwrap());
        within("the next request", move || arrived.recv().unwrap());
        gone(alive);
        running.kill();
    }
}

#[test]
fn fault_08_nothing_outlives_a_program_that_is_killed() {
    for line in escapes(SLEEPER).into_iter().chain(escapes(DEAF)) {
        let server = Server::start([pay()]);
        let project = project(&format!("{line}\ncat release"));
        let running = Running::start(project.command(&run(&server, &[])));
        let alive = started(&project);
        running.kill();
        gone(alive);
    }
}

/// A signal ends a run in good order: its code, its tools, its session.
#[track_caller]
fn check_signal(signal: Signal, code: i32) {
    for line in escapes(DEAF) {
        let server = Server::start([pay()]);
        let project = project(&format!("{line}\ncat release"));
        let running =
            Running::start(through(&["env", "--default-signal"], &project.command(&run(&server, &[]))));
        let alive = started(&project);
        running.signal(signal);
        check_end(&project, &running.end(), code);
        gone(alive);
    }
}

#[track_caller]
fn check_end(project: &Project, output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    let session = project.session("s.jsonl");
    let results = session.iter().filter(|line| line["message"]["role"] == "toolResult");
    assert_eq!(results.count(), 1, "the call is answered");
}

#[test]
fn fault_07_sighup_ends_a_run_in_good_order() {
    check_signal(Signal::HUP, 129);
}

#[test]
fn fault_07_sigquit_ends_a_run_in_good_order() {
    check_signal(Signal::QUIT, 131);
}

#[test]
fn fault_22_sigterm_ends_a_run_with_143() {
    check_signal(Signal::TERM, 143);
}

#[test]
fn a_hangup_that_was_ignored_at_the_start_stays_so() {
    let server = Server::start([pay(), Reply::text("Paid.")]);
    let project = project("exec 3>alive; echo started >&3; exec 3>&-; cat release");
    let running = Running::start(through(&["nohup"], &project.command(&run(&server, &[]))));
    let alive = started(&project);
    running.signal(Signal::HUP);
    let release = project.path().join("release");
    within("the tool", move || File::options().write(true).open(release).map(drop).unwrap());
    let output = running.end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Paid.\n"), "{}", output.stderr);
    gone(alive);
}

#[test]
fn fault_07_a_closed_terminal_ends_a_run_in_good_order() {
    let server = Server::start([pay()]);
    let [line, ..] = escapes(DEAF);
    let project = project(&format!("{line}\ncat release"));
    let (command, terminal) = at_own_terminal(&project.command(&run(&server, &[])));
    let running = Running::start(command);
    let alive = started(&project);
    drop(terminal);
    check_end(&project, &running.end(), 129);
    gone(alive);
}

#[test]
fn fault_07_a_resumed_call_never_runs_beside_its_earlier_process() {
    // The lock is held by the first process, deaf to SIGTERM, and by all that it starts.
    let script = "\
trap '' TERM
exec 9>lock
flock -n 9 || echo overlap >>log
echo ran >>log
[ -e second ] && exit 0
touch second
exec 3>alive
echo started >&3
while :; do sleep 77; done
";
    let server = Server::start([pay(), Reply::text("Paid.")]);
    let project = project(script);
    project
        .write("registry.yaml", &project.read("registry.yaml").replace("class: unsafe", "class: idempotent"));
    let running = Running::start(project.command(&run(&server, &[])));
    let alive = started(&project);
    running.kill();
    let output = project.harness(&["resume", "s.jsonl", "--base-url", &server.url]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Paid.\n"), "{}", output.stderr);
    assert_eq!(project.read("log"), "ran\nran\n");
    gone(alive);
}
