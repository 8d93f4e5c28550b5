//! Runs that go on until the work is done, and contracts.

use serde_json::{Value, json};

use crate::support::{Answer, Project, Reply, Server};

const CONTRACT: &str = "\
goal: Say it
required_outputs:
  - id: R1
    description: the answer says done
    predicate: { type: contains_text, args: { pattern: all done, field: any_response } }
  - id: R2
    description: a file with the result
    type: artifact
    predicate: { type: file_exists, args: { path: result.txt } }
";

fn complete(summary: &str) -> Answer {
    Answer::call("w1", "work_complete", &json!({ "summary": summary, "confidence": 0.9 }))
}

#[test]
fn a_run_goes_on_until_the_signal_and_a_pipe_gets_the_answer_alone() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({}))),
        Reply::text("half of it"),
        Reply::Stream(Answer::text("all done").and_call(
            "w1",
            "work_complete",
            &json!({ "summary": "said it" }),
        )),
    ]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--until-done"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 0
    all done
    ---
    • desk
    → look {}
    ✓ look [TIME]
    • desk
    → work_complete {"summary":"said it"}
    ✓ work_complete [TIME]
    completed (answer_finalized) · 3 iterations · 2 tool calls · 300 + 19 tokens · cost 0.0003 · [TIME]
    "#);
    assert!(!output.stderr.contains('\r'), "{}", output.stderr);
}

#[test]
fn what_is_missing_is_told_and_reported() {
    let server = Server::start([
        Reply::Stream(complete("claimed")),
        Reply::Stream(Answer::text("all done").and_call(
            "w2",
            "work_complete",
            &json!({ "summary": "claimed" }),
        )),
    ]);
    let project = Project::plain();
    project.write("contract.yaml", CONTRACT);
    let arguments =
        ["--contract", "contract.yaml", "--max-turns", "2", "--report", "report.md", "--session", "s.jsonl"];
    let output = project.ask(&server.url, &arguments);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 5
    Work recorded as complete: claimed
    ---
    • desk
    → work_complete {"confidence":0.9,"summary":"claimed"}
    ✓ work_complete [TIME]
    ↻ not done yet (contract_not_satisfied): R1, R2
    • desk
    → work_complete {"summary":"claimed"}
    ✓ work_complete [TIME]
    ! stopped: turn limit 2 (--max-turns): 2 used
    deferred (max_turns_reached) · 2 iterations · 2 tool calls · 200 + 16 tokens · cost 0.0002 · [TIME]
    requirements: 1 of 2 met
    R2 is not met: a file with the result
    to continue with more turns: harness resume s.jsonl --max-turns 4
    "#);
    let page = project.read("report.md");
    for part in [
        "# Run report: deferred\n",
        "(`max_turns_reached`).\nA limit was reached before the work was done.\n",
        "| R1: the answer says done | met | event ",
        "| R2: a file with the result | unmet |",
        "| signal | accepted |  |\n| contract | **refused** | not met: R2 |",
        "## What the model reported\n\nclaimed\n",
        "## What to do next\n\nto continue with more turns: harness resume s.jsonl --max-turns 4\n",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
}

#[test]
fn a_file_in_the_workspace_meets_the_contract_and_one_outside_does_not() {
    for (workspace, code) in [("work", 0), ("other", 5)] {
        let claim = || {
            let done = json!({ "summary": "said it", "confidence": 0.9 });
            Reply::Stream(Answer::text("all done").and_call("w1", "work_complete", &done))
        };
        let server = Server::start([claim(), claim()]);
        let project = Project::plain();
        project.write("contract.yaml", CONTRACT);
        for folder in ["work", "other"] {
            std::fs::create_dir(project.path().join(folder)).unwrap();
        }
        project.write("work/result.txt", "the result");
        let arguments = ["--contract", "contract.yaml", "--workspace", workspace, "--mode", "strict"];
        let limits = ["--max-turns", "2", "--report", "report.json"];
        let output = project.ask(&server.url, &[&arguments[..], &limits].concat());
        assert_eq!(output.code, Some(code), "{workspace}: {}", output.stderr);
        let report: Value = serde_json::from_str(&project.read("report.json")).unwrap();
        assert_eq!(report["kind"], "harness.run_report");
        assert_eq!(report["status"], if code == 0 { "done" } else { "exhausted" });
        let met = if code == 0 { "met" } else { "unmet" };
        assert_eq!(
            [&report["requirements"][0]["status"], &report["requirements"][1]["status"]],
            ["met", met]
        );
    }
}

#[test]
fn deliverables_become_files_and_nothing_is_overwritten() {
    let item = json!({ "title": "The result", "role": "deliverable" });
    let artifact = json!({ "item_id": "00000001", "artifact": "forty-two" });
    let done = json!({ "item_id": "00000001", "status": "done" });
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "work_item_add", &item)),
        Reply::Stream(Answer::call("c2", "work_item_set_artifact", &artifact)),
        Reply::Stream(Answer::call("c3", "work_item_update", &done)),
        Reply::Stream(complete("computed")),
    ]);
    let project = Project::plain();
    let descriptor = project.read("harness.yaml");
    project.write("harness.yaml", &format!("{descriptor}run: {{ work_items: true }}\n"));
    std::fs::create_dir(project.path().join("out")).unwrap();
    project.write("out/The-result.md", "something else");
    let output = project.ask(&server.url, &["--deliverables", "out"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(project.read("out/The-result.md"), "something else");
    assert_eq!(project.read("out/The-result-2.md"), "forty-two");
    let note = "deliverable: out/The-result-2.md, 9 bytes (The-result.md already exists and was not changed";
    assert!(output.stderr.contains(note), "{}", output.stderr);
}

#[test]
fn a_deferred_run_goes_on_with_new_limits_and_with_what_it_had_proved() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({}))),
        Reply::text("seen"),
        Reply::Stream(complete("looked")),
    ]);
    let project = Project::plain();
    project.write(
        "contract.yaml",
        "goal: Look\nrequired_outputs:\n  - id: R1\n    description: it was looked at\n    \
         predicate: { type: tool_result_success, args: { tool_name: look } }\n",
    );
    let limits = ["--contract", "contract.yaml", "--max-turns", "1", "--session", "s.jsonl"];
    let output = project.ask(&server.url, &limits);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("harness resume s.jsonl --max-turns 2"), "{}", output.stderr);

    let output = project.harness(&["resume", "s.jsonl", "--max-turns", "2", "--base-url", &server.url]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("requirements: 1 of 1 met"), "{}", output.stderr);
    let again = project.harness(&["resume", "none.jsonl"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("session `none.jsonl` does not exist"), "{}", again.stderr);
}

