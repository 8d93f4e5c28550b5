//! What a sandboxed program reaches. On a machine that cannot sandbox programs, that nothing is started.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

use harness_host::process::{Launch, Limits, ProgramSpec, Sandbox, run};
use tempfile::TempDir;

use crate::support::{LONG, block_on};

/// `inside` and `outside`, which holds `secret`.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    for folder in ["inside", "outside"] {
        fs::create_dir(place.path().join(folder)).unwrap();
    }
    fs::write(place.path().join("outside/secret"), "the secret").unwrap();
    place
}

/// What a script prints in a sandbox, where `$0` is the place and `$1` the argument. `None`: this machine has no
/// sandbox, and refused.
#[track_caller]
fn script(place: &Path, sandbox: &Sandbox, text: &str, argument: &str) -> Option<String> {
    let args: [OsString; 4] = ["-c".into(), text.into(), place.into(), argument.into()];
    let program = ProgramSpec::new("bash").args(args).cwd(place).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let launch = Launch::new(program, Limits::new(LONG)).sandbox(Some(sandbox));
    let ended = block_on(run(launch, std::future::pending()));
    if let Err(fault) = Sandbox::available() {
        let refusal = ended.unwrap_err().to_string();
        assert!(refusal.contains(&fault.to_string()), "{refusal}");
        return None;
    }
    Some(ended.unwrap().stdout.lossy())
}

#[track_caller]
fn check(expected: &str, place: &TempDir, sandbox: &Sandbox, text: &str) {
    let printed = script(place.path(), sandbox, text, "");
    assert!(printed.is_none() || printed.as_deref() == Some(expected), "{printed:?}");
}

#[test]
fn sandbox_writes_and_reads_only_what_it_names() {
    let place = place();
    let sandbox = Sandbox::new().writing(place.path().join("inside"));
    let text = "exec 2> /dev/null; cd $0
        echo new > inside/new && cat inside/new && mv inside/new inside/moved && echo moved
        cat outside/secret || echo unread
        echo x > outside/new || echo unwritten
        truncate -s 0 outside/secret || echo whole
        mv inside/moved outside/moved || echo kept
        ln outside/secret inside/link || echo unlinked
        rm outside/secret || echo there
        head -c 1 /etc/passwd > /dev/null && echo system
        setsid sh -c 'echo x > outside/new' || echo inherited";
    check(
        "new\nmoved\nunread\nunwritten\nwhole\nkept\nunlinked\nthere\nsystem\ninherited\n",
        &place,
        &sandbox,
        text,
    );
    assert_eq!(fs::read_to_string(place.path().join("outside/secret")).unwrap(), "the secret");
    assert_eq!(fs::read_dir(place.path().join("outside")).unwrap().count(), 1);
    let reading = sandbox.reading(place.path().join("outside/secret"));
    check(
        "the secretunwritten\n",
        &place,
        &reading,
        "exec 2> /dev/null; cat $0/outside/secret; : > $0/outside/secret || echo unwritten",
    );
}

#[test]
fn sandbox_makes_no_sockets_without_a_network() {
    let place = place();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let text = "exec 2> /dev/null; (exec 3<> /dev/tcp/127.0.0.1/$1) && echo connected || echo refused";
    let sandbox = Sandbox::new();
    let printed = script(place.path(), &sandbox, text, &port);
    assert!(printed.is_none() || printed.as_deref() == Some("refused\n"), "{printed:?}");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came");
    if let Some(printed) = script(place.path(), &sandbox.with_network(), text, &port) {
        assert_eq!(printed, "connected\n");
        assert!(listener.accept().is_ok());
    }
}

#[test]
fn sandbox_hides_processes_outside_of_it() {
    let place = place();
    let own = std::process::id().to_string();
    let text = "cat /proc/$1/environ > /dev/null 2>&1 && echo read || echo hidden";
    let printed = script(place.path(), &Sandbox::new(), text, &own);
    assert!(printed.is_none() || printed.as_deref() == Some("hidden\n"), "{printed:?}");
}

#[test]
fn sandbox_with_a_path_that_does_not_exist_starts_nothing() {
    let place = place();
    let sandbox = Sandbox::new().writing(place.path()).reading(place.path().join("none"));
    let program = ProgramSpec::new("touch").args([place.path().join("made")]).env("PATH", "/usr/bin:/bin");
    let launch = Launch::new(program, Limits::new(LONG)).sandbox(Some(&sandbox));
    assert!(block_on(run(launch, std::future::pending())).is_err());
    assert!(!place.path().join("made").exists());
}

#[test]
fn sandbox_leaves_the_threads_of_this_process_alone() {
    let place = place();
    check("", &place, &Sandbox::new(), ":");
    fs::write(place.path().join("outside/after"), "x").unwrap();
    assert!(TcpListener::bind("127.0.0.1:0").is_ok());
}
