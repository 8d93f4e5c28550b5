//! The layer that shows context files.

use std::sync::Arc;

use harness_core::Json;
use harness_host::DynWorkspace;

use super::super::text::fitted;
use super::reader::{ContextFileLimits, ContextFileSet, absolute, directories_down_to};
use crate::MemoryError;
use crate::layer::{Hook, Layer, LayerCx, LayerDef, Placement, RecallAsk, Recalled, ScopedStorage, Update};

/// Shows the context files of a project and their imports, as [`ContextFileSet::read`] finds them at the start of an
/// execution. Unreadable files are omitted: hints of a project are not a condition of a run.
#[derive(Clone, derive_more::Debug)]
pub struct ContextFiles {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    /// Bounds of the files.
    pub limits: ContextFileLimits,
    #[debug(skip)]
    workspace: Arc<dyn DynWorkspace>,
    directories: Vec<String>,
}

impl ContextFiles {
    /// Context files of `workspace`, from its root down to `directory`.
    pub fn new(workspace: Arc<dyn DynWorkspace>, directory: &str) -> Self {
        let def = LayerDef::new("context-files", 195, [Hook::Init, Hook::Recall])
            .with_range(0, 15_000)
            .with_placement(Placement::Anchor);
        let limits = ContextFileLimits::default();
        Self { def, limits, workspace, directories: directories_down_to(directory) }
    }

    /// Reads the agent's own directory first.
    #[must_use]
    pub fn with_agent_directory(mut self, directory: &str) -> Self {
        self.directories.insert(0, absolute("", directory));
        self
    }
}

impl Layer for ContextFiles {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, _storage: &ScopedStorage, _cx: &LayerCx) -> Result<Update, MemoryError> {
        let files = ContextFileSet::read(&*self.workspace, &self.directories, self.limits).await;
        let text = files.instructions();
        Ok(if text.is_empty() { Update::Clear } else { Update::Set(Json::string(&text)) })
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let text: String = cx.state_as()?;
        let note = "\n[cut: the budget of context files is used up]";
        Ok(Recalled::text(fitted(text, note, ask.budget, cx)))
    }
}
