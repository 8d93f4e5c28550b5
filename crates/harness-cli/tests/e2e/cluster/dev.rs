//! `harness dev cluster`: one command starts an engine, workers and a front end.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use super::front::Front;
use super::{LONG, program};
use crate::support::{Project, Running, harness, until};

/// The numbers in a line such as `workers: processes 12, 14`.
fn numbers(line: &str) -> Vec<Pid> {
    let numbers = line.trim().strip_prefix("workers: processes ").unwrap().split(", ");
    numbers.map(|number| Pid::from_raw(number.parse().unwrap()).unwrap()).collect()
}

#[test]
fn one_command_starts_a_cluster_that_outlives_a_worker() {
    let project = Project::new("echo '{\"seen\":1}'", "echo '{\"paid\":1}'");
    let server = program();
    let server = server.to_string_lossy();
    let words =
        ["dev", "cluster", "harness.yaml", "--server", &server, "--data", "kept", "--", "--model", "demo"];
    let (running, line) = Running::start(project.command(&words)).line("the address of the front end");
    let url = line.trim().strip_prefix("front end: ").unwrap().to_owned();
    let (running, engine) = running.line("the engine");
    assert!(engine.starts_with("engine 1."), "{engine}");
    let (running, workers) = running.line("the workers");
    let workers = numbers(&workers);
    let front = Front::at(running, &url);
    let prompt = |front: &Front, text: &str| {
        let (status, report) = front.post("/v1/threads/ada/prompt?wait", &json!({ "text": text }));
        assert_eq!((status, &report["outcome"]), (200, &json!("completed")), "{report}");
    };
    assert_eq!(front.post("/v1/threads", &json!({ "id": "ada" })).0, 201);
    prompt(&front, "Hello");
    kill_process(workers[0], Signal::KILL).unwrap();
    prompt(&front, "Again");

    // Ctrl-C ends all of it, in order.
    let running = front.running();
    running.signal(Signal::INT);
    let ended = running.end_in(LONG);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("worker-1 was ended by SIGKILL: its runs continue"), "{ended:?}");
    assert!(ended.stderr.contains("front end | listening on "), "{ended:?}");
    until(LONG, "the end of the workers", || {
        workers.iter().all(|worker| test_kill_process(*worker).is_err())
    });

    // It goes on with its data, under the same addresses.
    let (running, line) = Running::start(project.command(&words)).line("the address of the front end");
    assert_eq!(line.trim(), format!("front end: {url}"));
    let (running, _) = running.line("the engine");
    let (running, workers) = running.line("the workers");
    let front = Front::at(running, &url);
    prompt(&front, "And once more");
    let (_, list) = front.text(reqwest::Method::GET, "/v1/threads", None);
    assert!(list.contains("\"title\":\"Hello\""), "{list}");
    // Without workers it is of no use.
    for worker in numbers(&workers) {
        kill_process(worker, Signal::KILL).unwrap();
    }
    let ended = front.running().end_in(LONG);
    assert!(ended.code == Some(1) && ended.stderr.contains(": no worker is left"), "{ended:?}");
}

#[test]
fn a_part_that_does_not_start_is_named() {
    let project = Project::new("echo", "echo");
    let server = program();
    let server = server.to_string_lossy();
    let words = ["dev", "cluster", "harness.yaml", "--server", &server, "--", "--model", "no/such"];
    let ended = Running::start(harness(project.path(), &words)).end_in(LONG);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("worker-1 did not start: it ended with"),
        "{ended:?}"
    );
}
