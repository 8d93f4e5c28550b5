//! Modes and sub-agents of a registry file.

use serde_json::json;

use crate::support::{Answer, Project, Reply, Server, normal};

const PAY: &str = "read -r arguments; echo ran >>pay.log; echo '{\"paid\":1}'";
const LOOK: &str = "read -r arguments; echo ran >>look.log; echo '{\"seen\":1}'";

const TEAM: &str = "  mode: { builtin: modes }
  team:
    builtin: subagents
    agents:
      scout:
        description: looks at things
        instructions: You look and tell what you see.
        tools: [look, pay]
";

const DESCRIPTOR: &str = "\
runtime: { entry_agent: desk }
tools:
  look: { target: look }
  pay: { target: pay }
  give: { target: team.task }
agent_defaults: { model: scripted }
agents:
  desk:
    instructions: You are the desk.
    tools: [look, pay, give]
";

fn call(id: &str, name: &str, arguments: &serde_json::Value) -> Reply {
    Reply::Stream(Answer::call(id, name, arguments))
}

/// What the results in the session say when the model answers so, and how often was paid.
fn run(replies: Vec<Reply>) -> (Vec<String>, usize) {
    let project = Project::new(LOOK, PAY).with_pay(TEAM);
    project.write("harness.yaml", DESCRIPTOR);
    let server = Server::start(replies);
    let output = project.ask(&server.url, &["--session", "s.jsonl", "--approve", "always"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{}", output.stderr);
    let lines = project.session("s.jsonl");
    let results = lines.iter().map(|line| &line["message"]).filter(|message| message["role"] == "toolResult");
    let texts = results.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect();
    let paid =
        if project.path().join("pay.log").exists() { project.read("pay.log").lines().count() } else { 0 };
    (texts, paid)
}

#[test]
fn nothing_is_paid_before_the_mode_allows_it() {
    let (results, paid) = run(vec![
        call("c1", "pay", &json!({})),
        call("c2", "mode_set", &json!({ "mode": "execute" })),
        call("c3", "pay", &json!({})),
        Reply::text("done"),
    ]);
    assert!(
        results[0].starts_with("`pay` may change something, which the mode `plan` does not allow."),
        "{results:?}"
    );
    assert!(results[1].starts_with(r#"{"mode":"execute""#) && results[2].contains("paid"), "{results:?}");
    assert_eq!(paid, 1);
}

#[test]
fn a_subagent_is_inside_the_call_that_started_it() {
    let project = Project::new(LOOK, PAY).with_pay(TEAM);
    project.write("harness.yaml", DESCRIPTOR);
    let server = Server::start([
        call("c1", "task", &json!({ "description": "Look at it.", "subagent_type": "scout" })),
        call("s1", "look", &json!({ "n": 1 })),
        Reply::text("I saw it."),
        Reply::text("done"),
    ]);
    project.ask(&server.url, &["--run-record", "run.json"]);
    let output = project.harness(&["inspect", "run.json"]);
    let call = output.stdout.split_once("\n1. ").unwrap().1.split("\n2. ").next().unwrap().to_owned();
    insta::assert_snapshot!(normal(&call), @r#"
    desk asks scripted · [TIME] · first token [TIME] · 100 + 7 tokens
       instructions: You are the desk.
       → task {"description":"Look at it.","subagent_type":"scout"}
       ← success in [TIME]: {"ok":true,"output":"I saw it.","iterations":2,"subagent":"scout"}
         sub-agent scout · completed · [TIME] · 2 model calls · 1 tool call · 200 + 10 tokens · cost 0.0002

         1. scout · [TIME] · first token [TIME] · 100 + 7 tokens
            instructions: You look and tell what you see.
            → look {"n":1}
            ← success in [TIME]: {"seen":1}

         2. scout · [TIME] · first token [TIME] · 100 + 3 tokens
            I saw it.
    "#);

    project.harness(&["inspect", "run.json", "--html", "run.html"]);
    let page = project.read("run.html");
    let links = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    let inside: Vec<&str> = links.filter(|link| link.starts_with("sub-1-")).collect();
    assert!(inside.len() >= 6, "spans of two model calls and a tool call, and their steps: {inside:?}");
    for link in inside {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link} leads nowhere");
    }
}

#[test]
fn a_subagent_of_the_file_works_with_the_models_and_gates_of_the_run() {
    let (results, paid) = run(vec![
        call("c1", "task", &json!({ "description": "Look, and pay.", "subagent_type": "scout" })),
        call("s1", "pay", &json!({})),
        call("s2", "look", &json!({})),
        Reply::text("I saw it, and could not pay."),
        Reply::text("done"),
    ]);
    assert_eq!((results.len(), paid), (1, 0), "{results:?}");
    assert!(results[0].contains("I saw it, and could not pay."), "{results:?}");
}
