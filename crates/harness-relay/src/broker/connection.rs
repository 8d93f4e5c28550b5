//! Where a broker is: the connection file that it writes.

use harness_core::JsonObject;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use harness_core::port::Secret;
use reqwest::Url;
use rustix::process::{Pid, test_kill_process};

use crate::fault::RelayFault;

/// Where brokers keep their connection file, below the directory of the project: up to 6.x, and from 9.x on.
pub const STATE_DIRECTORIES: [&str; 2] = [".agent-relay", ".agentworkforce/relay"];

/// The name of the file.
const FILE: &str = "connection.json";

/// Bytes of a connection file, at most.
const LONGEST: u64 = 64 * 1024;

/// How to reach a broker. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) url: Url,
    pub(super) key: Secret,
    pub(super) pid: Option<u32>,
    directory: Option<PathBuf>,
}

impl Connection {
    /// A broker at `url` (`http://127.0.0.1:PORT`) with its key.
    ///
    /// # Errors
    /// When the URL is not plain HTTP to this machine: a broker listens nowhere else, and its key opens
    /// everything that the agents may do.
    pub fn new(url: &str, key: impl AsRef<str>) -> Result<Self, RelayFault> {
        let url = loopback(url)
            .map_err(|problem| RelayFault::failed(format!("the broker's URL `{url}` {problem}")))?;
        Ok(Self { url, key: Secret::new(key), pid: None, directory: None })
    }

    /// Finds the running broker of a directory.
    ///
    /// `state_dir` is the directory of the file when it is not one of [`STATE_DIRECTORIES`] (the environment
    /// variable `AGENT_RELAY_STATE_DIR` of the broker's own tools; an application reads it). Of several
    /// files the first that names a running broker counts.
    ///
    /// # Errors
    /// [`RelayFault::NoBroker`] when there is no file, else what is wrong with the first one.
    pub fn discover(folder: &Path, state_dir: Option<&Path>) -> Result<Self, RelayFault> {
        let looked: Vec<PathBuf> = match state_dir {
            Some(directory) => vec![folder.join(directory).join(FILE)],
            None => STATE_DIRECTORIES.iter().map(|directory| folder.join(directory).join(FILE)).collect(),
        };
        let mut first = None;
        for path in &looked {
            match Self::read(path) {
                Ok(connection) => return Ok(connection),
                Err(RelayFault::NoBroker { .. }) => {}
                Err(fault) => {
                    first.get_or_insert(fault);
                }
            }
        }
        Err(first.unwrap_or(RelayFault::NoBroker { looked }))
    }

    /// Reads a connection file.
    ///
    /// # Errors
    /// When there is none, when others can read it, when it is damaged, or when its broker is gone.
    pub fn read(path: &Path) -> Result<Self, RelayFault> {
        let wrong = |problem: String| RelayFault::ConnectionFile { path: path.to_owned(), problem };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                return Err(RelayFault::NoBroker { looked: vec![path.to_owned()] });
            }
            Err(fault) => return Err(wrong(format!("cannot be read: {fault}"))),
        };
        private(&file, path)?;
        let mut text = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        read.map_err(|fault| wrong(format!("cannot be read: {fault}")))?;
        if text.len() as u64 > LONGEST {
            return Err(wrong(format!("is longer than {LONGEST} bytes")));
        }
        let fields = JsonObject::parse(&text)
            .ok_or_else(|| wrong("is corrupt: it is not a JSON object".to_owned()))?;
        let missing = |key: &str| wrong(format!("is not valid: `{key}` is missing or of another type"));
        let url = fields.filled_text("url").ok_or_else(|| missing("url"))?;
        let url =
            loopback(&url).map_err(|problem| wrong(format!("names the URL `{url}`, which {problem}")))?;
        let key = fields.filled_text("api_key").ok_or_else(|| missing("api_key"))?;
        let pid: u32 = fields.get("pid").and_then(|pid| pid.to().ok()).ok_or_else(|| missing("pid"))?;
        if !is_alive(pid) {
            return Err(RelayFault::Stale { path: path.to_owned(), pid });
        }
        let directory = path.parent().map(Path::to_owned);
        Ok(Self { url, key: Secret::new(key), pid: Some(pid), directory })
    }

    /// Host and port, for messages.
    pub fn address(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    /// The directory in which the broker keeps its files, when it was found there.
    pub fn state_directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether the broker's process is known to be gone.
    pub(super) fn is_gone(&self) -> bool {
        self.pid.is_some_and(|pid| !is_alive(pid))
    }
}

