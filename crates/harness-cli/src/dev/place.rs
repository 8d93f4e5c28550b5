//! The server's program, its data and the addresses of the cluster.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::env;
use crate::error::CliError;

/// Name of the program that is looked for in `PATH`.
const PROGRAM: &str = "restate-server";

/// Ports of a cluster, which a directory of data keeps: runs of the engine name the address of their workers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) node: u16,
    pub(super) ingress: u16,
    pub(super) admin: u16,
    pub(super) workers: u16,
    pub(super) front_end: u16,
}

/// Directory of the data. A temporary one is removed with it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) ports: Ports,
    pub(super) temporary: Option<TempDir>,
}

impl Place {
    /// Opens a directory, or creates a temporary one.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, CliError> {
        let failed = |source| CliError::Io { action: "prepare the data of the cluster", source };
        let (folder, temporary) = if let Some(data) = data {
            fs::create_dir_all(data).map_err(failed)?;
            (data.canonicalize().map_err(failed)?, None)
        } else {
            let private = Permissions::from_mode(0o700);
            let made = tempfile::Builder::new().prefix("harness-cluster-").permissions(private).tempdir();
            let made = made.map_err(failed)?;
            (made.path().to_owned(), Some(made))
        };
        let kept = folder.join("ports.json");
        let ports = match fs::read_to_string(&kept) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| failed(error.into()))?,
            Err(_) => Ports::free().map_err(failed)?,
        };
        fs::write(&kept, serde_json::to_vec(&ports).unwrap_or_default()).map_err(failed)?;
        fs::write(folder.join("config.toml"), ports.config()).map_err(failed)?;
        Ok(Self { folder, ports, temporary })
    }
}

impl Ports {
    fn free() -> std::io::Result<Self> {
        let [node, ingress, admin, workers, front_end] = free()?;
        Ok(Self { node, ingress, admin, workers, front_end })
    }

    /// Settings of the server.
    fn config(&self) -> String {
        let Self { node, ingress, admin, .. } = self;
        format!(
            "node-name = \"one\"\nbase-dir = \"data\"\nbind-ip = \"127.0.0.1\"\nbind-port = {node}\n\
             disable-telemetry = true\nauto-provision = true\ndefault-num-partitions = 4\n\
             rocksdb-total-memory-size = \"256 MiB\"\nlog-filter = \"warn,octocrab=off\"\nlog-disable-ansi-codes = true\n\
             [ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\n"
        )
    }
}

/// Ports that are free now.
pub(super) fn free<const N: usize>() -> std::io::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind(here(0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// An address of this machine alone.
pub(super) fn here(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The program of the server: as named, or from `PATH`.
pub(super) fn server(named: Option<&Path>) -> Result<OsString, CliError> {
    if let Some(named) = named {
        let missing = || no_server(format!("the server {} does not exist", named.display()));
        return named.canonicalize().map(OsString::from).map_err(|_| missing());
    }
    let folders = env::text("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join(PROGRAM));
    let found = found.find(|path| path.is_file()).map(OsString::from);
    found.ok_or_else(|| no_server(format!("`{PROGRAM}`, the server of the engine, is not in PATH")))
}

fn no_server(message: String) -> CliError {
    CliError::Part {
        kind: "cli.no_engine_server".to_owned(),
        message,
        hint: Some(
            "install it with `npm install --global @restatedev/restate-server`, or pass its file with `--server FILE`"
                .to_owned(),
        ),
    }
}
