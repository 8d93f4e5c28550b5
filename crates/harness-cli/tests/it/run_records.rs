//! Run records: made by a run, shown, run again, kept as suites.

use serde_json::{Value, json};

use crate::support::{Answer, Gate, Project, Reply, Running, Server, within};

/// A project with the record of a run that looks at something and answers.
fn recorded() -> Project {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::text("It was seen."),
    ]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--run-record", "run.json"]);
    assert_eq!(output.stdout, "It was seen.\n", "{}", output.stderr);
    project
}

/// What the program prints, without what differs between two runs.
fn told(project: &Project, arguments: &[&str]) -> String {
    let output = project.harness(arguments);
    let text = project.told(&output);
    let mut words: Vec<String> = Vec::new();
    for line in text.lines() {
        let masked = line.split(' ').map(|word| {
            let run = word.starts_with("run-") && word.len() > 20;
            let time = word.starts_with("20") && word.ends_with('Z');
            let hash =
                word.len() >= 12 && word.trim_start_matches("sha256:").bytes().all(|b| b.is_ascii_hexdigit());
            match (run, time, hash) {
                (true, ..) => "[RUN]",
                (_, true, _) => "[AT]",
                (.., true) => "[HASH]",
                _ => word,
            }
        });
        words.push(masked.collect::<Vec<_>>().join(" "));
    }
    words.join("\n")
}

