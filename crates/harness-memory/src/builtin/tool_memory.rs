//! Tool memory: what a tool keeps in mind from call to call, and shows.

use std::collections::HashSet;
use std::sync::Arc;

use harness_core::message::{Block, Message, ToolResultMessage};
use harness_core::{Json, ToolName};

use super::text::{cut, fenced};
use crate::MemoryError;
use crate::layer::{
    AppendAsk, Appended, Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, ScopedStorage, Update,
};

/// UTF-16 units of a result that are shown.
const MOST_SHOWN: usize = 2_000;

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
#[derive(Clone, derive_more::Debug)]
pub struct ToolMemory {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    /// Tools whose results it learns from.
    pub tools: HashSet<ToolName>,
    #[debug(skip)]
    init: Init,
    #[debug(skip)]
    learn: Option<Learn>,
    #[debug(skip)]
    show: Option<Show>,
}

impl ToolMemory {
    /// Memory of the tool `tool`, which is also the layer's id; `init` returns its first state. For several tools, add
    /// the others to [`tools`](Self::tools).
    pub fn new(tool: &str, init: impl Fn() -> Json + Send + Sync + 'static) -> Self {
        let def = LayerDef::new(tool, 110, [Hook::Init, Hook::Append, Hook::Recall]);
        Self { def, tools: HashSet::from([tool.into()]), init: Arc::new(init), learn: None, show: None }
    }

    /// Replaces the state after each result of a tool with the result of `learn`; `None` keeps it.
    #[must_use]
    pub fn learning(
        self,
        learn: impl Fn(&Json, &ToolResultMessage) -> Option<Json> + Send + Sync + 'static,
    ) -> Self {
        Self { learn: Some(Arc::new(learn)), ..self }
    }

    /// Shows the result of `show`; `None` shows nothing.
    #[must_use]
    pub fn showing(self, show: impl Fn(&Json) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { show: Some(Arc::new(show)), ..self }
    }

    /// Shows the latest `kept` results of each of `tools`, even after compaction has removed them from the view. At
    /// most 2,000 UTF-16 units of a result are shown.
    pub fn latest_results(tools: impl IntoIterator<Item = ToolName>, kept: usize) -> Self {
        let mut layer = Self::new("tool_results", || Json::parse("[]").unwrap_or_default())
            .learning(move |state, result| {
                let mut all: Vec<(ToolName, String)> = state.to().ok()?;
                let text: String = result.content.iter().filter_map(Block::as_text).collect();
                all.push((result.tool_name.clone(), cut(&text, MOST_SHOWN).to_owned()));
                let mut newer = 0;
                let mut keeps = |tool: &ToolName| {
                    newer += usize::from(*tool == result.tool_name);
                    *tool != result.tool_name || newer <= kept
                };
                let mut shown: Vec<_> = all.into_iter().rev().filter(|(tool, _)| keeps(tool)).collect();
                shown.reverse();
                Json::of(&shown).ok()
            })
            .showing(|state| {
                let all: Vec<(ToolName, String)> = state.to().ok()?;
                let blocks = all.iter().map(|(tool, text)| format!("{tool}: {text}"));
                let text = blocks.collect::<Vec<_>>().join("\n\n");
                (!text.is_empty()).then(|| fenced("latest_tool_results", &text))
            });
        layer.tools = tools.into_iter().collect();
        layer
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
