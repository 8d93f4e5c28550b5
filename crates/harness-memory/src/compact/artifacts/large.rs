//! Large results of tools, kept outside of the transcript from the start.

use std::sync::Arc;

use harness_core::message::{Block, ToolCall};
use harness_core::port::Clock;
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope,
};
use harness_core::{Fault, Origin};
use harness_host::{ArtifactMeta, DynArtifactStore};

use super::{READ_ARTIFACT, pointer};

/// Bytes above which a block is stored.
const FROM: usize = 32 * 1024;
/// Characters of a text that stay.
const EXCERPT: usize = 2_000;

/// The tools of a registry, with large results in an artifact store: the transcript, the session and the
/// model get the beginning of the content and the way to read on.
///
/// What is stored are the exact bytes of a text, or an image as it came; equal contents are stored once. When
/// the store fails, the result stays as it is: nothing is lost. Put it around all tools of a harness, and
/// offer [`read_artifact_tool`](super::read_artifact_tool) over the same store, whose answers are left as
/// they are.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::port::Clock;
/// use harness_core::tool::DynToolRegistry;
/// use harness_host::DynArtifactStore;
/// use harness_memory::compact::artifacts::LargeResults;
///
/// fn around(
///     tools: Arc<dyn DynToolRegistry>,
///     store: Arc<dyn DynArtifactStore>,
///     clock: Arc<dyn Clock>,
/// ) -> LargeResults {
///     LargeResults::new(tools, store, clock).from_bytes(16 * 1024)
/// }
/// ```
#[derive(derive_more::Debug)]
pub struct LargeResults {
    #[debug(skip)]
    inner: Arc<dyn DynToolRegistry>,
    #[debug(skip)]
    store: Arc<dyn DynArtifactStore>,
    #[debug(skip)]
    clock: Arc<dyn Clock>,
    from: usize,
    excerpt: usize,
}

impl LargeResults {
    /// The tools of `inner`; blocks above 32 KiB go to `store`, and 2,000 characters of a text stay.
    pub fn new(
        inner: Arc<dyn DynToolRegistry>,
        store: Arc<dyn DynArtifactStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { inner, store, clock, from: FROM, excerpt: EXCERPT }
    }

    /// Sets the size in bytes above which blocks are stored.
    #[must_use]
    pub fn from_bytes(self, bytes: usize) -> Self {
        Self { from: bytes, ..self }
    }

    /// Sets the characters of a text that stay in the result.
    #[must_use]
    pub fn with_excerpt(self, characters: usize) -> Self {
        Self { excerpt: characters, ..self }
    }

    /// Remainder of a block; `None` when it is small, or could not be stored.
    async fn left_of(&self, block: &Block, cx: &ToolCx) -> Option<Block> {
        let (content, media_type) = content(block)?;
        if content.len() <= self.from {
            return None;
        }
        let label = format!("result of {} for call {}", cx.call.name, cx.call.id);
        let mut meta = ArtifactMeta::default();
        meta.owner.clone_from(&cx.origin.session);
        media_type.clone_into(&mut meta.media_type);
        meta.label.clone_from(&label);
        meta.created_at = self.clock.now();
        match self.store.put_boxed(content.as_bytes(), meta).await {
            Ok(id) => {
                let text = block.as_text();
                Some(Block::text(pointer(&id, &label, content.len(), text, self.excerpt)))
            }
            Err(error) => {
                tracing::warn!(call = %cx.call.id, %error, "a large result stays in the transcript");
                None
            }
        }
    }
}

/// Content of a block for the store, and its media type.
fn content(block: &Block) -> Option<(&str, &str)> {
    if let Block::Image(image) = block {
        return Some((image.data.as_deref()?, image.mime_type.as_deref().unwrap_or("image/*")));
    }
    Some((block.as_text()?, "text/plain"))
}

impl ToolRegistry for LargeResults {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.inner.list_boxed(scope).await
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.inner.check_dyn(call)
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.inner.delegates_dyn(call, origin)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let place = cx.clone();
        let mut outcome = self.inner.call_boxed(cx).await?;
        if place.call.name == READ_ARTIFACT {
            return Ok(outcome);
        }
        for at in 0..outcome.content.len() {
            let Some(block) = outcome.content.get(at) else { break };
            let Some(left) = self.left_of(block, &place).await else { continue };
            if let Some(block) = outcome.content.get_mut(at) {
                *block = left;
            }
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use harness_core::testing::{ScriptedTools, VirtualClock};
    use harness_core::{ArtifactId, Time};
    use harness_host::testing::ArtifactShelf;
    use harness_host::{ArtifactPart, ArtifactStore, StorageError};

    use super::*;

    /// What is left of a result of the tool `name`.
    async fn left(store: Arc<dyn DynArtifactStore>, name: &str, block: Block) -> Block {
        let mut outcome = ToolOutcome::text("");
        outcome.content = vec![block];
        let tools = ScriptedTools::new([ToolDef::new(name, "")]).answering([outcome]);
        let clock = Arc::new(VirtualClock::jumping(Time(0)));
        let tools = LargeResults::new(Arc::new(tools), store, clock).from_bytes(10).with_excerpt(4);
        let call = ToolCall::new("c1", name, harness_core::Json::empty_object());
        let outcome = tools.call(ToolCx::for_call(Arc::new(call))).await.unwrap();
        outcome.content.first().cloned().unwrap()
    }

    #[tokio::test]
    async fn a_large_text_is_stored_and_its_beginning_stays() {
        let store = Arc::new(ArtifactShelf::default());
        let kept = left(Arc::<ArtifactShelf>::clone(&store), "look", Block::text("0123456789ab")).await;
        let text = kept.as_text().unwrap();
        let id = text.split('"').nth(1).unwrap();
        assert!(
            text.contains("12 bytes") && text.ends_with("Excerpt: 01 [8 characters left out] ab"),
            "{text}"
        );
        let part = store.read(&ArtifactId::from(id), 0..99, None, Time(0)).await.unwrap().unwrap();
        assert_eq!(&*part.bytes, b"0123456789ab");
    }

    #[tokio::test]
    async fn what_is_small_or_was_read_back_stays() {
        let store = || Arc::new(ArtifactShelf::default());
        let small = Block::text("0123456789");
        assert_eq!(left(store(), "look", small.clone()).await, small);
        let read = Block::text("0123456789ab");
        assert_eq!(left(store(), READ_ARTIFACT, read.clone()).await, read);
    }

    #[tokio::test]
    async fn an_image_goes_whole() {
        let image = Block::image("aGVsbG8gd29ybGQh", "image/png");
        let kept = left(Arc::new(ArtifactShelf::default()), "look", image).await;
        assert!(kept.as_text().unwrap().contains("16 bytes"), "{kept:?}");
    }

    /// A store that is full.
    struct Full;

    impl ArtifactStore for Full {
        async fn put(&self, _: &[u8], _: ArtifactMeta) -> Result<ArtifactId, StorageError> {
            Err(StorageError::new("artifact.full", "the store is full"))
        }

        async fn read(
            &self,
            _: &ArtifactId,
            _: std::ops::Range<u64>,
            _: Option<&harness_core::SessionId>,
            _: Time,
        ) -> Result<Option<ArtifactPart>, StorageError> {
            Ok(None)
        }

        async fn delete(&self, _: &ArtifactId) -> Result<bool, StorageError> {
            Ok(false)
        }
    }

    #[tokio::test]
    async fn a_store_that_fails_loses_nothing() {
        let block = Block::text("0123456789ab");
        assert_eq!(left(Arc::new(Full), "look", block.clone()).await, block);
    }
}
