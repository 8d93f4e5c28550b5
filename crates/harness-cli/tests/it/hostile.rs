//! The hostile corpus, replayed over the commands that read such things.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;

use crate::corpus::{Case, PLANTED, Then, cases};
use crate::support::{Project, Reply, Running, Server, harness};
use crate::watched::{check_memory, check_shown, watch};

/// Cases that are tried at once.
const AT_ONCE: usize = 8;

/// A folder `work` for the program, and one beside it that must not change.
struct Place {
    project: Project,
}

impl Place {
    fn new() -> Self {
        let project = Project::plain();
        for name in ["harness.yaml", "registry.yaml", "look.sh", "pay.sh"] {
            project.write(&format!("work/{name}"), &project.read(name));
        }
        project.write("outside/secret.txt", "what nobody may read");
        let work = project.path().join("work");
        symlink("../outside", work.join("link")).unwrap();
        symlink("../outside/secret.txt", work.join("linked.txt")).unwrap();
        symlink("../outside/new", work.join("dangling")).unwrap();
        project.pipe("work/pipe");
        Self { project }
    }

    fn work(&self) -> PathBuf {
        self.project.path().join("work")
    }

    fn outside(&self) -> PathBuf {
        self.project.path().join("outside")
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.work().join(name), content).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        harness(&self.work(), arguments)
    }

    /// Runs the program in `work` and checks what it shows.
    #[track_caller]
    fn watch(&self, case: &Case, arguments: &[&str]) {
        watch(self.command(arguments), &case.name);
    }

    /// Runs a chat that hears one message.
    #[track_caller]
    fn chat(&self, case: &Case, arguments: &[&str]) {
        self.write("message.txt", b"hello\n");
        let mut command = self.command(&[&["chat"], arguments].concat());
        command.stdin(File::open(self.work().join("message.txt")).unwrap());
        watch(command, &case.name);
    }

    /// Nothing beside `work` has changed.
    #[track_caller]
    fn check(&self, case: &str) {
        let names = |folder: &Path| {
            let mut names: Vec<String> = fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(
            names(self.project.path()),
            "harness.yaml look.sh outside pay.sh registry.yaml work",
            "{case}"
        );
        assert_eq!(names(&self.outside()), "secret.txt", "{case}");
        assert_eq!(self.project.read("outside/secret.txt"), "what nobody may read", "{case}");
    }
}

/// Tries each case of a directory, a few at once.
fn each(directory: &str, try_out: impl Fn(&Case) + Sync) {
    let waiting = Mutex::new(cases(directory));
    let next = || waiting.lock().pop();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    try_out(&case);
                }
            });
        }
    });
}

/// Tries each case of a directory in a place of its own.
fn each_in_place(directory: &str, try_out: impl Fn(&Case, &Place) + Sync) {
    each(directory, |case| {
        let place = Place::new();
        try_out(case, &place);
        place.check(&case.name);
    });
}

/// An endpoint that gives every request the same answer, until the program is gone.
fn endpoint(case: &Case) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (message, then) = case.message();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (message, then) = (message.clone(), then.clone());
            thread::spawn(move || answer(stream, &message, &then));
        }
    });
    url
}

/// Ends when the program closes the connection.
fn answer(mut stream: TcpStream, message: &[u8], then: &Then) -> Option<()> {
    let mut head = vec![0; 65_536];
    let _ = stream.read(&mut head).ok()?;
    stream.write_all(message).ok()?;
    match then {
        Then::Close => {}
        Then::Hold => while stream.read(&mut head).ok()? > 0 {},
        Then::Repeat(text) => loop {
            stream.write_all(&text.repeat(1_000)).ok()?;
        },
    }
    Some(())
}

#[test]
fn hostile_models() {
    each_in_place("model", |case, place| {
        let url = endpoint(case);
        let common = ["--base-url", &url, "--timeout", "2s", "--max-iterations", "3"];
        let run = |more: &[&str]| {
            place.watch(case, &[&["run", "harness.yaml", "hello"], &common[..], more].concat());
        };
        run(&["--session", "s.jsonl", "--run-record", "run.json"]);
        run(&["--json"]);
        place.chat(case, &[&["harness.yaml", "--session", "c.jsonl"], &common[..]].concat());
        for arguments in [
            &["session", "list"][..],
            &["session", "show", "s.jsonl"],
            &["session", "export", "s.jsonl"],
            &["inspect", "run.json"],
        ] {
            place.watch(case, arguments);
        }
    });
}

#[test]
fn hostile_mcp_servers() {
    each_in_place("mcp", |case, place| {
        place.write("server.sh", &case.content(&place.outside()));
        place.write(
            "mcp.yaml",
            b"version: 1\ntools:\n  far: { mcp: { command: [sh, server.sh], connect_timeout: 2s }, timeout: 2s }\n  look: { command: sh }\n  pay: { command: sh }\n",
        );
        place.watch(case, &["tools", "mcp.yaml"]);
        place.watch(case, &["tools", "mcp.yaml", "--json"]);
        place.watch(case, &["tools", "mcp.yaml", "--call", "far.far"]);
        place.watch(case, &["check", "harness.yaml", "--registry", "mcp.yaml", "--connect"]);
    });
}

