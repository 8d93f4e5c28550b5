//! What programs are given and what is read of them.

use std::future::pending;
use std::io;

use harness_host::process::{Ending, Limits, Lines, MAX_PRINTED, ProgramSpec, run, why_not_started};

use crate::support::{LONG, block_on, both_ways, launch, script};

#[track_caller]
fn check(text: &str, input: &str, expected: &str) {
    let ended = block_on(script(text, input, Limits::new(LONG), pending(), |_: &[u8]| {})).unwrap();
    assert!(matches!(ended.ending, Ending::Exited(status) if status.success()), "{:?}", ended.ending);
    assert_eq!(ended.stdout.lossy(), expected);
}

#[test]
fn what_is_on_stdin_comes_whole_and_ends() {
    both_ways(|| {
        check("cat", "", "");
        check("cat; echo .", "hello ", "hello .\n");
        check("wc -c | tr -d ' '", &"x".repeat(1 << 20), "1048576\n");
    });
}

#[test]
fn a_program_need_not_read_its_stdin() {
    both_ways(|| {
        let long = "x".repeat(1 << 20);
        check("exec <&-; echo closed", &long, "closed\n");
        check("head -c 1", &long, "x");
    });
}

#[test]
fn it_sees_only_its_own_environment() {
    both_ways(|| {
        check("env | grep -v -e '^PWD=' -e '^_=' -e '^SHLVL='", "", "PATH=/usr/bin:/bin\n");
    });
}

#[test]
fn what_it_prints_is_told_while_it_runs() {
    both_ways(|| {
        let mut lines = Lines::new(64);
        let mut seen = 0;
        let (tell, mut up) = tokio::sync::mpsc::unbounded_channel();
        let ended = block_on(script(
            "echo one; echo two; sleep 1000",
            "",
            Limits::new(LONG),
            async move { while up.recv().await.is_some_and(|seen| seen < 2) {} },
            |part: &[u8]| {
                lines.push(part, &mut |_| seen += 1);
                tell.send(seen).unwrap();
            },
        ));
        let ended = ended.unwrap();
        assert_eq!((ended.ending, ended.stdout.lossy().as_str()), (Ending::Cancelled, "one\ntwo\n"));
    });
}

#[test]
fn what_prints_without_end_is_stopped() {
    both_ways(|| {
        let ended =
            block_on(script("cat /dev/zero", "", Limits::new(LONG), pending(), |_: &[u8]| {})).unwrap();
        assert_eq!(ended.ending, Ending::Flooded);
        assert!(ended.stdout.total() > MAX_PRINTED && ended.stdout.lossy().len() < 256 * 1024);
    });
}

#[test]
fn why_a_program_does_not_start_is_told() {
    both_ways(|| {
        #[track_caller]
        fn check(program: &str, arg: &str, expected: &str) {
            let program = ProgramSpec::new(program).args([arg]);
            let launch = launch(program.clone(), Limits::new(LONG));
            let error: io::Error = block_on(run(launch, pending())).unwrap_err();
            let why = why_not_started(&program, &error);
            assert!(why.contains(expected), "{why}");
        }
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "no program").unwrap();
        check("no-such-program", "", "no program of that name is in PATH");
        check("/no/such/program", "", "there is no such file");
        check(plain.to_str().unwrap(), "", "it is not executable");
        check("/bin/echo", &"x".repeat(1 << 20), "too long for this system");
        check("/bin/echo", "a\0b", "zero byte");
    });
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    both_ways(|| {
        let program = ProgramSpec::new("/bin/echo").cwd("/no/such/folder");
        let launch = launch(program.clone(), Limits::new(LONG));
        let error = block_on(run(launch, pending())).unwrap_err();
        let why = why_not_started(&program, &error);
        assert_eq!(why, "its directory /no/such/folder does not exist; correct its `cwd`");
    });
}
