//! Detection of installed agents and their versions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_host::process::{Ending, is_path, why_not_started};

use super::agent::LocalAgent;
use super::ended::shortened;
use super::program::{Invocation, LocalProgram};
use super::version::Version;

/// Time limit for an agent to report its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum bytes of output without a version in a message.
const MOST_TOLD: usize = 200;

/// Result of probing an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Probed agent.
    pub agent: LocalAgent,
    /// Where its program is, when it was found.
    pub path: Option<PathBuf>,
    /// State of the agent.
    pub found: Found,
}

/// State of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// Installed, with a supported or newer version.
    Ready(Version),
    /// It is older than [`LocalAgent::minimum`].
    TooOld(Version),
    /// There is no such program.
    Missing,
    /// Installed, but without a known version: the reason, or its output.
    Unclear(String),
}

impl Probe {
    /// Suggested fix, if there is one.
    pub fn hint(&self) -> Option<String> {
        match &self.found {
            Found::Ready(_) => None,
            Found::Missing | Found::TooOld(_) => Some(self.agent.install_hint().to_owned()),
            Found::Unclear(_) => Some(format!("try `{} --version` by hand", self.agent.id())),
        }
    }
}

/// Looks for an agent's program and asks it for its version (`--version`), for at most 30 s.
///
/// `program` says where it is looked for: [`LocalAgent::program`] for that of the `PATH`.
pub async fn probe(agent: LocalAgent, program: &LocalProgram) -> Probe {
    let path = find(program);
    let invocation = Invocation::new(["--version"]);
    let mut program = program.clone();
    program.limits = program.limits.kept(4096, 4096);
    let ran = program.run(&invocation, PATIENCE, std::future::pending(), |_: &[u8]| {}).await;
    let found =
        match ran {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Found::Missing,
            Err(e) => Found::Unclear(why_not_started(&program.spec, &e)),
            Ok(ended) => {
                match (ended.ending, Version::find(&ended.stdout.lossy())) {
                    (Ending::Exited(status), Some(version)) if status.success() => {
                        if version < agent.minimum() { Found::TooOld(version) } else { Found::Ready(version) }
                    }
                    (Ending::Exited(status), _) => {
                        let printed = format!("{}{}", ended.stdout.lossy(), ended.stderr.lossy());
                        Found::Unclear(format!("{status}: {}", shortened(printed.trim(), MOST_TOLD)))
                    }
                    (Ending::TimedOut | Ending::Cancelled | Ending::Flooded, _) => {
                        Found::Unclear(format!("it did not answer within {} s", PATIENCE.as_secs()))
                    }
                }
            }
        };
    Probe { agent, path, found }
}

/// Where the program is, as it will be started.
fn find(program: &LocalProgram) -> Option<PathBuf> {
    let name = Path::new(&program.spec.path);
    if is_path(&program.spec.path) {
        return runnable(name).then(|| name.to_owned());
    }
    let env = program.spec.environment();
    let folders = env.get("PATH")?;
    std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| runnable(path))
}

fn runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
