//! A broker of this process: found, started, and ended when it is no longer required.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_host::process::{
    Capture, Child, Environment, Launch, Limits, ProgramSpec, start, why_not_started,
};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

use super::connection::Connection;
use crate::fault::RelayFault;

/// Output of a broker that is ready.
const LISTENING: &str = "API listening on ";

/// Lines that are read in search of it, at most.
const LINES: usize = 10_000;

/// Bytes of a broker's standard error that an error shows.
const SHOWN: usize = 4 * 1024;

/// How long a broker that was asked to end may take.
const ENDING: Duration = Duration::from_secs(5);

/// A broker to start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BrokerStart {
    /// The program; [`find`](Self::find) looks for it.
    pub program: PathBuf,
    /// Its working directory.
    pub folder: PathBuf,
    /// Its name, unique in a directory. Default: that of the directory.
    pub name: String,
    /// The channels that it joins.
    pub channels: Vec<String>,
    /// Its environment. `RELAYCAST_BASE_URL` in it moves the hosted service that it wants to reach.
    pub environment: Environment,
    /// How long it may take until it can be reached. Default 45 s.
    pub timeout: Duration,
}

impl BrokerStart {
    /// A broker of a program in a directory.
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>, environment: Environment) -> Self {
        let folder = folder.into();
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        Self {
            program: program.into(),
            folder,
            name: name.unwrap_or_else(|| "harness".to_owned()),
            channels: Vec::new(),
            environment,
            timeout: Duration::from_secs(45),
        }
    }

    /// Finds a broker's program, in the order of the broker's tools: `named` (their variables
    /// `BROKER_BINARY_PATH` and `AGENT_RELAY_BIN`), the packages in `folder` and in the directories above
    /// it, and the directories of `search_path` (the variable `PATH`).
    ///
    /// # Errors
    /// [`RelayFault::NoProgram`] with all places.
    pub fn find(
        named: Option<&Path>,
        folder: &Path,
        search_path: Option<&OsStr>,
    ) -> Result<PathBuf, RelayFault> {
        let mut looked = Vec::new();
        looked.extend(named.map(Path::to_owned));
        if named.is_none() {
            let (system, machine) = platform();
            let plain = "agent-relay-broker";
            for above in folder.ancestors() {
                let packages = above.join("node_modules/@agent-relay");
                looked.push(packages.join("sdk/bin").join(plain));
                looked.push(packages.join(format!("sdk/bin/{plain}-{system}-{machine}")));
                looked.push(packages.join(format!("broker-{system}-{machine}/bin/{plain}")));
            }
            looked.extend(search_path.iter().flat_map(std::env::split_paths).map(|path| path.join(plain)));
        }
        match looked.iter().find(|path| path.is_file()) {
            Some(found) => Ok(found.clone()),
            None => Err(RelayFault::NoProgram { looked }),
        }
    }

    /// Starts it and waits until it is ready. It is ephemeral: it ends some time after its lease was last
    /// renewed.
    pub(super) async fn launch(&self) -> Result<(Connection, Broker), RelayFault> {
        let failed = |reason: String| RelayFault::NotStarted { program: self.program.clone(), reason };
        let key = random_key().map_err(|fault| failed(format!("no key could be made for it: {fault}")))?;
        let channels = self.channels.join(",");
        let mut program = ProgramSpec::new(&self.program)
            .args(["init", "--name", &self.name, "--channels", &channels])
            .cwd(&self.folder)
            .env("RELAY_BROKER_API_KEY", &key);
        program.passed = self.environment.clone();
        let launch = Launch::new(program, Limits::new(self.timeout));
        let started = start(&launch).await;
        let mut child = started.map_err(|fault| failed(why_not_started(&launch.program, &fault)))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let broker = Broker { child };
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(failed("its output cannot be read".to_owned()));
        };
        let told = tokio::spawn(tail(stderr));
        let mut lines = BufReader::new(stdout);
        match tokio::time::timeout(self.timeout, address(&mut lines)).await {
            Ok(Some(url)) => {
                // What it prints later must not fill its pipe.
                tokio::spawn(tail(lines));
                Ok((Connection::new(&url, key)?, broker))
            }
            ended => {
                let what = if ended.is_ok() { "it ended" } else { "it took too long" };
                drop(broker);
                let said = told.await.unwrap_or_default().replace(&key, "(key)");
                Err(failed(format!("{what}; it printed: {}", said.trim())))
            }
        }
    }
}