#[test]
fn a_record_is_shown_as_text() {
    let project = recorded();
    insta::assert_snapshot!(told(&project, &["inspect", "run.json"]), @r#"
    exit 0
    run [RUN] · [AT] · [TIME]
    2 model calls · 1 tool call · 200 + 10 tokens · cost 0.0002
    descriptor [HASH] · candidate [HASH]

    user: hello

    1. desk asks scripted · [TIME] · first token [TIME] · 100 + 7 tokens
       instructions: You are the desk.
       → look {"n":1}
       ← success in [TIME]: {"seen":1}

    2. desk asks scripted · [TIME] · first token [TIME] · 100 + 3 tokens
       It was seen.

    ended: completed (answer_finalized)

    It was seen.
    ---
    "#);
}

#[test]
fn a_record_is_shown_as_a_page_as_json_and_as_events() {
    let project = recorded();
    let output = project.harness(&["inspect", "run.json", "--html", "run.html"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "run.html\n"), "{}", output.stderr);
    let page = project.read("run.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("It was seen."));

    let output = project.harness(&["inspect", "run.json", "--json"]);
    let record: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(record["kind"], "harness.run_record");
    assert_eq!(record["metadata"]["harness"]["descriptor"], "harness.yaml");

    let output = project.harness(&["inspect", "run.json", "--events"]);
    let event: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(event["type"], "aioc.run.completed");
}

#[test]
fn a_record_holds_what_the_model_saw_unless_it_is_left_out() {
    let server = Server::start([Reply::text("Hi."), Reply::text("Hi.")]);
    let project = Project::plain();
    project.ask(&server.url, &["--run-record", "with.json"]);
    project.ask(&server.url, &["--run-record", "without.json", "--no-prompts"]);
    let prompts = |file: &str| {
        let record: Value = serde_json::from_str(&project.read(file)).unwrap();
        record["prompts"].clone()
    };
    let with = prompts("with.json");
    assert_eq!(with["tools"][0]["name"], "look");
    assert_eq!(
        with["requests"],
        json!([{ "turn": 1, "offer": 0, "view": [{ "items": { "from": 0, "to": 1 } }] }])
    );
    assert_eq!(prompts("without.json"), Value::Null);

    // Both show the same run.
    let output = project.harness(&["inspect", "with.json", "without.json"]);
    assert!(output.stdout.ends_with("\nno difference\n"), "{}{}", output.stdout, output.stderr);
    project.harness(&["inspect", "with.json", "without.json", "--html", "pair.html"]);
    assert!(project.read("pair.html").contains("Two runs side by side"));
}

#[test]
fn a_folder_is_shown_as_a_list_of_its_runs() {
    let project = recorded();
    std::fs::create_dir(project.path().join("runs")).unwrap();
    project.write("runs/a.json", &project.read("run.json"));
    project.write("runs/other.json", "{}");
    let output = project.harness(&["inspect", "runs"]);
    assert!(output.stdout.starts_with("runs/a.json: completed · "), "{}", output.stdout);
    assert!(
        output.stderr.starts_with("skipped: ") && output.stderr.contains("other.json"),
        "{}",
        output.stderr
    );
    let output = project.harness(&["inspect", "runs", "--html", "runs.html"]);
    assert_eq!(output.stdout, "runs.html\n", "{}", output.stderr);
    assert!(project.read("runs.html").contains("1 run<"));

    std::fs::remove_file(project.path().join("runs/a.json")).unwrap();
    let output = project.harness(&["inspect", "runs"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("error: no run record in the directory `runs`"), "{}", output.stderr);
}

/// A chat over a pipe with these lines, whose runs are recorded in a folder.
fn chat(project: &Project, url: &str, folder: &str, input: &str) -> Running {
    let mut command = project.command(&["chat", "harness.yaml", "--base-url", url, "--run-record", folder]);
    command.env("HOME", project.path());
    Running::start_with_input(command, input.as_bytes())
}

#[test]
fn each_run_of_a_chat_leaves_a_record_with_its_thread() {
    let server = Server::start([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let project = Project::plain();
    let output = chat(&project, &server.url, "records", "first\nsecond\n").end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    // A run of the command joins them.
    project.ask(&server.url, &["--run-record", "records"]);

    let output = project.harness(&["inspect", "records", "--json"]);
    let records: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let questions: Vec<&Value> = records.iter().map(|record| &record["question"]).collect();
    assert_eq!(questions, ["first", "second", "hello"], "{}", output.stderr);
    let threads: Vec<Option<&str>> = records.iter().map(|record| record["threadId"].as_str()).collect();
    assert!(threads[0].is_some() && threads[0] == threads[1] && threads[2].is_none(), "{threads:?}");
    let output = project.harness(&["inspect", "records"]);
    assert_eq!(output.stdout.lines().count(), 3, "{}", output.stdout);
    project.harness(&["inspect", "records", "--html", "runs.html"]);
    let page = project.read("runs.html");
    let thread = format!("Thread {}<span class=\"soft\"> · 2 runs<", threads[0].unwrap());
    assert!(page.contains(&thread) && page.contains("<h1>3 runs</h1>"));
}

#[test]
fn a_chat_whose_record_cannot_be_written_says_so() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([Reply::Paused { answer: Answer::text("Hi."), after: 1, gate: gate.clone() }]);
    let project = Project::plain();
    let running = chat(&project, &server.url, "no/records", "first\n");
    within("the call of the model", move || arrived.recv().unwrap());
    project.write("no", "a file");
    gate.open();
    let output = running.end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(6), "Hi.\n"), "{}", output.stderr);
    let said = "run record not written: cannot write run record `no/records/";
    assert!(output.stderr.contains(said), "{}", output.stderr);

    let output = chat(&project, &server.url, "no/records", "first\n").end();
    assert_eq!(output.code, Some(2), "it is noticed before anything is said: {}", output.stderr);
}

#[test]
fn a_replay_needs_no_network_and_executes_nothing() {
    let project = recorded();
    project.write("look.sh", "touch executed; exit 1");
    insta::assert_snapshot!(told(&project, &["replay", "run.json"]), @r"
    exit 0
    [RUN] → [RUN]
    tools: 1 recorded, 1 replayed, 0 not in it, 0 of those executed
    no difference
    ---
    ");
    assert!(!project.path().join("executed").exists());
}

#[test]
fn a_replay_that_differs_says_where() {
    let project = recorded();
    project.write("look.sh", "echo '{\"seen\":2}'");
    insta::assert_snapshot!(told(&project, &["replay", "run.json", "--mode", "live"]), @r#"
    exit 1
    [RUN] → [RUN]
    toolCalls[0].output: {"seen":1} → {"seen":2}
    different
    ---
    "#);
    let output = project.harness(&["replay", "run.json", "--mode", "live", "--json"]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["same"], false);
    assert_eq!(value["inputSource"], "inputItemCount");
    assert_eq!(value["comparison"]["summary"]["sameToolCallShape"], true);
}

#[test]
fn live_answers_may_ask_for_what_was_not_recorded() {
    let project = recorded();
    let answers = || {
        Server::start([
            Reply::Stream(Answer::call("c1", "look", &json!({ "n": 2 }))),
            Reply::text("It was seen."),
        ])
    };
    let server = answers();
    let live = ["replay", "run.json", "--base-url", &server.url];
    insta::assert_snapshot!(told(&project, &live), @r#"
    exit 1
    [RUN] → [RUN]
    tools: 1 recorded, 0 replayed, 1 not in it, 0 of those executed
    ended answer_finalized → runtime_error: tool: no recorded call of `look` with these arguments is left (363379742f80…); replay in hybrid mode to execute such calls
    response: "It was seen." → nothing
    toolCalls[0].argsHash: "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd" → "363379742f80b51bdb9206579af7754911543079b9399cb3fc315fb199f476e8"
    toolCalls[0].output: {"seen":1} → "no recorded call of `look` with these arguments is left (363379742f80…); replay in hybrid mode to execute such calls"
    different
    ---
    "#);
    let server = answers();
    let live =
        ["replay", "run.json", "--base-url", &server.url, "--mode", "hybrid", "--run-record", "again.json"];
    insta::assert_snapshot!(told(&project, &live), @r#"
    exit 1
    [RUN] → [RUN]
    tools: 1 recorded, 0 replayed, 1 not in it, 1 of those executed
    toolCalls[0].argsHash: "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd" → "363379742f80b51bdb9206579af7754911543079b9399cb3fc315fb199f476e8"
    different
    ---
    "#);
    assert!(project.read("again.json").contains("harness.run_record"));
}

#[test]
fn a_suite_runs_its_cases_and_ends_with_a_summary() {
    let project = recorded();
    project.write(
        "suite.yaml",
        "\
version: 1
suite: desk
descriptor: harness.yaml
cases:
  - { name: as before, baseline: run.json }
  - { name: other tools, baseline: run.json, expect: { shouldUseTools: [pay] } }
  - { name: no such descriptor, baseline: run.json, descriptor: none.yaml }
",
    );
    insta::assert_snapshot!(told(&project, &["regress", "suite.yaml"]), @r#"
    exit 1
    pass   as before
    FAIL   other tools
           required tool `pay` was not called
    FAIL   no such descriptor
           cannot read the descriptor `[DIR]/none.yaml`: No such file or directory (os error 2)
    desk: 3 cases, 1 passed, 0 changed, 2 failed
    ---
    "#);
    let output = project.harness(&["regress", "suite.yaml", "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(output.code, Some(1));
    assert_eq!(report["totals"], json!({ "cases": 3, "passed": 1, "warned": 0, "failed": 2 }));
}

#[test]
fn what_cannot_be_used_is_said() {
    let project = recorded();
    insta::assert_snapshot!(told(&project, &["inspect", "harness.yaml"]), @r#"
    exit 2
    ---
    error: run record `harness.yaml`: expected value at line 1 column 1
      hint: pass a file that `--run-record` or a FileSink wrote
    "#);
    insta::assert_snapshot!(told(&project, &["replay", "none.json"]), @r#"
    exit 2
    ---
    error: cannot read run record `none.json`: No such file or directory (os error 2)
      hint: check the path
    "#);
    let newer = project.read("run.json").replace("\"version\": 1", "\"version\": 9");
    project.write("newer.json", &newer);
    insta::assert_snapshot!(told(&project, &["inspect", "newer.json"]), @r#"
    exit 2
    ---
    error: run record `newer.json` has version 9, this program reads version 1
      hint: use the version of harness that wrote it, or a newer one
    "#);
    let elsewhere = project.read("run.json").replace("\"descriptor\":\"harness.yaml\"", "\"other\":1");
    project.write("elsewhere.json", &elsewhere);
    insta::assert_snapshot!(told(&project, &["replay", "elsewhere.json"]), @r#"
    exit 2
    ---
    error: the record does not name its descriptor
      hint: pass `--descriptor FILE`
    "#);
}

#[test]
fn a_record_that_cannot_be_written_is_told_and_ends_with_its_own_code() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([Reply::Paused { answer: Answer::text("Hi."), after: 1, gate: gate.clone() }]);
    let project = Project::plain();
    project.write("no/such/file", "");
    let arguments =
        ["run", "harness.yaml", "hello", "--base-url", &server.url, "--run-record", "no/such/run.json"];
    let running = Running::start(project.command(&arguments));
    within("the call of the model", move || arrived.recv().unwrap());
    std::fs::remove_dir_all(project.path().join("no")).unwrap();
    gate.open();
    let output = running.end();
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 6
    Hi.
    ---
    • desk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 100 + 1 tokens · cost 0.0001 · [TIME]
    run record not written: cannot write run record `no/such/run.json`: entity not found; check that the directory exists
    "#);
}
