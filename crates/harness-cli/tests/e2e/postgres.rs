//! Sessions, checkpoints and artifacts in a real PostgreSQL server, shared by several processes.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use harness::core::Time;
use harness::core::message::Message;
use harness::core::port::{Durability, Entry, EntryHead};
use harness::session::artifact::PostgresArtifacts;
use harness::session::checkpoint::PostgresCheckpoints;
use harness::session::storage::PostgresStorage;
use harness::session::testing::{
    artifact_contract, checkpoint_contract, durable_session_contract, session_contract, storage_contract,
};
use harness::session::{Error, FileSession, Key, OpenOptions};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Running, harness, root, until};
use crate::{EXAMPLE, LONG, other, ran};

/// The user of the server's processes if the tests run as root, which the server refuses.
const NOBODY: u32 = 65_534;

/// Breaks the connections of this crate.
const CUT: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'harness %'";

/// A server with a folder of its own. It ends with the test.
struct Postgres {
    folder: tempfile::TempDir,
    port: u16,
    databases: AtomicU32,
}

impl Postgres {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { folder, port, databases: AtomicU32::new(0) };
        ran(server.tool("initdb", &["-D", "data", "-U", "harness", "-A", "trust", "-E", "UTF8"]));
        server.control("start");
        server
    }

    /// `start`, `stop` or `restart`.
    fn control(&self, what: &str) {
        let options =
            format!("-p {} -c listen_addresses=127.0.0.1 -k {}", self.port, self.folder.path().display());
        let mut control = self.tool("pg_ctl", &["-D", "data", "-w", "-m", "fast", "-l", "log"]);
        control.args(["-o", &options, what]);
        ran(control);
    }

    /// A program of the server.
    fn tool(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = other(program(name), self.folder.path());
        command.args(arguments);
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// What `psql` answers.
    fn ask(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        ran(self.tool("psql", &["-h", "127.0.0.1", "-p", &port, "-U", "harness", "-Atc", sql, database]))
    }

    /// The name and the URL of a new database.
    fn database(&self) -> (String, String) {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.ask("postgres", &format!("CREATE DATABASE {name}"));
        let url = format!("postgres://harness@127.0.0.1:{}/{name}", self.port);
        (name, url)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.folder.path().join("data/postmaster.pid").exists() {
            self.control("stop");
        }
    }
}

/// A program of the server. Debian does not put all of them on the path.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "checks start the programs of the system")]
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let mut found = std::env::split_paths(&path).chain(folders).map(|folder| folder.join(name));
    let missing = || panic!("PostgreSQL is not installed (Debian: apt-get install postgresql)");
    found.find(|program| program.is_file()).unwrap_or_else(missing)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn open(url: &str, thread: &str) -> Result<FileSession, Error> {
    FileSession::open(format!("{url}#{thread}"), OpenOptions::new().program("test", "1"))
}

fn say(session: &FileSession, text: &str) -> Result<(), String> {
    let (head, message) =
        (EntryHead::new(Time(1_767_225_600_000), None, 1, None), Arc::new(Message::user(text)));
    let said = session.append_blocking(&head, &[Entry::Message(&message)], Durability::Sync);
    said.map_err(|error| error.to_string())
}

fn texts(url: &str, thread: &str) -> Vec<String> {
    let stored = FileSession::read(format!("{url}#{thread}"), &OpenOptions::new()).unwrap();
    stored.loaded.messages.iter().map(|message| message.joined_text()).collect()
}

#[test]
fn the_stores_keep_their_contracts() {
    let server = Postgres::start();
    runtime().block_on(async {
        let (_, url) = server.database();
        let mut count = 0;
        session_contract(|| {
            count += 1;
            open(&url, &count.to_string()).unwrap()
        })
        .await;
        durable_session_contract(|name| open(&url, name).unwrap()).await;
        let key = Key::create(server.folder.path().join("key")).unwrap();
        let sealed = |name: &str| {
            FileSession::open(format!("{url}#sealed-{name}"), OpenOptions::new().key(key.clone())).unwrap()
        };
        durable_session_contract(sealed).await;
        checkpoint_contract(|| PostgresCheckpoints::open(&server.database().1).unwrap()).await;
        artifact_contract(|| PostgresArtifacts::open(&server.database().1).unwrap()).await;
        storage_contract(|| PostgresStorage::open(&server.database().1).unwrap()).await;
    });
}

