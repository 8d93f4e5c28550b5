//! The shell tool: real programs, and what a model reads of them.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use harness_core::tool::{Tool, ToolCx};
use harness_core::{Cancel, Json};
use harness_host::process::Limits;
use harness_tools::{ShellPolicy, ShellTool};

use crate::support::{LONG, block_on, environment, told, with};

fn patient(tool: ShellTool) -> ShellTool {
    with(tool.without_sandbox().env_from(&environment()), |tool| tool.spec.limits.time = LONG)
}

fn shell() -> ShellTool {
    patient(ShellTool::new(ShellPolicy::any(), "/"))
}

fn cx(arguments: &serde_json::Value) -> ToolCx {
    crate::support::cx(&arguments.to_string())
}

/// Runs a command line.
#[track_caller]
fn check(tool: &ShellTool, command: &str, expected: &str) {
    assert_eq!(told(&block_on(tool.call(cx(&serde_json::json!({ "command": command }))))), expected);
}

/// Runs a script of a real shell, whose text the tool's own words carry as one argument.
fn script(tool: &ShellTool, text: &str) -> String {
    let command = format!("sh -c '{text}'");
    told(&block_on(tool.call(cx(&serde_json::json!({ "command": command })))))
}

#[test]
fn a_command_runs_without_a_shell() {
    check(
        &shell(),
        "echo 'a; b | c > d' \"$\\{x}\"",
        "failed command_not_allowed\nthe command has a substitution at character 22; only a plain command can be run: a program and its arguments, without pipes, lists, redirections, substitutions, variables and patterns (quote them to mean them literally)",
    );
    check(&shell(), "echo 'a; b | $c > d *'", "success exit 0\na; b | $c > d *");
    check(&shell(), "pwd", "success exit 0\n/");
    check(&shell(), "true", "success exit 0\n(no output)");
}

#[test]
fn another_exit_code_is_a_result() {
    check(&shell(), "false", "success exit 1\nexit code 1");
    assert_eq!(
        script(&shell(), "echo out; echo err >&2; exit 3"),
        "success exit 3\nexit code 3\n\nout\n\nstderr:\nerr"
    );
    assert_eq!(script(&shell(), "echo err >&2"), "success exit 0\nstderr:\nerr");
    check(
        &shell(),
        "no-such-program",
        "failed spawn_error\n`no-such-program` could not be started: no program of that name is in PATH; install it, or write its path in `command`",
    );
}

#[test]
fn a_program_gets_no_more_of_the_environment_than_it_is_given() {
    let told = script(
        &with(shell(), |tool| tool.spec.program.env.set("MODE", "fast")),
        "echo ${SECRET-none} $MODE $HARNESS_CALL_ID",
    );
    assert_eq!(told, "success exit 0\nnone fast call-7");
}

#[test]
fn what_was_printed_before_the_timeout_is_kept() {
    let limits = Limits::new(Duration::from_secs(2)).grace(Duration::from_millis(100));
    let tool = with(shell(), |tool| tool.spec.limits = limits);
    // The child ignores SIGTERM and holds the pipe: it does not hang the call.
    let told = script(&tool, "trap \"\" TERM; echo begun; sleep 1000 & wait; sleep 1000");
    let expected = "timeout timeout\n`sh` did not finish within 2.0 s and was stopped; if it needs more time, raise \
                    its `timeout`\n\nstdout:\nbegun";
    assert_eq!(told, expected);
}

#[test]
fn children_that_hold_the_pipes_do_not_hang_the_call() {
    assert_eq!(script(&shell(), "sleep 1000 & echo done"), "success exit 0\ndone");
}

#[test]
fn long_output_keeps_its_beginning_and_its_end() {
    check(
        &with(shell(), |tool| tool.spec.limits = tool.spec.limits.kept(256, 256)),
        "seq 1000",
        &format!(
            "success exit 0\n{}\n[... 3637 bytes left out ...]\n69\n{}",
            (1..=45).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n46",
            (970..=999).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n1000",
        ),
    );
}

#[test]
fn only_what_is_allowed_runs() {
    let folder = tempfile::tempdir().unwrap();
    let policy = ShellPolicy::allowing(["echo", "touch a"]).unwrap();
    let tool = patient(ShellTool::new(policy, folder.path()));
    check(&tool, "touch a", "success exit 0\n(no output)");
    check(
        &tool,
        "touch b",
        "failed command_not_allowed\n`touch b` is not allowed; allowed are `echo` and `touch a`",
    );
    for escape in [
        "echo x; touch c",
        "echo x && touch c",
        "echo `touch c`",
        "echo $(touch c)",
        "echo x | touch c",
        "echo x\ntouch c",
        "echo x > c",
        "A=1 touch c",
    ] {
        let outcome = block_on(tool.call(cx(&serde_json::json!({ "command": escape }))));
        assert_eq!(outcome.error.unwrap().code, "command_not_allowed", "{escape}");
    }
    let made: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(made, ["a"]);
}

