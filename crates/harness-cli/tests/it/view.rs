//! `run --memory` and `run --compact`: what a model is shown.

use serde_json::{Value, json};

use crate::support::{Answer, Project, Reply, Server};

/// An endpoint that nobody listens at.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A tool that prints 6,000 characters, and another number each time.
const LONG: &str = "\
read -r arguments
echo ran >>look.log
wc -l <look.log
yes 'a line of a long result' | head -c 6000
";

fn reply(answer: Answer) -> Reply {
    Reply::Stream(answer)
}

/// The texts of the messages of a request, with their roles.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    messages
        .iter()
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap_or(""), message["content"]))
        .collect()
}

#[test]
fn facts_are_kept_from_one_run_to_the_next() {
    let fact = json!({"content": "Ada likes cod", "scope": "user"});
    let server = Server::start([
        reply(Answer::call("c1", "memory_remember", &fact)),
        Reply::text("I will."),
        Reply::text("Cod."),
    ]);
    let project = Project::plain();
    let run = |message: &str| {
        project.harness(&["run", "harness.yaml", message, "--memory", "facts.db", "--base-url", &server.url])
    };
    assert_eq!(run("remember what Ada likes").code, Some(0));
    let asked = run("what does Ada like?");
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "Cod.\n"));
    let requests = server.requests();
    assert!(
        texts(&requests[2]).iter().any(|text| text.contains("Ada likes cod")),
        "{:?}",
        texts(&requests[2])
    );
    let offered = requests[0]["tools"].as_array().expect("tools").iter();
    let names: Vec<_> = offered.map(|tool| tool["function"]["name"].as_str().unwrap_or("")).collect();
    assert_eq!(
        names,
        ["look", "pay", "memory_remember", "memory_recall", "memory_forget", "handoff_to_expert"]
    );
}

