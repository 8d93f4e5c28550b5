//! Skills, prompt templates and context files in folders.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Answer, Output, Project, Reply, Running, Server, harness};

const RELEASE: &str = "---\nname: release\ndescription: Cuts a release\n---\nRun the tests first.\n";

/// A project with a skill and a template.
fn project() -> Project {
    let project = Project::plain();
    project.write(".harness/skills/release/SKILL.md", RELEASE);
    project.write(".harness/templates/fix.md", "---\nargument-hint: <number>\n---\nFix issue $1.\n");
    project
}

/// A start of the program in a folder below the project, whose home is the project's folder.
fn begin(project: &Project, folder: &str, arguments: &[&str]) -> Command {
    let mut command = harness(&project.path().join(folder), arguments);
    command.env("HOME", project.path());
    command
}

fn talk(command: Command, input: &str) -> Output {
    Running::start_with_input(command, input.as_bytes()).end()
}

/// What the model is told before the conversation.
fn instructions(request: &Value) -> &str {
    let first = &request["messages"][0];
    if first["role"] == "system" { first["content"].as_str().unwrap() } else { "" }
}

fn last(request: &Value) -> &str {
    request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap()
}

#[test]
fn templates_and_skills_of_the_descriptors_folder_are_used_by_name() {
    let server = Server::start([Reply::text("Fixed."), Reply::text("Released.")]);
    let project = project();
    let command = begin(&project, "", &["chat", "harness.yaml", "--base-url", &server.url]);
    let output = talk(command, "/fix 7\n/skill:release Only a patch.\n");
    insta::assert_snapshot!(project.told(&output), @"
    exit 0
    Fixed.
    Released.
    ---
    templates: /fix
    skills: release
    • desk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 100 + 1 tokens · cost 0.0001 · [TIME]
    • desk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 100 + 1 tokens · cost 0.0001 · [TIME]
    ");
    let requests = server.requests();
    assert_eq!(last(&requests[0]), "Fix issue 7.");
    insta::assert_snapshot!(last(&requests[1]), @r#"
    <skill name="release" location=".harness/skills/release/SKILL.md">
    References are relative to .harness/skills/release.

    Run the tests first.
    </skill>

    Only a patch.
    "#);
}

#[test]
fn a_model_is_told_of_skills_and_loads_one() {
    let load = Answer::call("c1", "load_skill", &json!({ "name": "release" }));
    let server = Server::start([Reply::Stream(load), Reply::text("Released.")]);
    let project = project();
    let command = begin(&project, "", &["chat", "harness.yaml", "--base-url", &server.url]);
    let output = talk(command, "Release it.\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Released.\n"), "{}", output.stderr);
    let requests = server.requests();
    assert!(
        instructions(&requests[0]).starts_with("You are the desk.\n\nThe following skills"),
        "{requests:?}"
    );
    assert!(instructions(&requests[0]).contains("<name>release</name>"), "{requests:?}");
    assert!(last(&requests[1]).contains("Run the tests first."), "{requests:?}");
}

#[test]
fn what_cannot_be_used_is_told_with_its_place() {
    let server = Server::start([Reply::text("Hello.")]);
    let project = project();
    project.write(".harness/skills/broken/SKILL.md", "---\nname: broken\ndescription: [\n---\n");
    project.write(".harness/skills/silent/SKILL.md", "Nobody knows when.\n");
    project.write(".harness/skills/deploy/SKILL.md", &RELEASE.replace("name: release", "name: Deploy"));
    project.write(".harness/templates/help.md", "Help me.");
    project.write(".config/harness/templates/fix.md", "Fix something else.");
    let command = begin(&project, "", &["chat", "harness.yaml", "--base-url", &server.url]);
    let output = talk(command, "hello\n");
    insta::assert_snapshot!(project.told(&output), @r"
    exit 0
    Hello.
    ---
    warning: .config/harness/templates/fix.md: skipped: `fix` is already the name of .harness/templates/fix.md
    warning: template `help` skipped: a chat command has this name; rename the file
    templates: /fix
    warning: .harness/skills/broken/SKILL.md: line 3, column 14: invalid YAML: unclosed bracket '['; check indentation and quotes at that place
    warning: .harness/skills/deploy/SKILL.md: the name `Deploy` should be of `a-z`, `0-9` and single hyphens between them
    warning: .harness/skills/deploy/SKILL.md: the name `Deploy` differs from its directory `deploy`
    warning: .harness/skills/silent/SKILL.md: missing `description`: state in the front matter when to use it
    skills: Deploy, release
    • desk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 100 + 1 tokens · cost 0.0001 · [TIME]
    ");
}

#[test]
fn a_folder_that_is_named_must_be_there() {
    let project = Project::plain();
    let refused = |option: &str, folder: &str| {
        let arguments = ["chat", "harness.yaml", "--base-url", "http://127.0.0.1:9", option, folder];
        let output = talk(begin(&project, "", &arguments), "hello\n");
        project.told(&output)
    };
    insta::assert_snapshot!(refused("--skills", "none"), @r"
    exit 2
    ---
    error: cannot read the skills directory none: No such file or directory (os error 2)
      hint: check the path
    ");
    insta::assert_snapshot!(refused("--templates", "look.sh"), @r"
    exit 2
    ---
    error: cannot read the templates directory look.sh: not a directory
      hint: check the path
    ");
}

/// Renames the descriptor, so that a chat that names none is one with a plain assistant.
fn rename_descriptor(project: &Project) {
    fs::rename(project.path().join("harness.yaml"), project.path().join("desk.yaml")).unwrap();
}

/// The beginning of what a model is told in the folder `app` of a project, behind `chat` and these arguments.
#[track_caller]
fn check_context(arguments: &[&str], expected: &[&str]) {
    let server = Server::start([Reply::text("Hello.")]);
    let project = Project::plain();
    rename_descriptor(&project);
    project.write(".git/HEAD", "");
    project.write("AGENTS.md", "Of the repository.\n");
    project.write("app/CLAUDE.md", "Of the app.\n");
    project.write(".config/harness/AGENTS.md", "Of the user.\n");
    let arguments = [&["chat", "--base-url", &server.url], arguments].concat();
    let output = talk(begin(&project, "app", &arguments), "hello\n");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let requests = server.requests();
    let told = instructions(&requests[0]);
    let headings: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, expected, "{told}");
    assert_eq!(output.stderr.contains("context files: "), !expected.is_empty(), "{}", output.stderr);
}

#[test]
fn context_files_are_told_to_a_plain_assistant_and_to_others_when_asked_for() {
    let all = ["~/.config/harness/AGENTS.md", "/AGENTS.md", "/app/CLAUDE.md"];
    check_context(&[], &all);
    check_context(&["--no-context-files"], &[]);
    check_context(&["../desk.yaml"], &[]);
    check_context(&["../desk.yaml", "--context-files"], &all);
    check_context(&["../desk.yaml", "--context-files", "--no-context-files"], &[]);
}

#[test]
fn who_has_a_backend_cannot_load_skills_and_is_not_told_of_them() {
    let project = project();
    project.write("echo.yaml", "version: 1\ncommand: cat\nstdin: \"{system}\"\n");
    let arguments = ["chat", "harness.yaml", "--backend", "command:echo.yaml"];
    let output = talk(begin(&project, "", &arguments), "hello\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "You are the desk.\n"), "{}", output.stderr);
}

#[test]
fn skills_of_the_user_are_for_a_plain_assistant() {
    let server = Server::start([Reply::text("Hello."), Reply::text("Hello.")]);
    let project = Project::plain();
    rename_descriptor(&project);
    project.write(".config/harness/skills/release/SKILL.md", RELEASE);
    talk(begin(&project, "", &["chat", "--base-url", &server.url]), "hello\n");
    talk(begin(&project, "", &["chat", "desk.yaml", "--base-url", &server.url]), "hello\n");
    let requests = server.requests();
    let told: Vec<bool> = requests.iter().map(|request| instructions(request).contains("release")).collect();
    assert_eq!(told, [true, false]);
}
