//! Where a child works, if elsewhere.

use std::fmt;
use std::sync::Arc;

use harness_host::{DynShell, DynSubprocess, DynWorkspace, Workplace};

/// What a child has of its own: everything else it inherits, the working folder as a copy.
///
/// ```
/// use harness_flow::{SpawnSpec, Step};
///
/// let look = Step::run("look", async |(): (), cx: harness_flow::StepCx| Ok::<_, String>(cx.cwd()));
/// let step = Step::spawn_with("inside", look, SpawnSpec::new().cwd("/docs"));
/// # let _ = step;
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct SpawnSpec {
    pub(super) cwd: Option<Arc<str>>,
    fs: Option<Arc<dyn DynWorkspace>>,
    shell: Option<Arc<dyn DynShell>>,
    subprocess: Option<Arc<dyn DynSubprocess>>,
}

impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnSpec")
            .field("cwd", &self.cwd)
            .field("fs", &self.fs.is_some())
            .field("shell", &self.shell.is_some())
            .field("subprocess", &self.subprocess.is_some())
            .finish()
    }
}

impl SpawnSpec {
    /// A child that inherits everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// In this working folder, with none before it.
    pub fn cwd(mut self, folder: impl Into<Arc<str>>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// With these files.
    pub fn fs(mut self, fs: Arc<dyn DynWorkspace>) -> Self {
        self.fs = Some(fs);
        self
    }

    /// With this shell.
    pub fn shell(mut self, shell: Arc<dyn DynShell>) -> Self {
        self.shell = Some(shell);
        self
    }

    /// With processes of this port.
    pub fn subprocess(mut self, subprocess: Arc<dyn DynSubprocess>) -> Self {
        self.subprocess = Some(subprocess);
        self
    }

    /// The child's place beneath that of its parent.
    pub(super) fn workplace(&self, parent: &Workplace) -> Workplace {
        Workplace::new(
            Arc::clone(self.fs.as_ref().unwrap_or(parent.fs())),
            Arc::clone(self.shell.as_ref().unwrap_or(parent.shell())),
            Arc::clone(self.subprocess.as_ref().unwrap_or(parent.subprocess())),
        )
    }
}