/// Refuses a file whose key others can read: only the owner may have bits, which are the upper ones.
#[cfg(unix)]
fn private(file: &File, path: &Path) -> Result<(), RelayFault> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = file.metadata().map_err(|fault| RelayFault::ConnectionFile {
        path: path.to_owned(),
        problem: format!("cannot be read: {fault}"),
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode.trailing_zeros() >= 6 { Ok(()) } else { Err(RelayFault::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn private(_: &File, _: &Path) -> Result<(), RelayFault> {
    Ok(())
}

/// The URL, when it is plain HTTP to this machine.
fn loopback(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|fault| format!("is not valid: {fault}"))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let here =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if url.scheme() != "http" || !here {
        return Err("is not plain HTTP to this machine".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password".to_owned());
    }
    Ok(url)
}

/// Whether a process of this number runs, of any user.
fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Reads a file with this content and mode; the address, or the fault without the folder's name.
    fn read(content: &str, mode: u32) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("connection.json");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let read = Connection::read(&path).map(|connection| connection.address());
        read.unwrap_or_else(|fault| fault.to_string().replace(&path.display().to_string(), "FILE"))
    }

    #[track_caller]
    fn check(content: &str, expected: &str) {
        let pid = std::process::id().to_string();
        assert_eq!(read(&content.replace("PID", &pid), 0o600), expected);
    }

    #[test]
    fn a_file_of_a_running_broker_is_read() {
        check(r#"{"url":"http://127.0.0.1:4321","port":4321,"api_key":"br_1","pid":PID}"#, "127.0.0.1:4321");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_without_its_key() {
        check("{", "the connection file FILE is corrupt: it is not a JSON object");
        check(
            r#"{"api_key":"br_1","pid":PID}"#,
            "the connection file FILE is not valid: `url` is missing or of another type",
        );
        check(
            r#"{"url":"http://127.0.0.1:1","pid":PID}"#,
            "the connection file FILE is not valid: `api_key` is missing or of another type",
        );
        check(
            r#"{"url":"http://127.0.0.1:1","api_key":"br_1","pid":"x"}"#,
            "the connection file FILE is not valid: `pid` is missing or of another type",
        );
        check(
            r#"{"url":"http://10.0.0.1:1","api_key":"br_1","pid":PID}"#,
            "the connection file FILE names the URL `http://10.0.0.1:1`, which is not plain HTTP to this machine",
        );
        check(&" ".repeat(70_000), "the connection file FILE is longer than 65536 bytes");
    }

    #[test]
    fn a_dead_broker_and_an_open_file_are_refused() {
        // No process has the highest number that Linux can give.
        check(
            r#"{"url":"http://127.0.0.1:1","api_key":"br_1","pid":4194304}"#,
            "the connection file FILE is stale: the broker (process 4194304) is no longer running",
        );
        let open = read("{}", 0o644);
        assert_eq!(
            open,
            "the connection file FILE has the mode 0644, so that others can read the broker's key"
        );
    }

    #[test]
    fn w41_both_directories_are_looked_into_and_another_may_be_named() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let found = |state: Option<&str>| {
            Connection::discover(folder.path(), state.map(Path::new)).map(|connection| connection.address())
        };
        let RelayFault::NoBroker { looked } = found(None).unwrap_err() else { panic!("nothing is there") };
        assert_eq!(looked.len(), 2);
        for (directory, port, pid) in [
            (".agent-relay", 1, 4_194_304),
            (".agentworkforce/relay", 2, std::process::id()),
            ("own", 3, std::process::id()),
        ] {
            let directory = folder.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            let path = directory.join("connection.json");
            let text = format!(r#"{{"url":"http://127.0.0.1:{port}","api_key":"k","pid":{pid}}}"#);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(found(None).unwrap(), "127.0.0.1:2", "the stale one is passed over");
        assert_eq!(found(Some("own")).unwrap(), "127.0.0.1:3");
        assert!(matches!(found(Some(".agent-relay")).unwrap_err(), RelayFault::Stale { .. }));
    }

    #[test]
    fn a_key_is_never_shown() {
        let connection = Connection::new("http://localhost:1", "br_secret").unwrap();
        assert!(!format!("{connection:?}").contains("secret"));
        assert!(Connection::new("https://relay.example", "k").is_err());
    }
}
