//! Programs under a supervisor: what escapes a process group does not escape it.
#![cfg(target_os = "linux")]

use std::future::pending;
use std::os::unix::process::ExitStatusExt as _;

use harness_host::process::{Ended, Ending, Limits};
use tokio::sync::mpsc::unbounded_channel;

use crate::support::{LONG, block_on, both_ways, gone, script};

/// Says its number, then sleeps without any of the program's pipes.
const SLEEPER: &str = "sh -c 'echo $$; exec sleep 77 </dev/null >/dev/null 2>&1'";

/// The same, deaf to SIGTERM.
const DEAF: &str = "sh -c 'trap \"\" TERM; echo $$; exec sleep 77 </dev/null >/dev/null 2>&1'";

fn run(text: &str) -> Ended {
    block_on(script(text, "", Limits::new(LONG), pending(), |_: &[u8]| {})).unwrap()
}

/// Runs a script that prints the number of a process which must not outlive the run.
#[track_caller]
fn check_gone(text: &str) {
    harness_host::process::supervise_by(env!("CARGO_BIN_EXE_harness-supervisor"));
    let ended = run(text);
    assert!(matches!(ended.ending, Ending::Exited(status) if status.success()), "{:?}", ended.ending);
    let printed = ended.stdout.lossy();
    let pid: u32 = printed.trim().parse().unwrap();
    // It is not looked for again and again: when the run has ended, it is gone.
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
}

#[test]
fn fault_08_a_process_in_a_session_of_its_own_does_not_outlive_its_call() {
    check_gone(&format!("{{ setsid {SLEEPER} & }} | head -n 1"));
    check_gone(&format!("{{ setsid {DEAF} & }} | head -n 1"));
}

#[test]
fn fault_08_a_process_that_was_disowned_does_not_outlive_its_call() {
    let background = format!("set -m; nohup {SLEEPER} 2>/dev/null & disown");
    check_gone(&format!("bash -c '{}' | head -n 1", background.replace('\'', r"'\''")));
}

#[test]
fn fault_08_a_double_fork_does_not_outlive_its_call() {
    check_gone(&format!("( ( setsid {SLEEPER} & ) & ) | head -n 1"));
    check_gone(&format!("( ( setsid {DEAF} & ) & ) | head -n 1"));
}

#[test]
fn a_dropped_run_leaves_nothing() {
    harness_host::process::supervise_by(env!("CARGO_BIN_EXE_harness-supervisor"));
    let pid = block_on(async {
        let (sender, mut printed) = unbounded_channel();
        let tap = move |part: &[u8]| sender.send(String::from_utf8_lossy(part).into_owned()).unwrap();
        let text = format!("setsid {DEAF} & wait; sleep 77");
        let mut run = Box::pin(script(&text, "", Limits::new(LONG), pending(), tap));
        tokio::select! {
            _ = &mut run => panic!("it ended by itself"),
            printed = printed.recv() => printed.unwrap(),
        }
    });
    assert!(gone(pid.trim()));
}

#[test]
fn an_exit_is_told_as_it_was() {
    both_ways(|| {
        let status = |text: &str| match run(text).ending {
            Ending::Exited(status) => (status.code(), status.signal()),
            ending @ (Ending::TimedOut | Ending::Cancelled | Ending::Flooded) => panic!("{ending:?}"),
        };
        assert_eq!(status("exit 0"), (Some(0), None));
        assert_eq!(status("exit 255"), (Some(255), None));
        assert_eq!(status("kill -KILL $$"), (None, Some(9)));
        assert_eq!(status("kill -TERM $$"), (None, Some(15)));
        assert_eq!(status("kill -USR1 $$"), (None, Some(10)));
    });
}

#[test]
fn a_program_inherits_the_same_with_and_without_a_supervisor() {
    let seen = std::cell::RefCell::new(Vec::new());
    both_ways(|| {
        // The group, the open files and the signals of the program itself.
        let ended = run(
            "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo 1; ls /proc/self/fd; exec grep ^Sig /proc/self/status",
        );
        seen.borrow_mut().push(ended.stdout.lossy());
    });
    let seen = seen.into_inner();
    assert!(seen[0].starts_with("1\n0\n1\n") && seen[0].contains("SigIgn"), "{}", seen[0]);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn its_output_ends_when_it_closes_it() {
    both_ways(|| {
        // The script goes on when the reader has seen the end of its output.
        let (sender, mut printed) = unbounded_channel();
        let unwanted = async move { while printed.recv().await.is_some() {} };
        let tap = move |part: &[u8]| sender.send(part.to_vec()).unwrap();
        let text = "echo; exec >/dev/null 2>&1; exec sleep 77";
        let ended = block_on(script(text, "", Limits::new(LONG), unwanted, tap)).unwrap();
        assert_eq!(ended.ending, Ending::Cancelled, "the tap was dropped at the end of the output");
    });
}

#[test]
fn a_program_that_kills_its_supervisor_ends_too() {
    harness_host::process::supervise_by(env!("CARGO_BIN_EXE_harness-supervisor"));
    // Stdin comes after the start was reported. What is printed may be lost with the supervisor; a file is not.
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let text = format!("read -r go; echo $$ > '{}'; kill -KILL $PPID; exec sleep 77", pid.display());
    let error = block_on(script(&text, "go\n", Limits::new(LONG), pending(), |_: &[u8]| {})).unwrap_err();
    assert_eq!(error.to_string(), "the supervisor of the program was killed");
    assert!(gone(std::fs::read_to_string(pid).unwrap().trim()));
}

#[test]
fn a_supervisor_that_was_stopped_does_not_hold_up_a_run() {
    harness_host::process::supervise_by(env!("CARGO_BIN_EXE_harness-supervisor"));
    let (sender, mut printed) = unbounded_channel();
    let tap = move |_: &[u8]| sender.send(()).unwrap();
    let unwanted = async move {
        printed.recv().await;
    };
    let text = "kill -STOP $PPID; echo $$; exec sleep 77";
    let ended = block_on(script(text, "", Limits::new(LONG), unwanted, tap)).unwrap();
    assert_eq!(ended.ending, Ending::Cancelled);
    assert!(gone(ended.stdout.lossy().trim()));
}
