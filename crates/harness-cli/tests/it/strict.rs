//! Keys and values that nothing reads are errors wherever agents run.

use crate::support::{Project, Running};

const NOWHERE: &str = "http://127.0.0.1:9/v1";

const GATED: &str = "\
runtime: { entry_agent: a }
context: { references: { user.vip: { type: boolean } } }
agents:
  a:
    model: scripted
    instructions_sequence:
      - { text: Secret., where: { context: user.vip } }
";

/// The ways to run agents.
const COMMANDS: [&[&str]; 4] =
    [&["run", "bad.yaml", "hello"], &["chat", "bad.yaml"], &["serve", "bad.yaml"], &["acp", "bad.yaml"]];

#[track_caller]
fn check(descriptor: &str, more: &[&str], expected: &[&str]) {
    for command in COMMANDS {
        let project = Project::plain();
        project.write("bad.yaml", descriptor);
        let arguments = [command, &["--base-url", NOWHERE], more].concat();
        let output = Running::start_with_input(project.command(&arguments), b"").end();
        assert_eq!(output.code, Some(2), "{command:?}: {}{}", output.stdout, output.stderr);
        for text in expected {
            assert!(output.stderr.contains(text), "{command:?}: {}", output.stderr);
        }
    }
}

#[test]
fn fault_25_misspelled_keys_are_errors_of_every_command_that_runs_agents() {
    let gate = GATED.replace("where:", "whre:");
    check(&gate, &[], &["bad.yaml:7:26", "unknown key `whre`", "did you mean `where`?"]);
    let instructions = GATED.replace("instructions_sequence:", "instruction_sequence:");
    check(&instructions, &[], &["bad.yaml:6:5", "unknown key `instruction_sequence`"]);
}

#[test]
fn fault_25_values_of_undeclared_context_paths_are_errors_of_every_command_that_runs_agents() {
    let expected = ["context path `user.vpi` is not declared", "did you mean `user.vip`?"];
    check(GATED, &["--context", "user.vpi=true"], &expected);
}

#[test]
fn fault_25_check_fails_for_misspelled_keys() {
    let project = Project::plain();
    project.write("bad.yaml", &GATED.replace("where:", "whre:"));
    let output = project.harness(&["check", "bad.yaml"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("bad.yaml:7:26: error[descriptor.unknown_key]"), "{}", output.stderr);
}