#[test]
fn hostile_sessions() {
    each_in_place("session", |case, place| {
        let content = case.content(&place.outside());
        for arguments in [
            &["session", "list"][..],
            &["session", "list", "--json"],
            &["session", "show", "s.jsonl"],
            &["session", "show", "s.jsonl", "--json"],
            &["session", "export", "s.jsonl"],
            &["session", "export", "s.jsonl", "--format", "markdown"],
            &["session", "fork", "s.jsonl", "fork.jsonl"],
            &["session", "label", "s.jsonl", "e1", "x"],
            &["session", "compact", "s.jsonl"],
            &["session", "repair", "s.jsonl"],
            &["resume", "s.jsonl", "--timeout", "1s", "--base-url", "http://127.0.0.1:9/v1"],
            &[
                "run",
                "harness.yaml",
                "x",
                "--session",
                "s.jsonl",
                "--timeout",
                "1s",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ],
            &["inspect", "s.jsonl"],
            &["replay", "s.jsonl"],
        ] {
            // Each finds the file as it was.
            place.write("s.jsonl", &content);
            place.watch(case, arguments);
        }
        place.write("s.jsonl", &content);
        place.chat(
            case,
            &[
                "harness.yaml",
                "--session",
                "s.jsonl",
                "--timeout",
                "1s",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ],
        );
    });
}

#[test]
fn hostile_descriptors() {
    each_in_place("descriptor", |case, place| {
        place.write("d.yaml", &case.content(&place.outside()));
        for arguments in [
            &["check", "d.yaml"][..],
            &["check", "d.yaml", "--json"],
            &["hash", "d.yaml"],
            &["show", "d.yaml"],
            &["show", "d.yaml", "--agent", "desk"],
            &["graph", "d.yaml"],
            &["diff", "d.yaml", "harness.yaml"],
            &["run", "d.yaml", "x", "--timeout", "1s", "--base-url", "http://127.0.0.1:9/v1"],
            &[
                "run",
                "harness.yaml",
                "x",
                "--context",
                "d.yaml",
                "--timeout",
                "1s",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ],
            &["regress", "d.yaml"],
        ] {
            place.watch(case, arguments);
        }
        place.chat(case, &["d.yaml", "--timeout", "1s", "--base-url", "http://127.0.0.1:9/v1"]);
    });
}

#[test]
fn hostile_registries() {
    each_in_place("registry", |case, place| {
        place.write("r.yaml", &case.content(&place.outside()));
        for arguments in [
            &["tools", "r.yaml"][..],
            &["tools", "r.yaml", "--json"],
            &["tools", "r.yaml", "--call", "look"],
            &["check", "harness.yaml", "--registry", "r.yaml"],
            &["check", "harness.yaml", "--registry", "r.yaml", "--json"],
            &[
                "run",
                "harness.yaml",
                "x",
                "--registry",
                "r.yaml",
                "--timeout",
                "1s",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ],
        ] {
            place.watch(case, arguments);
        }
    });
}

#[test]
fn hostile_records() {
    each_in_place("record", |case, place| {
        place.write("run.json", &case.content(&place.outside()));
        for arguments in [
            &["inspect", "run.json"][..],
            &["inspect", "run.json", "--json"],
            &["inspect", "run.json", "--html", "page.html"],
            &["replay", "run.json"],
            &["regress", "run.json"],
            &["chat", "--replay", "run.json"],
        ] {
            place.watch(case, arguments);
        }
    });
}

#[test]
fn hostile_paths_of_a_workspace() {
    each_in_place("workspace", |case, place| {
        place.write("tools.yaml", b"version: 1\ntools: { files: { builtin: workspace, root: . } }\n");
        let text = String::from_utf8(case.content(&place.outside())).unwrap();
        let (tool, input) = text.split_once('\n').unwrap();
        place.write("input.json", input.as_bytes());
        place.watch(case, &["tools", "tools.yaml", "--call", tool, "--input", "@input.json", "--yes"]);
        let mut command =
            place.command(&["tools", "tools.yaml", "--call", tool, "--input", "@input.json", "--yes"]);
        command.env("OPENROUTER_API_KEY", PLANTED);
        let output = Running::start(command).end();
        let shown = output.stdout + &output.stderr;
        assert!(!shown.contains("what nobody may read"), "{}: {shown}", case.name);
    });
}

#[test]
fn hostile_requests() {
    let place = Place::new();
    let model = Server::start([Reply::text("hello")]);
    let mut command = place.command(&[
        "serve",
        "harness.yaml",
        "--listen",
        "127.0.0.1:0",
        "--base-url",
        &model.url,
        "--sessions",
        "threads",
    ]);
    command.env("HARNESS_API_KEY", PLANTED);
    let (running, line) = Running::start(command).line("the address of the server");
    let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
    each("http", |case| {
        let answered = send(&address, &case.message().0);
        assert!(!answered.contains("planted0123456789"), "{}: {answered}", case.name);
        let health =
            send(&address, b"GET /v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
        assert!(health.starts_with("HTTP/1.1 200"), "{} left the server ill: {health}", case.name);
        check_memory(running.id(), &case.name);
        place.check(&case.name);
    });
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    check_shown(&output.stderr, "serve");
}

/// Sends bytes and reads what comes back before the server is silent for a moment or closes.
fn send(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    // A server that waits for more may wait; one that answers does so in this time or later for nobody.
    let is_health = bytes.starts_with(b"GET /v1/health");
    stream.set_read_timeout(Some(Duration::from_millis(if is_health { 60_000 } else { 500 }))).unwrap();
    // A server may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.take(1 << 20).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
