//! Programs that have to be stopped, and what they leave behind.
//!
//! A program tells through a fifo that it is up, and everything that it started holds the fifo open. So
//! the end of the fifo is reached when, and only when, all of it is gone.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::{BoxFuture, Clock};
use harness_core::tool::{Tool, ToolOutcome};
use harness_core::{Cancel, Time};
use harness_host::process::ProgramSpec;
use harness_tools::CommandSpec;

use crate::support::{LONG, block_on, call, cx, environment, script, told, tool, with};

/// Prints `first`, says on the fifo `$1` that it is up, and hangs with a child that hangs, too.
const HANGS: &str = "echo first; exec 3>\"$1\"; sleep 1000 & echo up >&3; wait";

/// The same, deaf to SIGTERM.
const DEAF: &str =
    "trap '' TERM; echo first; exec 3>\"$1\"; sleep 1000 & echo up >&3; while :; do wait; sleep 1000; done";

pub(crate) struct Fifo {
    pub(crate) path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let made = CommandSpec::new(ProgramSpec::new("mkfifo").args([&path]).pass(&environment(), []));
        assert_eq!(call(made, "{}").exit_code, Some(0));
        Self { path, _folder: folder }
    }

    /// Waits until the program is up.
    pub(crate) async fn up(&self) -> BufReader<File> {
        let path = self.path.clone();
        in_time(move || {
            let mut reader = BufReader::new(File::open(path).unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
            reader
        })
        .await
    }
}

/// Waits until nothing of the program is left.
pub(crate) async fn all_gone(mut fifo: BufReader<File>) {
    in_time(move || assert_eq!(fifo.read_to_end(&mut Vec::new()).unwrap(), 0)).await;
}

async fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::time::timeout(LONG, tokio::task::spawn_blocking(work)).await.expect("in time").unwrap()
}

/// Runs a script, cancels it when it is up, and waits until all of it is gone.
fn cancelled(text: &str, grace: Duration) -> ToolOutcome {
    let fifo = Fifo::new();
    let tool = tool(with(script(text, &[&fifo.path]), |spec| spec.limits.grace = grace));
    let mut cx = cx("{}");
    cx.cancel = Cancel::new();
    let cancel = cx.cancel.clone();
    block_on(async {
        let (outcome, pipe) = tokio::join!(tool.call(cx), async {
            let pipe = fifo.up().await;
            cancel.cancel();
            pipe
        });
        all_gone(pipe).await;
        outcome
    })
}

/// A script that may take two seconds.
fn brief(text: &str) -> CommandSpec {
    with(script(text, &[]), |spec| spec.limits.time = Duration::from_secs(2))
}

#[test]
fn cancelling_ends_the_whole_process_group_and_keeps_what_was_printed() {
    insta::assert_snapshot!(told(&cancelled(HANGS, LONG)), @r"
    cancelled cancelled
    `sh` was stopped: the call was cancelled

    stdout:
    first
    ");
}

#[test]
fn what_does_not_go_when_asked_is_killed() {
    insta::assert_snapshot!(told(&cancelled(DEAF, Duration::from_millis(50))), @r"
    cancelled cancelled
    `sh` was stopped: the call was cancelled

    stdout:
    first
    ");
}

#[test]
fn a_tool_that_hangs_is_stopped_at_its_timeout() {
    let outcome = call(brief("echo half; sleep 1000"), "{}");
    insta::assert_snapshot!(told(&outcome), @r"
    timeout timeout
    `sh` did not finish within 2.0 s and was stopped; if it needs more time, raise its `timeout`

    stdout:
    half
    ");
}

#[test]
fn a_character_cut_by_the_timeout_does_not_make_the_output_binary() {
    let spec = brief(r"printf 'caf\303'; sleep 1000");
    assert!(told(&call(spec, "{}")).ends_with("\n\nstdout:\ncaf"));
}

#[test]
fn dropping_the_call_ends_the_whole_process_group() {
    let fifo = Fifo::new();
    let tool = tool(script(DEAF, &[&fifo.path]));
    block_on(async {
        let pipe = tokio::select! {
            outcome = tool.call(cx("{}")) => panic!("it hangs, but gave {outcome:?}"),
            pipe = fifo.up() => pipe,
        };
        all_gone(pipe).await;
    });
}

#[test]
fn children_left_behind_neither_delay_the_result_nor_outlive_it() {
    let fifo = Fifo::new();
    let text = "exec 3>\"$1\"; sleep 1000 & echo up >&3; echo done";
    let tool = tool(script(text, &[&fifo.path]));
    block_on(async {
        let (outcome, pipe) = tokio::join!(tool.call(cx("{}")), fifo.up());
        assert_eq!(told(&outcome), "success exit 0\ndone");
        all_gone(pipe).await;
    });
}

#[test]
fn a_cancelled_call_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let mut cx = cx("{}");
    cx.cancel = Cancel::new();
    cx.cancel.cancel();
    let outcome = block_on(tool(script("touch \"$1\"", &[&mark])).call(cx));
    insta::assert_snapshot!(told(&outcome), @r"
    cancelled cancelled
    `sh` was not started: the call was cancelled
    ");
    assert!(!mark.exists());
}

#[test]
fn a_program_that_never_stops_printing_is_stopped() {
    let outcome = call(with(script("yes", &[]), |spec| spec.limits.stdout = 256), "{}");
    let text = told(&outcome);
    let (sentence, printed) = text.split_once("\n\nstdout:\n").unwrap();
    insta::assert_snapshot!(sentence, @"
    failed too_much_output
    `sh` printed more than 128 MiB and was stopped; make it print less
    ");
    assert!(printed.starts_with("y\ny\n") && printed.contains(" bytes left out ...]\n"), "{printed}");
}

/// A clock that stands still.
struct Stopped(Time);

impl Clock for Stopped {
    fn now(&self) -> Time {
        self.0
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn with_a_clock_a_program_is_stopped_at_the_turns_deadline() {
    let tool = tool(script("sleep 1000", &[])).with_clock(Arc::new(Stopped(Time(1_000))));
    let told_at = |deadline| {
        let mut cx = cx("{}");
        cx.deadline = Some(Time(deadline));
        told(&block_on(tool.call(cx)))
    };
    insta::assert_snapshot!(told_at(1_020), @r"
    timeout timeout
    `sh` did not finish in the remaining 20 ms of the turn and was stopped
    ");
    insta::assert_snapshot!(told_at(900), @"
    timeout timeout
    `sh` was not started because the turn's deadline has passed
    ");
}
