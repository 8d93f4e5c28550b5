//! Runs over real HTTP.

use serde_json::{Value, json};

use crate::support::{Answer, Gate, Project, Reply, Running, Server, within};

#[test]
fn a_run_hands_off_calls_tools_in_parallel_and_answers() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "handoff_to_expert", &json!({ "why": "too hard" }))),
        Reply::Stream(Answer::call("c2", "look", &json!({ "at": "left" })).and_call(
            "c3",
            "look",
            &json!({ "at": "right" }),
        )),
        Reply::text("Both sides are fine."),
    ]);
    let project = Project::new("read -r arguments; echo \"saw $arguments\"", "");
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 0
    Both sides are fine.
    ---
    • desk
    → handoff_to_expert {"why":"too hard"}
    ↪ desk → expert
    → look {"at":"left"}
    → look {"at":"right"}
    ✓ look [TIME]
    ✓ look [TIME]
    completed (answer_finalized) · 3 iterations · 3 tool calls · 300 + 25 tokens · cost 0.0003 · [TIME]
    "#);

    let requests = server.requests();
    let systems: Vec<&Value> = requests.iter().map(|request| &request["messages"][0]["content"]).collect();
    assert_eq!(systems, ["You are the desk.", "You are the expert.", "You are the expert."]);
    let results: Vec<(&Value, &Value)> = requests[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| (&message["tool_call_id"], &message["content"]))
        .collect();
    assert_eq!(
        results[1..],
        [(&json!("c2"), &json!("saw {\"at\":\"left\"}")), (&json!("c3"), &json!("saw {\"at\":\"right\"}")),]
    );
}

#[test]
fn parallel_calls_run_at_the_same_time() {
    // Each of the two calls ends only when the other one has begun.
    let project = Project::new(
        "read -r arguments
         case $arguments in
           *left*) echo left >left; cat right ;;
           *) cat left; echo right >right ;;
         esac",
        "",
    );
    project.pipe("left");
    project.pipe("right");
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "at": "left" })).and_call(
            "c2",
            "look",
            &json!({ "at": "right" }),
        )),
        Reply::text("They met."),
    ]);
    let output = project.ask(&server.url, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "They met.\n"));
}

#[test]
fn text_is_passed_on_while_the_answer_is_still_coming() {
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("first second third");
    let server = Server::start([Reply::Paused { answer, after: 2, gate: gate.clone() }]);
    let project = Project::plain();
    let arguments = ["run", "harness.yaml", "hello", "--json", "--base-url", &server.url];
    let mut running = Running::start(project.command(&arguments));
    loop {
        let (next, line) = running.line("a piece of the answer");
        running = next;
        let seen: Value = serde_json::from_str(&line).unwrap();
        if seen["type"] == "delta" {
            assert_eq!(seen["part"], json!({ "text": "first " }));
            break;
        }
    }
    within("the pause", move || arrived.recv().unwrap());
    gate.open();
    let output = running.end();
    let last: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["answer"]), (&json!("result"), &json!("first second third")));
}

#[test]
fn the_message_may_come_from_standard_input() {
    for arguments in [vec!["run", "harness.yaml"], vec!["run", "harness.yaml", "-"]] {
        let server = Server::start([Reply::text("ok")]);
        let project = Project::plain();
        let arguments = [&arguments[..], &["--base-url", &server.url]].concat();
        let output = Running::start_with_input(project.command(&arguments), b"from a pipe\n").end();
        assert_eq!(output.stdout, "ok\n", "{}", output.stderr);
        assert_eq!(server.requests()[0]["messages"][1]["content"], "from a pipe");
    }
}

#[test]
fn a_session_is_taken_up_by_the_next_run() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "handoff_to_expert", &json!({}))),
        Reply::text("first answer"),
        Reply::text("second answer"),
    ]);
    let project = Project::plain();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!(output.stdout, "second answer\n");
    let last = server.requests().pop().unwrap();
    let roles: Vec<&Value> =
        last["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(last["messages"][0]["content"], "You are the expert.", "the active agent goes on");
}

#[test]
fn the_context_chooses_parts_and_fills_templates() {
    let server = Server::start([Reply::text("ok")]);
    let project = Project::plain();
    project.write(
        "harness.yaml",
        "\
runtime: { entry_agent: a }
context:
  fields: { user.name: { default: nobody }, user.vip: { default: false } }
  references: { user.name: true, user.vip: { type: boolean } }
agents:
  a:
    model: scripted
    instructions_sequence:
      - text: Talk to {{context.user.name}}.
      - { text: Be quick., where: { context: user.vip } }
",
    );
    project.write("more.yaml", "user: { vip: true }");
    let output = project.ask(&server.url, &["--context", "user.name=Ada", "--context", "more.yaml"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(server.requests()[0]["messages"][0]["content"], "Talk to Ada.\n\nBe quick.");
}

#[test]
fn a_model_of_the_command_line_is_asked_instead_of_the_descriptors() {
    let server = Server::start([Reply::text("ok")]);
    Project::plain().ask(&server.url, &["--model", "other/model"]);
    assert_eq!(server.requests()[0]["model"], "other/model");
}