#[test]
fn a_folder_below_the_usual_one_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("out")).unwrap();
    let tool = patient(ShellTool::new(ShellPolicy::any(), folder.path()));
    let run =
        |cwd: &str| told(&block_on(tool.call(cx(&serde_json::json!({ "command": "pwd", "cwd": cwd })))));
    let inner = folder.path().canonicalize().unwrap().join("inner");
    assert_eq!(run("inner"), format!("success exit 0\n{}", inner.display()));
    for outside in ["..", "/", "inner/../..", "a\0"] {
        assert_eq!(
            run(outside),
            "failed invalid_input\ninput.cwd must be a directory inside the default one"
        );
    }
    assert_eq!(run("out"), "failed invalid_input\ninput.cwd `out` is not a directory inside the default one");
    assert!(run("none").starts_with("failed invalid_input\ninput.cwd `none` cannot be used: "));
}

#[test]
fn wrong_arguments_and_a_call_that_nobody_wants_start_nothing() {
    let tool = shell();
    let run = |arguments| told(&block_on(tool.call(cx(&arguments))));
    assert_eq!(run(serde_json::json!({})), "failed invalid_input\ninput.command must be a string");
    assert_eq!(
        run(serde_json::json!({ "command": 7 })),
        "failed invalid_input\ninput.command must be a string"
    );
    let long = format!("echo {}", "x".repeat(40_000));
    assert_eq!(
        run(serde_json::json!({ "command": long })),
        "failed invalid_input\ninput.command has 40005 bytes; it may have 32768"
    );
    let mut unwanted = cx(&serde_json::json!({ "command": "echo x" }));
    unwanted.cancel = Cancel::new();
    unwanted.cancel.cancel();
    assert!(told(&block_on(tool.call(unwanted))).starts_with("cancelled cancelled"));
}

#[test]
fn nobody_is_asked_to_approve_what_is_not_allowed() {
    let tool = ShellTool::new(ShellPolicy::allowing(["ls"]).unwrap(), "/").without_sandbox();
    assert!(tool.def().requires_approval && tool.def().sequential);
    assert!(!tool.clone().without_approval().def().requires_approval);
    let fault = tool.check(&Json::parse(r#"{"command":"rm x"}"#).unwrap()).unwrap_err();
    assert_eq!(fault.to_string(), "argument `command` is wrong: `rm` is not allowed; allowed are `ls`");
    let tool: Arc<dyn harness_core::tool::DynTool> = Arc::new(tool);
    assert!(tool.check_dyn(&Json::parse(r#"{"command":"ls -l"}"#).unwrap()).is_ok());
}

/// Short lines of every kind of character that a shell knows, always the same ones.
fn lines() -> Vec<String> {
    let alphabet: Vec<char> = "aab  '\"\\$`|&;<>(){}*?[]~#=!^-%:,é\t".chars().collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    (0..30_000).map(|_| (0..=next(7)).map(|_| alphabet[next(alphabet.len())]).collect()).collect()
}

#[test]
fn what_is_accepted_means_the_same_to_a_real_shell() {
    let accepted: Vec<(String, Vec<String>)> = lines()
        .into_iter()
        .filter_map(|line| Some((line.clone(), ShellPolicy::any().check(&line).ok()?)))
        .collect();
    assert!(accepted.len() > 2_000, "{}", accepted.len());
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("lines");
    let text = accepted.iter().map(|(line, _)| format!("printf '%s\\001' {line}\nprintf '\\002'\n"));
    fs::write(&script, text.collect::<String>()).unwrap();
    let tool = patient(ShellTool::new(ShellPolicy::any(), folder.path()));
    let outcome = block_on(
        with(tool, |tool| tool.spec.limits.stdout = 1 << 24)
            .call(cx(&serde_json::json!({ "command": "sh lines" }))),
    );
    let printed = outcome.content[0].as_text().unwrap().split('\u{2}');
    for ((line, words), printed) in accepted.iter().zip(printed) {
        let seen: Vec<&str> = printed.split_terminator('\u{1}').collect();
        assert_eq!(seen, *words, "{line}");
    }
}

#[test]
fn fault_10_git_takes_no_written_folder_for_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join("git");
    fs::write(&git, "#!/bin/sh\nenv | grep GIT_ | sort\n").unwrap();
    fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = format!("{} status", git.display());
    check(
        &shell(),
        &command,
        "success exit 0\nGIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=safe.bareRepository\nGIT_CONFIG_VALUE_0=explicit",
    );
    check(
        &with(shell(), |tool| tool.spec.program.env.set("GIT_CONFIG_COUNT", "0")),
        &command,
        "success exit 0\nGIT_CONFIG_COUNT=0",
    );
}
