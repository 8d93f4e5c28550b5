//! The agents that stand for us at the relay.

use std::path::{Path, PathBuf};

use super::fault::RelayFault;
use super::transport::SpawnAgent;

/// How a name is made known to the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// None: only events are received. Enough if the relay publishes messages for unknown names, or if
    /// the name is registered elsewhere.
    None,
    /// As an agent that reads what the relay types to it and forgets it. Nothing that a message says is ever
    /// interpreted (W50): the program is `cat`, which runs in place of a shell.
    ///
    /// With a directory, the agent also depends on a named pipe there that this process holds open, so it
    /// ends with this process, even after a crash, and the relay reports to waiting callers that the
    /// worker is gone. Only on Linux, and if the relay's broker sees the same files.
    Reader {
        /// Existing directory for the pipe.
        lifeline: Option<PathBuf>,
    },
    /// As this agent, under the name in question. Never give a shell: the relay types messages into it.
    Agent(SpawnAgent),
}

/// Reads and discards the input of the relay; ends when the pipe `$0` is no longer open. The
/// terminal must not turn bytes of a message into signals or into an end of the input. What is typed is read
/// by `cat`, never by the shell: a shell that is given its script by `-c` does not look at its input.
#[cfg(target_os = "linux")]
const READER: &str = "stty -isig -icanon -ixon 2>/dev/null; exec 3<&0; cat <&3 >/dev/null & exec cat \"$0\"";

/// Holds the pipe that an agent hangs on.
#[derive(Debug, Default)]
pub(super) struct Lifeline {
    #[cfg(target_os = "linux")]
    pipe: Option<(std::os::fd::OwnedFd, PathBuf)>,
}

impl Lifeline {
    /// The agent by which a name is made known on a channel, and what keeps it alive.
    pub(super) fn agent(
        registration: &Registration,
        name: &str,
        channel: &str,
    ) -> Result<(Option<SpawnAgent>, Self), RelayFault> {
        let (mut agent, lifeline) = match registration {
            Registration::None => return Ok((None, Self::default())),
            Registration::Agent(agent) => {
                let mut agent = agent.clone();
                name.clone_into(&mut agent.name);
                return Ok((Some(agent), Self::default()));
            }
            Registration::Reader { lifeline: None } => (SpawnAgent::new(name, "cat"), Self::default()),
            Registration::Reader { lifeline: Some(folder) } => Self::reader(name, folder)?,
        };
        agent.channels = vec![channel.to_owned()];
        agent.include_workflow_conventions = Some(false);
        Ok((Some(agent), lifeline))
    }

    #[cfg(target_os = "linux")]
    fn reader(name: &str, folder: &Path) -> Result<(SpawnAgent, Self), RelayFault> {
        use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

        static MADE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        // The process is part of the name, so that those who share the folder do not meet.
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.join(format!("harness-{}-{number}.pipe", std::process::id()));
        let failed = |fault: rustix::io::Errno| RelayFault::NotRegistered {
            name: name.to_owned(),
            reason: format!("the pipe {} cannot be made: {fault}", path.display()),
        };
        // One that a process of this number left behind is nobody's any more.
        let _ = std::fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(failed)?;
        // Open for both, because opening for writing alone would wait for the reader.
        let pipe = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let mut agent = SpawnAgent::new(name, "sh");
        agent.args = vec!["-c".to_owned(), READER.to_owned(), path.display().to_string()];
        Ok((agent, Self { pipe: Some((pipe, path)) }))
    }

    #[cfg(not(target_os = "linux"))]
    fn reader(name: &str, _: &Path) -> Result<(SpawnAgent, Self), RelayFault> {
        Ok((SpawnAgent::new(name, "cat"), Self::default()))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lifeline {
    fn drop(&mut self) {
        if let Some((pipe, path)) = self.pipe.take() {
            drop(pipe);
            let _ = std::fs::remove_file(path);
        }
    }
}
