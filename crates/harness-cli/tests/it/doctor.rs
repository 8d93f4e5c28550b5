//! `harness doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Output, Project, Running, Server};

/// Nothing listens there.
const NOBODY: &str = "http://127.0.0.1:1/v1";

/// The doctor, who finds no programs but those of the project.
fn doctor(project: &Project, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = project.command(&[&["doctor"], arguments].concat());
    command.env("PATH", project.path().join("bin")).envs(environment.iter().copied());
    Running::start(command).end()
}

/// Puts a program on the `PATH`.
fn install(project: &Project, name: &str, script: &str) {
    let path = project.path().join("bin").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What was told, without what differs from one moment to the next, and without the sandbox, which not every
/// machine has.
fn told(project: &Project, output: &Output) -> String {
    let lines = project.told(output);
    let lines = lines.lines().filter(|line| !line.contains("sandbox")).map(|line| {
        match line.split_once("the clock is set: ") {
            Some((head, _)) => format!("{head}the clock is set: [NOW]"),
            None => line.to_owned(),
        }
    });
    lines.map(|line| line + "\n").collect()
}

#[track_caller]
fn left_behind(project: &Project) -> Vec<String> {
    let files = fs::read_dir(project.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("doctor")).collect()
}

#[test]
fn a_machine_with_nothing_set_up_has_no_fault() {
    let project = Project::plain();
    let output = doctor(&project, &[], &[]);
    insta::assert_snapshot!(told(&project, &output), @r"
    exit 0
    descriptor
      ok      harness.yaml is the default descriptor
    keys
      absent  OpenRouter: no API key
              fix: set OPENROUTER_API_KEY
      absent  Anthropic: no API key
              fix: set ANTHROPIC_API_KEY
      absent  OpenAI: no API key
              fix: set OPENAI_API_KEY
    local agents
      absent  Claude Code is not installed
              fix: install it with `npm install -g @anthropic-ai/claude-code`
      absent  Codex is not installed
              fix: install it with `npm install -g @openai/codex`
      absent  opencode is not installed
              fix: install it with `npm install -g opencode-ai`
      absent  Gemini CLI is not installed
              fix: install it with `npm install -g @google/gemini-cli`
    relay
      absent  no relay broker in this directory
              fix: start one in this directory: agent-relay-broker init --persist
    files
      ok      sessions can be stored in .: a write reached the disk within [TIME]
      ok      sessions in . can be locked
    machine
      ok      the clock is set: [NOW]
      ok      standard output is not a terminal; no terminal for approvals: runs that need one stop with exit code 4
    0 problems, 0 warnings
    ---
    ");
    assert!(left_behind(&project).is_empty());
}

#[test]
fn sandbox_of_this_machine_is_reported() {
    let project = Project::plain();
    let output = doctor(&project, &[], &[]);
    let expected = match harness::host::process::Sandbox::available() {
        Ok(()) => "  ok      programs can be sandboxed (Landlock and seccomp)\n".to_owned(),
        Err(fault) => {
            format!("  absent  programs cannot be sandboxed: {fault}\n          fix: use Linux 6.2 or later")
        }
    };
    assert!(output.stdout.contains(&expected), "{}", output.stdout);
}

#[test]
fn keys_are_told_by_their_place_and_their_endpoints_are_asked() {
    let project = Project::plain();
    let server = Server::start([]);
    fs::write(project.path().join("keys.yaml"), "openai: sk-in-the-file\n").unwrap();
    fs::set_permissions(project.path().join("keys.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    let environment = [
        ("OPENROUTER_API_KEY", "sk-in-the-environment"),
        ("OPENROUTER_BASE_URL", server.url.as_str()),
        ("OPENAI_BASE_URL", NOBODY),
    ];
    let output = doctor(&project, &environment, &["--keys", "keys.yaml", "--base-url", "localhost"]);
    insta::assert_snapshot!(told(&project, &output), @r"
    exit 1
    descriptor
      ok      harness.yaml is the default descriptor
    keys
      ok      OpenRouter: API key in OPENROUTER_API_KEY
      absent  Anthropic: no API key
              fix: set ANTHROPIC_API_KEY
      ok      OpenAI: API key in keys.yaml
    endpoints
      ok      OpenRouter: 127.0.0.1:[PORT]/v1/models answers within [TIME]
      fault   OpenAI: 127.0.0.1:[PORT]/v1/models could not be reached: Connection refused (os error 111); check the base URL and the network, then try again
              fix: if you need a proxy, set HTTPS_PROXY
      fault   the endpoint of --base-url: the base URL `localhost` cannot be used: relative URL without a base
              fix: use the form http://localhost:11434/v1
    local agents
      absent  Claude Code is not installed
              fix: install it with `npm install -g @anthropic-ai/claude-code`
      absent  Codex is not installed
              fix: install it with `npm install -g @openai/codex`
      absent  opencode is not installed
              fix: install it with `npm install -g opencode-ai`
      absent  Gemini CLI is not installed
              fix: install it with `npm install -g @google/gemini-cli`
    relay
      absent  no relay broker in this directory
              fix: start one in this directory: agent-relay-broker init --persist
    files
      ok      sessions can be stored in .: a write reached the disk within [TIME]
      ok      sessions in . can be locked
    machine
      ok      the clock is set: [NOW]
      ok      standard output is not a terminal; no terminal for approvals: runs that need one stop with exit code 4
    2 problems, 0 warnings
    ---
    ");
    assert!(!format!("{output:?}").contains("sk-in"), "{output:?}");
}

#[test]
fn an_invalid_registry_file_is_a_fault() {
    let project = Project::plain();
    fs::write(project.path().join("registry.yaml"), "version: 1\nmodels: 3\n").unwrap();
    let output = doctor(&project, &[], &[]);
    let told = told(&project, &output);
    let finding = "  fault   registry.yaml has 1 error\n          fix: show them with `harness check`\n";
    assert!(output.code == Some(1) && told.contains(finding), "{told}");
}

#[test]
fn agents_are_asked_for_their_versions() {
    let project = Project::plain();
    install(&project, "claude", "echo '2.1.197 (Claude Code)'");
    install(&project, "codex", "echo 'codex-cli 0.10.0'");
    install(&project, "gemini", "echo broken >&2; exit 3");
    let output = doctor(&project, &[], &[]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let told = told(&project, &output);
    let (_, agents) = told.split_once("local agents\n").unwrap();
    insta::assert_snapshot!(agents.split_once("relay\n").unwrap().0, @r"
    ok      Claude Code 2.1.197, [DIR]/bin/claude
    warning Codex 0.10.0 is older than 0.60.0, [DIR]/bin/codex
            fix: install it with `npm install -g @openai/codex`
    absent  opencode is not installed
            fix: install it with `npm install -g opencode-ai`
    warning cannot determine the version of Gemini CLI: exit status: 3: broken, [DIR]/bin/gemini
            fix: try `gemini --version` by hand
    ");
}

#[test]
fn a_broker_that_is_gone_is_a_fault() {
    let project = Project::plain();
    let folder = project.path().join(".agent-relay");
    fs::create_dir(&folder).unwrap();
    let connection = format!(r#"{{"url":"http://127.0.0.1:1","api_key":"k","pid":{}}}"#, std::process::id());
    fs::write(folder.join("connection.json"), connection).unwrap();
    fs::set_permissions(folder.join("connection.json"), fs::Permissions::from_mode(0o600)).unwrap();
    let output = doctor(&project, &[], &[]);
    let line = output.stdout.lines().skip_while(|line| *line != "relay").nth(1).unwrap_or_default();
    assert!(
        output.code == Some(1) && line.starts_with("  fault ") && line.contains("127.0.0.1:1"),
        "{output:?}"
    );
}

#[test]
fn a_folder_that_cannot_hold_a_session_is_a_fault() {
    let project = Project::plain();
    let output = doctor(&project, &[], &["--folder", "missing", "--json"]);
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = told["findings"].as_array().unwrap();
    let files: Vec<_> = findings.iter().filter(|finding| finding["area"] == "files").collect();
    assert_eq!((output.code, &told["sound"], files.len()), (Some(1), &Value::Bool(false), 1));
    assert_eq!((&files[0]["name"], &files[0]["status"]), (&"sessions".into(), &"fault".into()));
    assert!(files[0]["fix"].is_string() && files[0]["message"].as_str().unwrap().contains("missing"));
}

#[test]
fn a_key_file_that_others_can_read_is_a_fault() {
    let project = Project::plain();
    fs::write(project.path().join("keys.yaml"), "openai: sk-secret\n").unwrap();
    fs::set_permissions(project.path().join("keys.yaml"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = doctor(&project, &[], &["--keys", "keys.yaml"]);
    assert_eq!(output.code, Some(1));
    let expected = "  fault   invalid key file keys.yaml: other users can access it (mode 644)\n          \
                    fix: restrict access: chmod 600 keys.yaml\n";
    assert!(output.stdout.contains(expected), "{}", output.stdout);
}

#[test]
fn the_default_descriptor_is_reported() {
    #[track_caller]
    fn check(project: &Project, expected: &str) {
        let output = doctor(project, &[], &[]);
        assert!(output.stdout.contains(expected), "{}", output.stdout);
    }
    let project = Project::plain();
    check(&project, "  ok      harness.yaml is the default descriptor\n");
    project.write("harness.yaml", "schema_version: 1\nagents: [{}]\n");
    check(&project, "  fault   harness.yaml has 3 errors\n");
    fs::remove_file(project.path().join("harness.yaml")).unwrap();
    check(
        &project,
        "  absent  no harness.yaml in this directory or a parent; pass a descriptor to each command\n",
    );
}

#[test]
fn an_engine_that_does_not_respond_is_a_fault() {
    let project = Project::plain();
    let nobody = "http://127.0.0.1:1";
    let output = doctor(&project, &[], &["--engine", nobody, "--admin", nobody, "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let of_engine = report["findings"].as_array().unwrap().iter().filter(|found| found["area"] == "engine");
    let found: Vec<_> = of_engine.map(|found| (found["name"].as_str().unwrap(), &found["status"])).collect();
    assert_eq!(found, [("ingress", &"fault".into()), ("admin", &Value::from("fault"))], "{report}");
    assert_eq!(output.code, Some(1));
    let output = doctor(&project, &[], &["--engine", nobody]);
    assert!(output.stdout.contains("engine http://127.0.0.1:1/ does not respond"), "{output:?}");
    assert!(output.stdout.contains("fix: start the engine, or pass its URLs"), "{output:?}");
}