#[test]
fn a_memory_that_is_no_memory_is_refused_before_anything_runs() {
    let project = Project::plain();
    project.write("facts.db", "these are no facts");
    let output = project.ask(NOWHERE, &["--memory", "facts.db"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: memory: cannot open the notes file facts.db: file is not a database; check that it is a database of notes
      hint: correct `memory` in the registry file, or pass a file that `--memory` created
    ");
    assert_eq!(project.read("facts.db"), "these are no facts");
}

#[test]
fn the_registry_file_configures_memory() {
    let note = json!({"goal": "sell cod"});
    let server = Server::start([
        reply(Answer::call("c1", "scratchpad_update", &note)),
        Reply::text("Noted."),
        Reply::text("Cod."),
    ]);
    let project = Project::plain();
    let registry = project.read("registry.yaml");
    let memory = "memory:\n  storage: memory\n  layers:\n    scratchpad: { scope: user }\n    \
                  texts: { house_rules: { text: Prices include VAT. } }\n";
    project.write("registry.yaml", &format!("{registry}{memory}"));
    let run = |message: &str, more: &[&str]| {
        let all = ["run", "harness.yaml", message, "--base-url", &server.url];
        project.harness(&[&all[..], more].concat())
    };
    assert_eq!(run("what is the goal?", &[]).code, Some(0));
    assert_eq!(run("and now?", &["--memory", "facts.db"]).code, Some(0));
    let last = texts(&server.requests()[2]).join("\n");
    assert!(last.contains("sell cod") && last.contains("Prices include VAT."), "{last}");
    assert!(server.requests()[2].to_string().contains("memory_remember"), "--memory adds facts");
    assert!(project.path().join("memory").is_dir() && project.path().join("facts.db").is_file());
}

#[test]
fn errors_in_the_memory_section_have_a_place() {
    let project = Project::plain();
    let registry = project.read("registry.yaml");
    project.write("registry.yaml", &format!("{registry}memory:\n  layers:\n    scratchpd: {{}}\n"));
    let output = project.ask(NOWHERE, &[]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("unknown layer `scratchpd`"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `scratchpad`?"), "{}", output.stderr);
}

#[test]
fn old_results_make_room_and_the_session_keeps_them() {
    let calls = (1..=9).map(|n| reply(Answer::call(&format!("c{n}"), "look", &json!({}))));
    let server = Server::start(calls.chain([Reply::text("All looked at.")]));
    let project = Project::new(LONG, "");
    let arguments = ["--compact", "ladder", "--window", "8000", "--session", "s.jsonl"];
    let output = project.ask(&server.url, &arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("compacted the view"), "{}", output.stderr);
    let requests = server.requests();
    let last = texts(requests.last().expect("a request"));
    assert!(last[1].contains("hello"), "the task is there: {last:?}");
    assert!(last.iter().any(|text| text.contains("[look: success]")), "{last:?}");
    let shown = |request: &Value| request["messages"].to_string().len();
    assert!(requests.last().map(shown) < Some(9 * 6_000), "less than all results are shown");
    let stored = project.session("s.jsonl");
    let whole = stored.iter().filter(|line| line["message"]["role"] == "toolResult");
    assert_eq!(whole.filter(|line| line.to_string().len() > 6_000).count(), 9);
    assert!(stored.iter().any(|line| line["type"] == "compaction"));
}

/// What the last of four requests shows of three results, when the descriptor and the command line say this.
#[track_caller]
fn check_preset(run: &str, arguments: &[&str], results: usize) {
    let calls = (1..=3).map(|n| reply(Answer::call(&format!("c{n}"), "look", &json!({}))));
    let server = Server::start(calls.chain([Reply::text("Done.")]));
    let project = Project::new("read -r arguments\necho seen >>look.log\nwc -l <look.log\n", "");
    let descriptor = project.read("harness.yaml");
    project.write("harness.yaml", &format!("{descriptor}{run}"));
    let output = project.ask(&server.url, arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let last = texts(server.requests().last().expect("a request"));
    assert!(last[1].contains("hello"), "the task is there: {last:?}");
    let shown = last.iter().filter(|text| text.starts_with("tool: ")).count();
    assert_eq!(shown, results, "{last:?}");
}

#[test]
fn a_preset_is_chosen_by_name() {
    check_preset("", &[], 3);
    check_preset("run: { compaction: { preset: selective, calls: 1 } }\n", &[], 1);
    check_preset("run: { compaction: { preset: tool-results, calls: 2 } }\n", &[], 2);
    check_preset("run: { compaction: { preset: sliding-window, groups: 1 } }\n", &[], 1);
    check_preset("run: { compaction: { preset: selective, calls: 1 } }\n", &["--compact", "ladder"], 3);
    check_preset("", &["--compact", "sliding-window"], 3);
}

#[test]
fn a_preset_that_there_is_not_is_refused_with_those_that_there_are() {
    let output = Project::plain().ask(NOWHERE, &["--compact", "projection"]);
    assert_eq!(output.code, Some(2));
    let names = "[possible values: ladder, summarize, truncate, sliding-window, selective, tool-results]";
    assert!(output.stderr.contains(names), "{}", output.stderr);
}

#[test]
fn a_large_result_lies_beside_the_session_and_is_read_back_in_a_later_run() {
    let project = Project::new("read -r arguments\nyes 'a line' | head -c 90000\n", "");
    let arguments = ["--compact", "ladder", "--session", "s.jsonl"];
    let server = Server::start([reply(Answer::call("c1", "look", &json!({}))), Reply::text("It is long.")]);
    let output = project.ask(&server.url, &arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let shown = server.requests()[1]["messages"].to_string();
    assert!(shown.len() < 8_000 && shown.contains("a line"), "{} bytes", shown.len());
    let id =
        shown.split("read_artifact(\\\"").nth(1).and_then(|rest| rest.split('\\').next()).expect("a pointer");
    assert!(project.read("s.jsonl").len() < 20_000, "the session holds a reference");

    let read = json!({ "artifact_id": id, "offset": 40_000 });
    let server = Server::start([reply(Answer::call("c2", "read_artifact", &read)), Reply::text("Read.")]);
    let output = project.ask(&server.url, &arguments);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let shown = server.requests()[1]["messages"].to_string();
    assert!(shown.contains("[bytes 40000 to 48192 of 65568; continue with offset 48192]"), "{shown}");
}
