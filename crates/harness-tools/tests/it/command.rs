//! Programs that end by themselves.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use harness_core::Json;
use harness_core::tool::{RetryClass, Tool, ToolDef};
use harness_host::process::ProgramSpec;
use harness_tools::{CommandSpec, CommandTool, Input};

use crate::support::{block_on, call, cx, environment, script, told, tool, with};

/// Runs a script with the arguments `{"n":1}`.
#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(told(&call(script(text, &[]), r#"{"n":1}"#)), expected);
}

#[test]
fn stdout_is_the_result() {
    check("echo '  two'; echo lines", "success exit 0\n  two\nlines");
    check("cat", "success exit 0\n{\"n\":1}");
    check("read -r line; printf %s \"$line\"", "success exit 0\n{\"n\":1}");
    check("true", "success exit 0\n(no output)");
}

#[test]
fn a_json_object_is_kept_as_data_too() {
    let data = |text| call(script(text, &[]), "{}").structured;
    assert_eq!(data(r#"echo '{"b": 1.10, "a": 2}'"#), Some(Json::parse(r#"{"b":1.10,"a":2}"#).unwrap()));
    assert_eq!(data("echo '[1]'"), None);
    assert_eq!(data("echo '{not json}'"), None);
}

#[test]
fn stderr_of_a_success_is_for_people_only() {
    let outcome = call(script("echo note >&2; echo result", &[]), "{}");
    assert_eq!(told(&outcome), "success exit 0\nresult");
    assert_eq!(outcome.metadata, Some(Json::parse(r#"{"stderr":"note"}"#).unwrap()));
}

#[test]
fn a_failing_program_is_an_error_result_with_all_that_it_said() {
    check(
        "echo no such order >&2; echo partial; exit 3",
        "failed nonzero_exit exit 3\n`sh` exited with code 3\n\nstderr:\nno such order\n\nstdout:\npartial",
    );
    check("exit 1", "failed nonzero_exit exit 1\n`sh` exited with code 1");
    check("kill -9 $$", "failed killed_by_signal\n`sh` was killed by signal 9");
}

#[test]
fn a_temporary_failure_may_be_retried_where_the_class_allows_it() {
    let told_of = |class| {
        let def = ToolDef::new("tool", "").with_class(class);
        let tool = CommandTool::new(def, script("exit 75", &[])).unwrap();
        told(&block_on(tool.call(cx("{}"))))
    };
    assert_eq!(told_of(RetryClass::Pure), "failed nonzero_exit exit 75 retryable\n`sh` exited with code 75");
    assert_eq!(
        told_of(RetryClass::Idempotent),
        "failed nonzero_exit exit 75 retryable\n`sh` exited with code 75"
    );
    assert_eq!(told_of(RetryClass::Unsafe), "failed nonzero_exit exit 75\n`sh` exited with code 75");
}

#[test]
fn a_program_sees_only_the_variables_meant_for_it() {
    let spec = CommandSpec::new(ProgramSpec::new("env").pass(&environment(), []).env("MODE", "test"))
        .input(Input::None);
    let outcome = call(spec, "{}");
    let text = outcome.content.first().and_then(|block| block.as_text()).unwrap();
    let expected = [
        "HARNESS_CALL_ID=call-7",
        "HARNESS_IDEMPOTENCY_KEY=-/-/0/0/call-7",
        "MODE=test",
        "PATH=/usr/local/bin:/usr/bin:/bin",
    ];
    assert_eq!(text.lines().collect::<BTreeSet<_>>(), BTreeSet::from(expected));
}

#[test]
fn debug_output_shows_no_values_of_variables() {
    let spec = CommandSpec::new(ProgramSpec::new("env").env("TOKEN", "s3cret"));
    let text = format!("{:?}", tool(spec));
    assert!(text.contains("TOKEN") && !text.contains("s3cret"), "{text}");
}

#[test]
fn arguments_are_passed_as_they_are() {
    let program = ProgramSpec::new("printf").args(["%s|", "a b", "$HOME", ";", "*"]).pass(&environment(), []);
    assert_eq!(told(&call(CommandSpec::new(program), "{}")), "success exit 0\na b|$HOME|;|*|");
}

#[test]
fn input_none_is_an_empty_stdin() {
    let spec = script("cat; echo end", &[]).input(Input::None);
    assert_eq!(told(&call(spec, r#"{"n":1}"#)), "success exit 0\nend");
}

#[test]
fn a_program_need_not_read_its_arguments() {
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000_000));
    assert_eq!(told(&call(script("exec 0<&-; echo done", &[]), &long)), "success exit 0\ndone");
}

#[test]
fn arguments_and_output_longer_than_a_pipe_do_not_block_each_other() {
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000_000));
    let outcome = call(with(script("cat", &[]), |spec| spec.limits.stdout = 2_000_000), &long);
    assert_eq!(told(&outcome), format!("success exit 0\n{long}"));
}

#[test]
fn arguments_that_are_no_object_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let spec = || script("touch \"$1\"", &[&mark]);
    assert_eq!(
        told(&call(spec(), "[1]")),
        "failed invalid_arguments\nthe arguments are wrong: expected an object, not a list"
    );
    assert!(!mark.exists());
    assert!(tool(spec()).check(&Json::null()).is_err());
}

#[cfg(not(feature = "schema-validation"))]
#[test]
fn without_validation_a_schema_is_told_and_not_checked() {
    let schema = Json::parse(r#"{"type":"object","required":["n"]}"#).unwrap();
    let def = ToolDef::new("tool", "").with_schema(schema.clone());
    let tool = CommandTool::new(def, script("echo ran", &[])).unwrap();
    assert_eq!(tool.def().input_schema, Some(schema));
    assert_eq!(told(&block_on(tool.call(cx("{}")))), "success exit 0\nran");
}

#[test]
fn a_program_that_cannot_be_started_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    std::fs::write(folder.path().join("plain"), "no program").unwrap();
    let script = folder.path().join("script");
    make_program(&script, "#!/no/such/interpreter");

    let told_of = |program: ProgramSpec| {
        told(&call(CommandSpec::new(program.pass(&environment(), [])), "{}")).replace(&dir, "[DIR]")
    };
    insta::assert_snapshot!(told_of(ProgramSpec::new("no-such-program")), @"
    failed spawn_error
    `no-such-program` could not be started: no program of that name is in PATH; install it, or write its path in `command`
    ");
    insta::assert_snapshot!(told_of(ProgramSpec::new(folder.path().join("missing"))), @"
    failed spawn_error
    `[DIR]/missing` could not be started: there is no such file; correct its `command`
    ");
    insta::assert_snapshot!(told_of(ProgramSpec::new(folder.path().join("plain"))), @"
    failed spawn_error
    `[DIR]/plain` could not be started: it is not executable; make it so with `chmod +x`
    ");
    insta::assert_snapshot!(told_of(ProgramSpec::new(&script)), @"
    failed spawn_error
    `[DIR]/script` could not be started: the interpreter that its first line names does not exist; correct its `#!` line
    ");
    insta::assert_snapshot!(told_of(ProgramSpec::new("sh").cwd(folder.path().join("gone"))), @"
    failed spawn_error
    `sh` could not be started: its directory [DIR]/gone does not exist; correct its `cwd`
    ");
    insta::assert_snapshot!(told_of(ProgramSpec::new("sh").args(["x".repeat(5_000_000)])), @"
    failed spawn_error
    `sh` could not be started: its arguments and environment are too long for this system; pass long values on stdin
    ");
}

/// Written by a process of its own: a file that this process has open for writing, even in a child
/// that another test is just starting, cannot be executed.
fn make_program(file: &Path, text: &str) {
    let made = script("echo \"$2\" > \"$1\" && chmod +x \"$1\"", &[file, Path::new(text)]);
    assert_eq!(call(made, "{}").exit_code, Some(0));
}

#[test]
fn binary_output_is_counted_and_not_shown() {
    insta::assert_snapshot!(told(&call(script(r"printf '\377\376\000\001'", &[]), "{}")), @"
    failed binary_output exit 0
    `sh` exited with code 0, and its result is binary output of 4 bytes, which cannot be shown; make it print UTF-8 text
    ");
    insta::assert_snapshot!(told(&call(script(r"printf '\377' >&2; exit 2", &[]), "{}")), @"
    failed nonzero_exit exit 2
    `sh` exited with code 2

    stderr:
    (binary output of 1 bytes)
    ");
}

#[test]
fn a_program_that_prints_100_mb_is_read_to_its_end_and_mostly_left_out() {
    let spec = script("printf begin; head -c 99999992 /dev/zero | tr '\\0' x; printf end", &[]);
    let outcome = call(with(spec, |spec| spec.limits.stdout = 256), "{}");
    let expected = format!(
        "success exit 0\nbegin{}\n[... 99999744 bytes left out ...]\n{}end",
        "x".repeat(123),
        "x".repeat(125)
    );
    assert_eq!(told(&outcome), expected);
}

#[test]
fn a_tool_is_usable_from_many_tasks_at_once() {
    let tool = Arc::new(tool(script("cat", &[])));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let tool = Arc::clone(&tool);
                tokio::spawn(async move { told(&tool.call(cx(&format!(r#"{{"n":{n}}}"#))).await) })
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), format!("success exit 0\n{{\"n\":{n}}}"));
        }
    });
}
