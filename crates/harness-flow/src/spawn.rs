//! Overrides for a child context.

use std::fmt;
use std::sync::Arc;

use harness_core::ThreadId;
use harness_host::{DynShell, DynSubprocess, DynWorkspace, Workplace};

/// Overrides for a child context. The child inherits every absent part; a working directory is copied.
///
/// ```
/// use harness_flow::{SpawnSpec, Step};
///
/// let look = Step::run("look", async |(): (), cx: harness_flow::StepCx| Ok::<_, String>(cx.cwd()));
/// let docs = SpawnSpec { cwd: Some("/docs".into()), ..SpawnSpec::default() };
/// let step = Step::spawn_with("inside", look, docs);
/// # let _ = step;
/// ```
#[derive(Clone, Default)]
pub struct SpawnSpec {
    /// Thread that the child works in.
    pub thread: Option<ThreadId>,
    /// Owner of the resources that the child uses.
    pub resource: Option<Arc<str>>,
    /// Working directory, without a previous one.
    pub cwd: Option<Arc<str>>,
    /// Files.
    pub fs: Option<Arc<dyn DynWorkspace>>,
    /// Shell.
    pub shell: Option<Arc<dyn DynShell>>,
    /// Process launcher.
    pub subprocess: Option<Arc<dyn DynSubprocess>>,
}

impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, resource, cwd, .. } = self;
        f.debug_struct("SpawnSpec")
            .field("thread", thread)
            .field("resource", resource)
            .field("cwd", cwd)
            .finish_non_exhaustive()
    }
}

impl SpawnSpec {
    /// Combines the overrides with the parent's workplace.
    pub(super) fn workplace(&self, parent: &Workplace) -> Workplace {
        Workplace::new(
            Arc::clone(self.fs.as_ref().unwrap_or(parent.fs())),
            Arc::clone(self.shell.as_ref().unwrap_or(parent.shell())),
            Arc::clone(self.subprocess.as_ref().unwrap_or(parent.subprocess())),
        )
    }
}
