//! Environment of host code: files, a shell, processes, a working directory, and construction parameters.
//!
//! No gate guards these ports. Models reach files and programs through tools.

mod absent;
mod cwd;
mod params;

use std::fmt;
use std::sync::Arc;

use crate::{DynWorkspace, MemoryWorkspace};

use crate::program::{DynShell, DynSubprocess};

pub use absent::{NoShell, NoSubprocess};
pub use cwd::{RootCwd, WorkingFolder};
pub use params::{Params, ParamsFault};

/// The ports through which steps reach files and programs. Cloning is cheap, clones share the ports.
///
/// The default touches nothing outside of memory: [`MemoryWorkspace`], [`NoShell`], [`NoSubprocess`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_host::{MemoryWorkspace, Workplace, WorkspaceFile};
///
/// let files = MemoryWorkspace::new([WorkspaceFile::text("/plan.md", "Berth 4.")]);
/// let workplace = Workplace::in_memory().with_fs(Arc::new(files));
/// # let _ = workplace;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Workplace {
    fs: Arc<dyn DynWorkspace>,
    shell: Arc<dyn DynShell>,
    subprocess: Arc<dyn DynSubprocess>,
}

impl fmt::Debug for Workplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workplace").finish_non_exhaustive()
    }
}

impl Default for Workplace {
    fn default() -> Self {
        Self::in_memory()
    }
}

impl Workplace {
    /// Files in memory, none at first; no shell and no processes.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryWorkspace::new([])), Arc::new(NoShell), Arc::new(NoSubprocess))
    }

    /// These files, this shell and these processes.
    pub fn new(
        fs: Arc<dyn DynWorkspace>,
        shell: Arc<dyn DynShell>,
        subprocess: Arc<dyn DynSubprocess>,
    ) -> Self {
        Self { fs, shell, subprocess }
    }

    /// Replaces the files.
    pub fn with_fs(mut self, fs: Arc<dyn DynWorkspace>) -> Self {
        self.fs = fs;
        self
    }

    /// Replaces the shell.
    pub fn with_shell(mut self, shell: Arc<dyn DynShell>) -> Self {
        self.shell = shell;
        self
    }

    /// Replaces the processes.
    pub fn with_subprocess(mut self, subprocess: Arc<dyn DynSubprocess>) -> Self {
        self.subprocess = subprocess;
        self
    }

    /// Files of the workplace.
    pub fn fs(&self) -> &Arc<dyn DynWorkspace> {
        &self.fs
    }

    /// Shell of the workplace.
    pub fn shell(&self) -> &Arc<dyn DynShell> {
        &self.shell
    }

    /// Starts processes.
    pub fn subprocess(&self) -> &Arc<dyn DynSubprocess> {
        &self.subprocess
    }
}
