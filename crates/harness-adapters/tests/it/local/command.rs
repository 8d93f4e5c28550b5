//! What programs are given, and what is made of their answers.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use harness_adapters::execution::{
    ExecutionCapabilities, ExecutionRequirements, ExecutionStatus, TraceDepth,
};
use harness_adapters::local::{Invocation, LocalCommandAdapter, LocalProgram, OutputFormat};

use harness_core::port::BoxFuture;
use harness_host::process::{Capture, Ended, Ending, Launch, Launcher, ProgramSpec};

use super::{clock, environment, execute, request, shell};

/// Runs a script with the message on stdin.
fn adapter(script: &'static str) -> LocalCommandAdapter {
    adapter_of(shell(), script)
}

fn adapter_of(program: LocalProgram, script: &'static str) -> LocalCommandAdapter {
    LocalCommandAdapter::new(
        "local",
        program,
        move |request| Ok(Invocation::new(["-c", script]).stdin(request.message.text.clone())),
        OutputFormat::plain_text(),
        ExecutionCapabilities::none(),
        clock(),
    )
}

#[track_caller]
fn check(script: &'static str, message: &str, expected: &str) {
    let result = execute(&adapter(script), request(message));
    assert_eq!((result.status, result.text()), (ExecutionStatus::Completed, expected), "{result:?}");
}

#[test]
fn stdin_is_written_and_closed() {
    // W20
    check("cat >/dev/null; echo done", "hello", "done");
    check("cat", "hello", "hello");
    check("wc -c | tr -d ' '", &"x".repeat(200 * 1024), "204800");
}

#[test]
fn a_program_may_close_its_stdin_unread() {
    // W32
    check("exec <&-; echo closed", &"x".repeat(1 << 20), "closed");
}

#[test]
fn output_is_read_as_utf_8_whatever_it_is() {
    // W31
    check(r"printf '\305'; printf '\274'", "", "\u{17c}");
    check(r"printf 'a\377b'", "", "a\u{fffd}b");
}

#[test]
fn it_sees_the_variables_that_it_was_given_and_no_others() {
    // W25
    check("echo \"$PATH|$OTHER|$MORE\"", "", "/usr/bin:/bin||");
    let mut passing = shell();
    passing.spec = passing.spec.pass(&environment(), ["OTHER"]).env("MORE", "more");
    let result = execute(&adapter_of(passing, "echo \"$OTHER|$MORE\""), request(""));
    assert_eq!(result.text(), "other|more");
}

#[test]
fn a_long_output_keeps_its_beginning_and_its_end() {
    // W22
    let mut bounded = shell();
    bounded.limits = bounded.limits.kept(64, 64);
    let result = execute(&adapter_of(bounded, "seq 1 100000"), request(""));
    let text = result.text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("99999\n100000"), "{text}");
    assert!(text.contains("[... 588831 bytes left out ...]"), "{text}");
}

#[test]
fn children_that_hold_the_output_do_not_delay_the_answer() {
    let result = execute(&adapter("(trap '' TERM; while :; do sleep 1000; done) & echo $!"), request(""));
    assert_eq!(result.status, ExecutionStatus::Completed);
    assert!(super::gone(result.text()), "the child is left");
}

#[test]
fn a_trace_says_that_a_request_was_degraded() {
    let mut asked = request("");
    let mut wants = ExecutionRequirements::default();
    wants.trace_depth = Some(TraceDepth::Detailed);
    for (requirements, degraded) in [(None, false), (Some(wants), true)] {
        asked.requirements = requirements;
        let result = execute(&adapter("echo done"), asked.clone());
        assert_eq!(result.trace.unwrap().summary.degraded, Some(degraded));
        assert_eq!(result.degradation.is_some(), degraded);
    }
}

/// Runs nothing: answers with the command line and the input.
struct Told;

impl Launcher for Told {
    async fn launch(
        &self,
        launch: Launch<'_>,
        _: BoxFuture<'_, ()>,
        tap: &mut (dyn FnMut(&[u8]) + Send),
    ) -> io::Result<Ended> {
        if launch.program.cwd.is_some() {
            return Err(io::Error::other("the container is gone"));
        }
        let stdin = launch.stdin.unwrap_or_default();
        let (program, stdin) = (launch.program.name(), String::from_utf8_lossy(&stdin));
        let told = format!("{program} {:?} {stdin}", launch.program.args);
        let mut stdout = Capture::new(launch.limits.stdout);
        stdout.push(told.as_bytes());
        tap(told.as_bytes());
        Ok(Ended::new(Ending::Exited(ExitStatus::from_raw(0)), stdout, Capture::new(0)))
    }
}

#[test]
fn an_application_decides_where_a_program_runs() {
    let program = || LocalProgram::new(ProgramSpec::new("agent").args(["--fast"])).launcher(Told);
    let result = execute(&adapter_of(program(), "work"), request("hello"));
    assert_eq!(result.text(), r#"agent ["--fast", "-c", "work"] hello"#, "{result:?}");
    let mut elsewhere = program();
    elsewhere.spec.cwd = Some("/srv".into());
    let result = execute(&adapter_of(elsewhere, "work"), request("hello"));
    assert_eq!(result.status, ExecutionStatus::Failed);
    assert!(format!("{result:?}").contains("the container is gone"), "{result:?}");
}
