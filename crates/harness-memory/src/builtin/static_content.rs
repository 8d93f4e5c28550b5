//! Static content: a text that is loaded once and stays in the view.

use std::sync::Arc;

use harness_core::Json;
use harness_core::port::BoxFuture;

use super::text::fitted;
use crate::MemoryError;
use crate::layer::{
    Hook, Layer, LayerCx, LayerDef, Placement, RecallAsk, Recalled, Scope, ScopedStorage, Update,
};

/// Where static content comes from.
pub trait ContentSource: Send + Sync {
    /// The text, asked once per execution.
    ///
    /// # Errors
    /// The run does not begin.
    fn load<'a>(&'a self, cx: &'a LayerCx) -> BoxFuture<'a, Result<String, MemoryError>>;
}

/// A text that is always the same.
impl ContentSource for String {
    fn load<'a>(&'a self, _cx: &'a LayerCx) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// A text between tags at a fixed place of the view. It is the host's own text and shown as it is; over its
/// budget it is cut, its closing tag stays.
#[derive(Clone, derive_more::Debug)]
pub struct StaticContent {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    /// Tag around the text. Default `instructions`.
    pub tag: Arc<str>,
    #[debug(skip)]
    source: Arc<dyn ContentSource>,
}

impl StaticContent {
    /// The text of `source` between `<instructions>` tags: layer `instructions`, slot 105.
    pub fn new(source: Arc<dyn ContentSource>) -> Self {
        let def = LayerDef::new("instructions", 105, [Hook::Init, Hook::Recall])
            .with_scope(Scope::Resource)
            .with_placement(Placement::Anchor);
        Self { def, tag: Arc::from("instructions"), source }
    }
}

impl Layer for StaticContent {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, _storage: &ScopedStorage, cx: &LayerCx) -> Result<Update, MemoryError> {
        let raw = self.source.load(cx).await?;
        if raw.is_empty() {
            return Ok(Update::Clear);
        }
        Ok(Update::Set(Json::string(&format!("<{0}>\n{raw}\n</{0}>", self.tag))))
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let text: String = cx.state_as()?;
        Ok(Recalled::text(fitted(text, &format!("\n</{}>", self.tag), ask.budget, cx)))
    }
}
