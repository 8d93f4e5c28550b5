//! `kill -9` of a real process in the middle of its appends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use harness_session::{Error, FileSession, SyncPolicy};

use crate::support::{Place, load, options, say, texts, user};

/// Set for the process that appends until it is killed; names the session file.
const CHILD: &str = "HARNESS_SESSION_TEST_CHILD";

/// Text long enough that a write spans several pages.
fn text(number: usize) -> String {
    format!("{number} {}", "x".repeat(number % 7 * 3_000))
}

fn append_until_killed(path: &str) -> ! {
    let session = FileSession::open(path, options().sync(SyncPolicy::Never)).unwrap();
    let mut number = load(&session).unwrap().messages.len();
    loop {
        say(&session, &text(number)).unwrap();
        number += 1;
        println!("acknowledged {number}");
    }
}

/// Law 4, on a real process: what was acknowledged is there, in order, and nothing else but perhaps the
/// entry that was on its way; the lock is free; the session goes on.
#[test]
#[expect(clippy::disallowed_methods, reason = "this test kills a process of its own")]
fn law_4_kill_nine_in_the_middle_of_appends() {
    if let Ok(path) = std::env::var(CHILD) {
        append_until_killed(&path);
    }
    let place = Place::new();
    for path in [place.path(), crate::sqlite::thread(&place, "chat")] {
        kill_in_the_middle_of_appends(&path);
    }
}

#[expect(clippy::disallowed_methods, reason = "this test kills a process of its own")]
fn kill_in_the_middle_of_appends(path: &Path) {
    for round in 0..12_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::law_4_kill_nine_in_the_middle_of_appends", "--nocapture"])
            .env(CHILD, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut acknowledged = 0;
        let mut see = |line: String| {
            // Libtest prints the name of the test on the same line as the first one.
            if let Some((_, number)) = line.split_once("acknowledged ") {
                acknowledged = number.parse().unwrap_or(acknowledged);
            }
        };
        lines.by_ref().filter(|line| line.contains("acknowledged ")).take(1 + round * 17).for_each(&mut see);
        let locked = FileSession::open(path, options()).unwrap_err();
        assert!(
            matches!(&locked, Error::Locked { owner: Some(owner), .. } if owner.pid == child.id()),
            "{locked:?}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(&mut see);

        let session = FileSession::open(path, options()).unwrap();
        let kept = texts(&load(&session).unwrap());
        assert!((acknowledged..=acknowledged + 1).contains(&kept.len()), "{acknowledged} / {}", kept.len());
        assert!(kept.iter().enumerate().all(|(number, kept)| *kept == text(number)));
        say(&session, &text(kept.len())).unwrap();
        assert_eq!(load(&session).unwrap().messages.last(), Some(&user(&text(kept.len()))));
    }
}

/// Set for the process that starts programs until it is killed; names the session file.
const STARTER: &str = "HARNESS_SESSION_TEST_STARTER";

/// How often a process that starts programs is killed, and its session opened at once.
const RESTARTS: usize = 60;

/// While a process starts a program there is a copy of it, which has its files open for a moment longer.
#[expect(clippy::disallowed_methods, reason = "this test starts processes of its own")]
fn start_programs_until_killed(path: &str) -> ! {
    let session = FileSession::open(path, options().sync(SyncPolicy::Never)).unwrap();
    say(&session, "owned").unwrap();
    for _ in 0..3 {
        std::thread::spawn(|| {
            loop {
                let _ = Command::new("true").status();
            }
        });
    }
    println!("acknowledged");
    loop {
        std::thread::park();
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this test kills a process of its own")]
fn fault_30_a_restart_right_after_kill_nine_finds_no_lock() {
    if let Ok(path) = std::env::var(STARTER) {
        start_programs_until_killed(&path);
    }
    let place = Place::new();
    for round in 0..RESTARTS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::fault_30_a_restart_right_after_kill_nine_finds_no_lock", "--nocapture"])
            .env(STARTER, place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!({ lines }.any(|line| line.contains("acknowledged")), "round {round}");
        for _ in 0..round * 40 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let session = FileSession::open(place.path(), options());
        let session = session.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(load(&session).unwrap().messages.len(), round + 1);
    }
}