/// A broker that runs. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Broker {
    child: Child,
}

impl Broker {
    /// Asks it to end, and kills it when it does not.
    pub(super) async fn end(mut self) {
        self.child.ask_to_end();
        if tokio::time::timeout(ENDING, self.child.wait()).await.is_err() {
            tracing::warn!("the broker did not end by itself and was killed");
        }
        self.child.kill();
    }
}

/// The address that a broker prints; `None` when it printed everything else.
async fn address(lines: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    for _ in 0..LINES {
        line.clear();
        let mut bounded = (&mut *lines).take(64 * 1024);
        if bounded.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&line);
        if let Some((_, url)) = text.split_once(LISTENING) {
            return url.split_whitespace().next().map(str::to_owned);
        }
    }
    None
}

/// Reads to the end and keeps the beginning and the end.
async fn tail(mut from: impl AsyncRead + Unpin) -> String {
    let mut kept = Capture::new(SHOWN);
    let mut part = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut part).await {
        kept.push(part.get(..read).unwrap_or_default());
    }
    kept.lossy()
}

/// `br_` and 32 random hexadecimal digits.
fn random_key() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold("br_".to_owned(), |key, byte| format!("{key}{byte:02x}")))
}

/// System and machine in the words of Node's packages.
fn platform() -> (&'static str, &'static str) {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    (system, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_packages_of_a_folder_above_and_then_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let (system, machine) = platform();
        let package = folder.path().join(format!("node_modules/@agent-relay/broker-{system}-{machine}/bin"));
        let on_path = folder.path().join("bin");
        let search = Some(on_path.as_os_str());
        assert!(
            matches!(BrokerStart::find(None, &below, search), Err(RelayFault::NoProgram { looked }) if looked.len() > 3)
        );
        for place in [&on_path, &package] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join("agent-relay-broker"), "").unwrap();
            let found = BrokerStart::find(None, &below, search).unwrap();
            assert_eq!(found, place.join("agent-relay-broker"));
        }
        let named = folder.path().join("none");
        assert_eq!(
            BrokerStart::find(Some(&named), &below, search),
            Err(RelayFault::NoProgram { looked: vec![named.clone()] })
        );
    }

    #[test]
    fn keys_differ() {
        let (one, two) = (random_key().unwrap(), random_key().unwrap());
        assert!(one != two && one.len() == 35 && one.starts_with("br_"));
    }

    /// A script in place of a broker's program: the address, or the fault without the folder's name.
    async fn launched(script: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("broker");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut start = BrokerStart::new(&program, folder.path(), Environment::default());
        start.timeout = Duration::from_secs(20);
        let launched = start.launch().await.map(|(connection, _)| connection.address());
        launched.unwrap_or_else(|fault| fault.to_string().replace(&program.display().to_string(), "PROGRAM"))
    }

    #[tokio::test]
    async fn a_broker_is_waited_for_until_it_says_where_it_is() {
        let text =
            "echo starting; echo '[agent-relay] API listening on http://127.0.0.1:4321'; exec sleep 60";
        assert_eq!(launched(text).await, "127.0.0.1:4321");
    }

    #[tokio::test]
    async fn one_that_ends_is_told_with_what_it_printed_but_not_its_key() {
        let fault = launched("echo \"no service for $RELAY_BROKER_API_KEY\" >&2; exit 1").await;
        assert_eq!(fault, "the broker PROGRAM did not start: it ended; it printed: no service for (key)");
    }
}
