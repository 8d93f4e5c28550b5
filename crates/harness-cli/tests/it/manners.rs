//! What a run prints besides its answer, and generated man pages.

use std::fs;

use serde_json::json;

use crate::support::{Answer, Output, Project, Reply, Server, on_terminal};

/// Runs one failing call and an answer.
fn with_failing_tool(more: &[&str]) -> Output {
    let server =
        Server::start([Reply::Stream(Answer::call("c1", "look", &json!({}))), Reply::text("nothing found")]);
    let script = "for n in 1 2 3 4; do echo line $n >&2; done; exit 3";
    Project::new(script, "").ask(&server.url, more)
}

#[test]
fn last_lines_of_standard_error_follow_a_failed_call() {
    let output = with_failing_tool(&[]);
    let lines: Vec<&str> = output.stderr.lines().collect();
    let failed = lines.iter().position(|line| line.starts_with("✗ look")).unwrap();
    assert_eq!(lines[failed + 1..failed + 4], ["  line 2", "  line 3", "  line 4"], "{}", output.stderr);
}

#[test]
fn quiet_run_prints_the_answer_only() {
    let output = with_failing_tool(&["--quiet"]);
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(0), "nothing found\n", "")
    );
}

#[test]
fn quiet_run_reports_why_it_stopped() {
    let server = Server::start([Reply::Stream(Answer::call("c1", "look", &json!({})))]);
    let output = Project::plain().ask(&server.url, &["-q", "--max-iterations", "1"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(5), ""));
    assert!(output.stderr.contains("deferred"), "{}", output.stderr);
    assert!(!output.stderr.contains("look"), "{}", output.stderr);
}

#[test]
fn every_command_has_a_man_page_and_examples() {
    let project = Project::plain();
    assert_eq!(project.harness(&["man", "pages"]).code, Some(0));
    for entry in fs::read_dir(project.path().join("pages")).unwrap() {
        let page = entry.unwrap();
        let text = fs::read_to_string(page.path()).unwrap();
        let name = page.file_name().into_string().unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
        let is_verb =
            ["harness-dev-", "harness-engine-", "harness-session-"].iter().any(|of| name.starts_with(of));
        assert!(is_verb || text.contains("Examples:"), "{name}");
    }
    let printed = project.harness(&["man"]);
    assert_eq!(printed.stdout, project.read("pages/harness.1"));
}

#[test]
fn long_text_on_a_terminal_is_shown_in_the_pager() {
    let project = Project::plain();
    let check = |pager: &str, arguments: &[&str], expected: &str| {
        let mut command = project.command(arguments);
        command.env("PAGER", pager);
        let output = on_terminal(command);
        assert_eq!(output.code, Some(0), "{pager} {arguments:?}");
        assert!(output.stdout.contains(expected), "{pager} {arguments:?}: {}", output.stdout);
        assert_eq!(output.stdout.contains("PAGED "), expected.contains("PAGED "), "{pager} {arguments:?}");
    };
    let pager = "sed 's/^/PAGED /'";
    check(pager, &["run", "--help"], "PAGED Run an agent graph");
    check(pager, &["--no-pager", "run", "--help"], "Run an agent graph");
    check(pager, &["--version"], "harness ");
    check("missing-pager", &["run", "--help"], "Run an agent graph");
}

#[test]
fn piped_text_is_not_paged() {
    let project = Project::plain();
    let mut command = project.command(&["run", "--help"]);
    let output = command.env("PAGER", "sed s/^/PAGED/").output().unwrap();
    assert!(output.stdout.starts_with(b"Run an agent graph"), "{}", String::from_utf8_lossy(&output.stdout));
}
