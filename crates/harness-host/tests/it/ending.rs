//! Programs that have to be stopped, and what they leave behind.

use std::future::pending;
use std::time::Duration;

use harness_host::process::{Ending, Limits};
use tokio::time::Instant;

use crate::support::{LONG, block_on, both_ways, gone, script};

/// Prints the numbers of all its processes, is deaf to SIGTERM as all of them, and never ends. Each holds
/// its stdout open.
const DEAF: &str = "trap '' TERM; (while :; do sleep 1000; done) & echo $$ $!; while :; do wait; done";

/// The same with a child that has left the process group and the session.
const ESCAPED: &str =
    "trap '' TERM; setsid sh -c 'echo $$; while :; do sleep 1000; done' & echo $$; while :; do wait; done";

fn pids(printed: &str) -> Vec<String> {
    printed.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn check_stopped(text: &str, count: usize) {
    let limit = Duration::from_millis(500);
    let (ended, took) = block_on(async {
        let start = Instant::now();
        let ended = script(text, "", Limits::new(limit), pending(), |_: &[u8]| {}).await.unwrap();
        (ended, start.elapsed())
    });
    assert_eq!(ended.ending, Ending::TimedOut);
    assert!(took < limit + Duration::from_secs(2), "{took:?}");
    let pids = pids(&ended.stdout.lossy());
    assert_eq!(pids.len(), count, "what was printed until then is kept");
    for pid in pids {
        assert!(gone(&pid), "process {pid} is left");
    }
}

#[test]
fn what_is_deaf_to_sigterm_is_killed_with_all_that_it_started() {
    both_ways(|| {
        check_stopped(DEAF, 2);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_that_left_the_group_is_found_and_killed() {
    both_ways(|| {
        check_stopped(ESCAPED, 2);
    });
}

#[test]
fn a_child_that_holds_the_pipes_does_not_delay_the_end() {
    both_ways(|| {
        let (ended, took) = block_on(async {
            let start = Instant::now();
            let text = "(trap '' TERM; while :; do sleep 1000; done) & echo $!; exit 3";
            let ended = script(text, "", Limits::new(LONG), pending(), |_: &[u8]| {}).await.unwrap();
            (ended, start.elapsed())
        });
        assert!(matches!(ended.ending, Ending::Exited(status) if status.code() == Some(3)));
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert!(gone(ended.stdout.lossy().trim()));
    });
}

#[test]
fn dropping_a_run_kills_all_of_it() {
    both_ways(|| {
        let pids = block_on(async {
            let (tell, mut up) = tokio::sync::mpsc::unbounded_channel();
            let tap = move |part: &[u8]| tell.send(String::from_utf8_lossy(part).into_owned()).unwrap();
            let mut run = Box::pin(script(DEAF, "", Limits::new(LONG), pending(), tap));
            let printed = tokio::select! {
                _ = &mut run => panic!("it ended by itself"),
                printed = up.recv() => printed.unwrap(),
            };
            drop(run);
            pids(&printed)
        });
        assert_eq!(pids.len(), 2);
        assert!(pids.iter().all(|pid| gone(pid)));
    });
}
