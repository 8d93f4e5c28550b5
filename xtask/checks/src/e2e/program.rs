//! The release program.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::fault::Result;
use xtask::process;
use xtask::repo::Workspace;

/// The program as users get it.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
}

impl Program {
    /// Builds it in release mode.
    pub(super) fn build() -> Result<Self> {
        process::run(&mut process::cargo(["build", "--release", "--package", "harness-cli"]))?;
        let file = format!("harness{}", std::env::consts::EXE_SUFFIX);
        Ok(Self { path: Workspace::load()?.target_directory.join("release").join(file) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A start of the program, in the workspace's folder, without a key, and with loopback
    /// addresses never sent through a proxy.
    pub(super) fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = process::command(&self.path);
        command.args(arguments).env("NO_PROXY", "127.0.0.1");
        process::without_keys(&mut command);
        command
    }
}
