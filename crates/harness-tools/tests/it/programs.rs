//! Programs that code of a host runs.

use std::time::Duration;

use harness_core::{Cancel, Millis};
use harness_host::{Process, ProcessFault, ProcessOptions, ProcessOutput, Shell, Subprocess};
use harness_tools::SystemPrograms;

use crate::stopping::{Fifo, all_gone};
use crate::support::{LONG, block_on, environment};

/// Says on the fifo `$FIFO` that it is up, and hangs with a child that hangs, too; deaf to SIGTERM.
const DEAF: &str = "trap '' TERM; echo first; exec 3>\"$FIFO\"; sleep 1000 & echo up >&3; while :; do wait; sleep 1000; done";

fn programs() -> SystemPrograms {
    SystemPrograms::new("/").env_from(&environment()).grace(Duration::from_millis(50))
}

fn options() -> ProcessOptions {
    ProcessOptions::new().timeout(Millis::from(LONG))
}

fn told(ended: Result<ProcessOutput, ProcessFault>) -> String {
    match ended {
        Ok(output) => {
            let cut = if output.truncated { " truncated" } else { "" };
            format!("{:?}{cut} {:?} {:?}", output.exit_code, output.stdout, output.stderr)
        }
        Err(fault) => {
            let printed = fault.output().map(|output| output.stdout.clone());
            format!("{}: {fault} {printed:?}", fault.kind())
        }
    }
}

#[track_caller]
fn check(command: &str, options: &ProcessOptions, expected: &str) {
    let shell = block_on(programs().exec(command, options, &Cancel::never()));
    assert_eq!(told(shell), expected, "by the shell");
    let process = block_on(async {
        let args = ["-c".to_owned(), command.to_owned()];
        programs().spawn("/bin/sh", &args, options, &Cancel::never()).await?.wait().await
    });
    assert_eq!(told(process), expected, "as a process");
}

#[test]
fn a_command_line_gives_its_exit_code_and_what_it_printed() {
    check("echo out; echo err >&2; exit 3", &options(), r#"Some(3) "out\n" "err\n""#);
    check("nothing-of-that-name 2>/dev/null", &options(), r#"Some(127) "" """#);
    check("kill -9 $$", &options(), r#"None "" """#);
}

#[test]
fn it_gets_its_folder_its_variables_and_its_input() {
    let options = options().cwd("/usr/bin/").env("GREETING", "hello").stdin("bob\n");
    check("pwd; read name; echo $GREETING $name $SECRET", &options, r#"Some(0) "/usr/bin\nhello bob\n" """#);
}

#[test]
fn what_it_prints_is_bounded() {
    let expected = r#"Some(0) truncated "1234\n[... 2 bytes left out ...]\n7890" """#;
    check("printf 1234567890", &options().max_output(8), expected);
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    let limit = Millis(2_000);
    let expected = "timeout: `/bin/sh` did not finish within 2.0 s and was stopped Some(\"half\")";
    check("printf half; exec sleep 1000", &options().timeout(limit), expected);
}

#[test]
fn a_program_that_prints_without_end_is_stopped() {
    let ended = block_on(programs().exec("yes", &options().max_output(4), &Cancel::never()));
    let fault = ended.unwrap_err();
    assert_eq!(fault.to_string(), "`/bin/sh` printed more than 134217728 bytes and was stopped");
    let output = fault.output().unwrap();
    assert!(output.truncated && output.stdout.starts_with("y\n\n[... "), "{output:?}");
}

#[test]
fn what_cannot_be_started_says_why() {
    let started = |program: &str, cwd: &str| {
        let spawned = block_on(programs().spawn(program, &[], &options().cwd(cwd), &Cancel::never()));
        told(spawned.map(|_| ProcessOutput::default()))
    };
    assert_eq!(
        started("no-such-program", "/"),
        "spawn_error: `no-such-program` was not started: no program of that name is in PATH; install it, or \
         write its path in `command` None"
    );
    assert_eq!(
        started("true", "/no/such/folder"),
        "spawn_error: `true` was not started: its `cwd`, `/no/such/folder` below `/`, cannot be used: No such \
         file or directory (os error 2) None"
    );
}

#[test]
fn a_folder_outside_of_the_root_is_refused() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("inside")).unwrap();
    std::os::unix::fs::symlink("/usr", root.path().join("link")).unwrap();
    let programs = SystemPrograms::new(root.path()).env_from(&environment());
    let run = |cwd: &str| block_on(programs.exec("basename $PWD", &options().cwd(cwd), &Cancel::never()));
    assert_eq!(told(run("/inside")), r#"Some(0) "inside\n" """#);
    for cwd in ["/link", "/../..", "/inside/../../.."] {
        assert_eq!(run(cwd).unwrap_err().kind(), "spawn_error", "{cwd}");
    }
}

#[test]
fn cancelling_ends_a_command_line_with_all_that_it_started() {
    let (fifo, cancel) = (Fifo::new(), Cancel::new());
    let options = options().env("FIFO", fifo.path.to_str().unwrap());
    block_on(async {
        let programs = programs();
        let (ended, pipe) = tokio::join!(programs.exec(DEAF, &options, &cancel), async {
            let pipe = fifo.up().await;
            cancel.cancel();
            pipe
        });
        let expected = "cancelled: `/bin/sh` was stopped: the run was cancelled Some(\"first\\n\")";
        assert_eq!(told(ended), expected);
        all_gone(pipe).await;
        let late = programs.exec("touch /no/such/file", &options, &cancel).await;
        assert_eq!(late.unwrap_err().kind(), "cancelled");
    });
}

/// Starts a program that hangs, ends it in one way, and waits until all of it is gone.
fn ended(end: impl AsyncFnOnce(Box<dyn Process>, &Cancel)) {
    let (fifo, cancel) = (Fifo::new(), Cancel::new());
    let options = options().env("FIFO", fifo.path.to_str().unwrap());
    let args = ["-c".to_owned(), DEAF.to_owned()];
    block_on(async {
        let process = programs().spawn("/bin/sh", &args, &options, &cancel).await.unwrap();
        let pipe = fifo.up().await;
        assert_eq!(process.result(), None);
        end(process, &cancel).await;
        all_gone(pipe).await;
    });
}

#[test]
fn a_process_ends_with_its_cancel_when_it_is_killed_and_with_its_handle() {
    ended(async |process, cancel| {
        cancel.cancel();
        assert_eq!(process.wait().await.unwrap_err().kind(), "cancelled");
    });
    ended(async |process, _| {
        process.kill();
        let fault = process.wait().await.unwrap_err();
        assert_eq!((fault.kind(), process.result()), ("cancelled", Some(Err(fault.clone()))));
        assert_eq!(process.printed(), "first\n");
    });
    ended(async |process, _| drop(process));
}

#[test]
fn what_a_process_prints_is_seen_while_it_runs() {
    let fifo = Fifo::new();
    let options = options().env("FIFO", fifo.path.to_str().unwrap());
    let script = "echo ready; read line < \"$FIFO\"; echo got $line";
    block_on(async {
        let args = ["-c".to_owned(), script.to_owned()];
        let process = programs().spawn("/bin/sh", &args, &options, &Cancel::never()).await.unwrap();
        while process.printed() != "ready\n" {
            tokio::task::yield_now().await;
        }
        let path = fifo.path.clone();
        tokio::task::spawn_blocking(move || std::fs::write(path, "it\n")).await.unwrap().unwrap();
        assert_eq!(told(process.wait().await), r#"Some(0) "ready\ngot it\n" """#);
    });
}