#[test]
fn a_thread_has_one_owner_whatever_happens_to_connections() {
    let server = Postgres::start();
    let (database, url) = server.database();
    let session = open(&url, "ada").unwrap();
    say(&session, "one").unwrap();
    let own = std::process::id();
    let refused = open(&url, "ada").unwrap_err();
    assert!(matches!(&refused, Error::Locked { owner: Some(owner), .. } if owner.pid == own), "{refused}");

    // The connection breaks and nobody else takes the thread: it goes on.
    let cut =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'harness %'";
    server.ask(&database, cut);
    until(PATIENCE, "an append over a new connection", || say(&session, "two").is_ok());
    server.control("restart");
    until(PATIENCE, "an append after a restart of the server", || say(&session, "three").is_ok());
    assert_eq!(texts(&url, "ada"), ["one", "two", "three"]);

    // It breaks and somebody else takes the thread: what the old owner writes is refused.
    server.ask(&database, "UPDATE harness.threads SET writer = 'another'");
    assert!(say(&session, "four").unwrap_err().contains("was written to by another program"));
    drop(session);
    let session = open(&url, "ada").unwrap();
    say(&session, "four").unwrap();
    assert_eq!(texts(&url, "ada"), ["one", "two", "three", "four"]);
}

#[test]
fn an_append_counts_once_however_often_its_connection_breaks() {
    const MESSAGES: usize = 300;
    let server = Arc::new(Postgres::start());
    let (database, url) = server.database();
    let session = open(&url, "ada").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let breaker = {
        let (server, database, done) = (Arc::clone(&server), database.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            let mut broken = 0;
            while !done.load(Ordering::Relaxed) {
                broken += server.ask(&database, CUT).lines().count();
            }
            broken
        })
    };
    let mut refused = 0;
    for number in 0..MESSAGES {
        let text = number.to_string();
        until(PATIENCE, "an append", || {
            let said = say(&session, &text).is_ok();
            refused += usize::from(!said);
            said
        });
    }
    done.store(true, Ordering::Relaxed);
    let broken = breaker.join().unwrap();
    assert!(broken > 0 && refused > 0, "{broken} connections broke, {refused} appends were refused");
    let expected: Vec<_> = (0..MESSAGES).map(|number| number.to_string()).collect();
    assert_eq!(texts(&url, "ada"), expected, "{broken} connections broke, {refused} appends were refused");
    println!(
        "{MESSAGES} messages, {broken} broken connections, {refused} refused appends: none lost, none twice"
    );
}

/// A way to a server that breaks the connection whose next request has the text in `cut`, and takes the text.
fn breaking_way(port: u16, cut: &Arc<Mutex<Option<&'static str>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let cut = Arc::clone(cut);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, cut) = (client.unwrap(), Arc::clone(&cut));
            let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut answers, mut answered) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || io::copy(&mut answers, &mut answered));
            std::thread::spawn(move || {
                let mut request = [0; 8192];
                while let Ok(bytes @ 1..) = client.read(&mut request)
                    && !is_cut(&cut, &request[..bytes])
                {
                    server.write_all(&request[..bytes]).unwrap();
                }
                // Either end may have closed it by now.
                drop(client.shutdown(Shutdown::Both));
                drop(server.shutdown(Shutdown::Both));
            });
        }
    });
    own
}

fn is_cut(cut: &Mutex<Option<&'static str>>, request: &[u8]) -> bool {
    let (mut cut, request) = (cut.lock(), String::from_utf8_lossy(request));
    cut.take_if(|text| request.contains(*text)).is_some()
}

#[test]
fn what_may_be_done_twice_survives_a_connection_that_breaks() {
    let server = Postgres::start();
    let (database, _) = server.database();
    let cut = Arc::new(Mutex::new(None));
    let url = format!("postgres://harness@127.0.0.1:{}/{database}", breaking_way(server.port, &cut));
    let session = open(&url, "ada").unwrap();
    say(&session, "one").unwrap();
    let breaks = |text| *cut.lock() = Some(text);
    let broke = || cut.lock().is_none();

    breaks("SELECT number, line");
    assert_eq!(texts(&url, "ada"), ["one"], "a read");
    assert!(broke());
    breaks("pg_try_advisory_lock");
    let another = open(&url, "bea").unwrap();
    assert!(broke());
    say(&another, "two").unwrap();

    // An append is not repeated: nobody knows whether it counted. The next one finds out.
    breaks("harness.append");
    assert!(say(&another, "three").is_err() && broke());
    until(PATIENCE, "an append over a new connection", || say(&another, "three").is_ok());
    assert_eq!(texts(&url, "bea"), ["two", "three"]);
}