#[track_caller]
fn check_refused(arguments: &[&str], expected: &str) {
    let project = Project::plain();
    project.write("bad.yaml", "goal: Say it\nrequired_output: []\n");
    project.write("contract.yaml", CONTRACT);
    let output = project.harness(
        &[&["run", "harness.yaml", "hello", "--base-url", "http://127.0.0.1:9"], arguments].concat(),
    );
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn faults_are_told_before_anything_runs() {
    check_refused(&["--contract", "bad.yaml"], "bad.yaml:2:1");
    check_refused(&["--contract", "none.yaml"], "none.yaml");
    check_refused(&["--contract", "contract.yaml", "--workspace", "nowhere"], "nowhere");
}

#[test]
fn a_contract_is_checked_like_a_descriptor() {
    let project = Project::plain();
    project.write("contract.yaml", CONTRACT);
    project.write("bad.yaml", &CONTRACT.replace("any_response", "[1]").replace("goal", "gaol"));
    let output = project.harness(&["check", "contract.yaml", "bad.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    contract.yaml is valid: a contract with 2 required outputs
    ---
    bad.yaml:1:1: error[descriptor.unknown_setting]: unknown key `gaol` in contract
      |
    1 | gaol: Say it
      | ^^^^
    help: did you mean `goal`?

    bad.yaml:1:1: error[descriptor.missing_setting]: missing `goal` in contract
      |
    1 | gaol: Say it
      | ^^^^^^^^^^^^

    bad.yaml:5:73: error[descriptor.setting]: contract.required_outputs[0].predicate.args.field must be a string, not a list
      |
    5 |     predicate: { type: contains_text, args: { pattern: all done, field: [1] } }
      |                                                                         ^^^

    3 errors in 2 files
    ");
    let output = project.harness(&["check", "contract.yaml", "--json"]);
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "contract");
    assert_eq!([&lines[0]["sound"], &lines[0]["required_outputs"]], [&json!(true), &json!(2)]);
}
