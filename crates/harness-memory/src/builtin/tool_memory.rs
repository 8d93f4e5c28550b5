//! Tool memory: what a tool keeps in mind from call to call, and shows.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use harness_core::message::{Message, ToolResultMessage};
use harness_core::{Json, ToolName};

use crate::MemoryError;
use crate::layer::{
    AppendAsk, Appended, Hook, Layer, LayerCx, LayerDef, LayerId, RecallAsk, Recalled, ScopedStorage, Update,
};

type Init = Arc<dyn Fn() -> Json + Send + Sync>;
type Learn = Arc<dyn Fn(&Json, &ToolResultMessage) -> Option<Json> + Send + Sync>;
type Show = Arc<dyn Fn(&Json) -> Option<String> + Send + Sync>;

/// The memory of one tool, or of several that share it: a state per execution, which learns from each result
/// and may be shown in the view.
///
/// ```
/// use harness_core::Json;
/// use harness_memory::builtin::ToolMemory;
///
/// let searches = ToolMemory::new("search", || Json::of(&0).unwrap_or_default())
///     .learning(|state, _result| Json::of(&(state.to::<u32>().ok()? + 1)).ok())
///     .showing(|state| Some(format!("{} searches were made.", state.text())));
/// # let _ = searches;
/// ```
#[derive(Clone)]
pub struct ToolMemory {
    def: LayerDef,
    tools: HashSet<ToolName>,
    init: Init,
    learn: Option<Learn>,
    show: Option<Show>,
}

impl fmt::Debug for ToolMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolMemory")
            .field("def", &self.def)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl ToolMemory {
    /// The memory of the tool `tool`, which is also the layer's id; `init` gives its first state.
    pub fn new(tool: &str, init: impl Fn() -> Json + Send + Sync + 'static) -> Self {
        let def = LayerDef::new(tool, 110, [Hook::Init, Hook::Append, Hook::Recall]);
        Self { def, tools: HashSet::from([tool.into()]), init: Arc::new(init), learn: None, show: None }
    }

    /// The same under another id: memories of one id are one.
    #[must_use]
    pub fn named(mut self, id: impl Into<LayerId>) -> Self {
        self.def.id = id.into();
        self
    }

    /// The same, replacing the state by what `learn` makes of it and a result of the tool; `None` keeps it.
    #[must_use]
    pub fn learning(
        self,
        learn: impl Fn(&Json, &ToolResultMessage) -> Option<Json> + Send + Sync + 'static,
    ) -> Self {
        Self { learn: Some(Arc::new(learn)), ..self }
    }

    /// The same, showing what `show` makes of the state; `None` shows nothing.
    #[must_use]
    pub fn showing(self, show: impl Fn(&Json) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { show: Some(Arc::new(show)), ..self }
    }

    /// One layer for each id: the first memory of an id says how it works, the tools of the others share its
    /// state.
    pub fn shared(memories: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut layers: Vec<Self> = Vec::new();
        for memory in memories {
            match layers.iter_mut().find(|layer| layer.def.id == memory.def.id) {
                Some(layer) => layer.tools.extend(memory.tools),
                None => layers.push(memory),
            }
        }
        layers
    }

    fn state(&self, cx: &LayerCx) -> Json {
        cx.state.clone().unwrap_or_else(|| (self.init)())
    }
}

impl Layer for ToolMemory {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, _storage: &ScopedStorage, _cx: &LayerCx) -> Result<Update, MemoryError> {
        Ok(Update::Set((self.init)()))
    }

    async fn on_append(&self, ask: AppendAsk, cx: &LayerCx) -> Result<Appended, MemoryError> {
        let Some(learn) = &self.learn else { return Ok(Appended::items(ask.items)) };
        let mut state = None;
        for message in &ask.items {
            if let Message::ToolResult(result) = &**message
                && self.tools.contains(&result.tool_name)
            {
                let known = state.take().unwrap_or_else(|| self.state(cx));
                state = Some(learn(&known, result).unwrap_or(known));
            }
        }
        Ok(Appended::items(ask.items).with_state(state.map_or(Update::Keep, Update::Set)))
    }

    async fn recall(&self, _ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let shown = self.show.as_ref().and_then(|show| show(&self.state(cx)));
        Ok(shown.map_or_else(Recalled::nothing, Recalled::text))
    }
}