#[test]
fn a_url_with_a_password_is_refused_and_not_shown() {
    let refused = open("postgres://harness:hunter2@127.0.0.1/support", "ada").unwrap_err();
    let expected = "cannot use the URL of the PostgreSQL database: it has a password, which messages would show; set \
                    PGPASSWORD instead";
    assert_eq!(refused.to_string(), expected);
    let sessions = ["session", "list", "postgres://harness:hunter2@127.0.0.1/support"];
    let output = Running::start(harness(&root(), &sessions)).end_in(LONG);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{}", output.stderr);
    assert!(output.stderr.contains(expected) && !output.stderr.contains("hunter2"), "{}", output.stderr);
}

/// A front end over the shipped example, and its address.
fn front_end(url: &str) -> (Running, String) {
    let server = harness(&root(), &["serve", EXAMPLE, "--listen", "127.0.0.1:0", "--sessions", url]);
    let (server, line) = Running::start(server).line("the address of the server");
    let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it says {line:?}"));
    let address = address.to_owned();
    (server, address)
}

async fn post(address: &str, path: &str, body: Value) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client.post(format!("{address}/v1/{path}")).json(&body).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

#[test]
fn a_front_end_goes_on_where_another_one_was_killed() {
    let server = Postgres::start();
    let (_, url) = server.database();
    let (first, one) = front_end(&url);
    let (second, two) = front_end(&url);
    runtime().block_on(async {
        assert_eq!(post(&one, "threads", json!({ "id": "ada" })).await.0, 201);
        let (status, answer) =
            post(&one, "threads/ada/prompt?wait=true", json!({ "text": "Where is my order?" })).await;
        assert_eq!(status, 200, "{answer}");
        let (status, answer) =
            post(&two, "threads/ada/prompt?wait=true", json!({ "text": "And now?" })).await;
        assert_eq!(
            (status, &answer["error"]["kind"]),
            (503, &json!("session.locked")),
            "another process has the thread"
        );
    });
    first.signal(Signal::KILL);
    first.end_in(LONG);
    runtime().block_on(async {
        let (status, answer) =
            post(&two, "threads/ada/prompt?wait=true", json!({ "text": "And now?" })).await;
        assert_eq!(status, 200, "{answer}");
    });
    second.signal(Signal::TERM);
    assert_eq!(second.end_in(LONG).code, Some(0));
    let said = texts(&url, "ada");
    assert!(
        said.contains(&"Where is my order?".to_owned()) && said.contains(&"And now?".to_owned()),
        "{said:?}"
    );
    let listed = ran(harness(Path::new("/"), &["session", "list", &url]));
    assert!(listed.contains("ada"), "{listed}");
    let found = ran(harness(Path::new("/"), &["session", "search", "order", &url]));
    assert!(found.contains("Where is my order?"), "{found}");
}

#[test]
fn agents_on_two_machines_share_their_memory() {
    const DESCRIPTOR: &str =
        "runtime: { entry_agent: keeper }\nagents:\n  keeper: { model: demo, instructions: Help. }\n";
    let server = Postgres::start();
    let (_, url) = server.database();
    let registry = |url: &str| {
        format!(
            "version: 1\nmemory: {{ storage: '{url}', user: ada, layers: {{ scratchpad: {{ scope: user }} }} }}\n"
        )
    };
    let run = |registry: &str, said: &str| {
        let machine = tempfile::tempdir().unwrap();
        fs::write(machine.path().join("keeper.yaml"), DESCRIPTOR).unwrap();
        fs::write(machine.path().join("registry.yaml"), registry).unwrap();
        let words =
            ["run", "keeper.yaml", said, "--registry", "registry.yaml", "--run-record", "record.json"];
        let ended = Running::start(harness(machine.path(), &words)).end_in(LONG);
        (ended, fs::read_to_string(machine.path().join("record.json")).unwrap_or_default())
    };
    let (ended, _) = run(&registry(&url), r#"call scratchpad_update {"content":"Ada waits for cod."}"#);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (ended, record) = run(&registry(&url), "Hello");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(record.contains("Ada waits for cod."), "{record}");
    let (ended, _) = run(&registry("postgres://harness:hunter2@127.0.0.1/support"), "Hello");
    let told = "cannot use the URL of the PostgreSQL database: it has a password";
    assert!(ended.stderr.contains(told) && !ended.stderr.contains("hunter2"), "{}", ended.stderr);
    assert_ne!(ended.code, Some(0));
}
