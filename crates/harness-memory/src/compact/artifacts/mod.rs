//! Artifacts: contents stored outside the transcript, and reading them back.

use std::sync::Arc;

use harness_core::ArtifactId;
use harness_core::message::Block;
use harness_core::port::Clock;
use harness_core::tool::{DynTool, ToolCx, ToolError, tool_fn};
use harness_host::DynArtifactStore;
use schemars::JsonSchema;
use serde::Deserialize;

use super::summarize::cut;

mod large;

pub use large::LargeResults;

/// The name of the tool that reads artifacts.
pub const READ_ARTIFACT: &str = "read_artifact";

/// Bytes that one call gives when it does not say how many.
const DEFAULT_LIMIT: u64 = 8 * 1024;
/// Bytes that one call gives at most.
const MAX_LIMIT: u64 = 64 * 1024;
/// Bytes of an image that is read back at most; an image is given whole.
const MAX_IMAGE: u64 = 8 * 1024 * 1024;

/// The text that stands for a content which is stored elsewhere.
pub(super) fn pointer(
    id: &ArtifactId,
    label: &str,
    bytes: usize,
    text: Option<&str>,
    excerpt: usize,
) -> String {
    let how = format!("[Stored elsewhere: {label}, {bytes} bytes. Read it with {READ_ARTIFACT}(\"{id}\").]");
    text.map_or_else(|| how.clone(), |text| format!("{how}\nExcerpt: {}", cut(text, excerpt)))
}

#[derive(Deserialize, JsonSchema)]
struct Asked {
    /// Id of the artifact, `sha256:` and 64 digits.
    artifact_id: String,
    /// The byte to begin at; 0 when absent.
    #[serde(default)]
    offset: u64,
    /// How many bytes, at most 65536; 8192 when absent.
    limit: Option<u64>,
}

/// The tool `read_artifact(artifact_id, offset?, limit?)`: gives a part of what was stored elsewhere, and says
/// how to get the next. An artifact of another session, or one that has expired, is not found.
///
/// Offer it beside a [`crate::compact::ContextCompactor`] that has the same store.
pub fn read_artifact_tool(store: Arc<dyn DynArtifactStore>, clock: Arc<dyn Clock>) -> Arc<dyn DynTool> {
    let description = "Reads back a content that was stored outside of the conversation because of its size.";
    let tool = tool_fn(READ_ARTIFACT, description, move |asked: Asked, cx: ToolCx| {
        let (store, now) = (Arc::clone(&store), clock.now());
        async move { read(&*store, asked, &cx, now).await }
    });
    Arc::new(tool.pure())
}

async fn read(
    store: &dyn DynArtifactStore,
    asked: Asked,
    cx: &ToolCx,
    now: harness_core::Time,
) -> Result<Block, ToolError> {
    let id = ArtifactId::from(asked.artifact_id);
    let from = asked.offset;
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let session = cx.origin.session.as_ref();
    let get = |range| store.read_boxed(&id, range, session, now);
    let part = get(from..from.saturating_add(limit)).await?;
    let part =
        part.ok_or_else(|| ToolError::new("artifact_not_found", format!("artifact `{id}` not found")))?;
    if part.meta.media_type.starts_with("image/") {
        let whole = get(0..MAX_IMAGE).await?.filter(|whole| whole.range.end == whole.meta.size);
        let whole = whole.ok_or_else(|| {
            ToolError::new("artifact_too_large", format!("the image `{id}` is larger than {MAX_IMAGE} bytes"))
        })?;
        let data = String::from_utf8_lossy(&whole.bytes).into_owned();
        return Ok(Block::image(data, whole.meta.media_type));
    }
    let size = part.meta.size;
    let from = from.min(size);
    let (text, end) = whole_characters(&part.bytes, from);
    let rest = if end < size {
        format!("\n[bytes {from} to {end} of {size}; continue with offset {end}]")
    } else {
        format!("\n[bytes {from} to {end} of {size}; this is the end]")
    };
    Ok(Block::text(text + &rest))
}

/// The text of a part, and where it ends. A character that the part cuts is left for the next one.
fn whole_characters(bytes: &[u8], from: u64) -> (String, u64) {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default()).into_owned();
    (text, from.saturating_add(whole as u64))
}

#[cfg(test)]
mod tests {
    use harness_core::message::ToolCall;
    use harness_core::testing::VirtualClock;
    use harness_core::{Json, Origin, Time};
    use harness_host::{ArtifactMeta, ArtifactStore as _};

    use harness_host::testing::ArtifactShelf;

    use super::*;

    /// Reads `aä😀`: 1, 2 and 4 bytes.
    async fn check(session: Option<&str>, arguments: &str, expected: &str) {
        let store = Arc::new(ArtifactShelf::default());
        let mut meta = ArtifactMeta::default();
        meta.owner = Some("s1".into());
        meta.sensitivity = harness_host::Sensitivity::Restricted;
        let id = store.put("aä😀".as_bytes(), meta).await.unwrap();
        let tool = read_artifact_tool(store, Arc::new(VirtualClock::jumping(Time(0))));
        let arguments = format!(r#"{{"artifact_id":"{id}"{arguments}}}"#);
        let call = ToolCall::new("c1", READ_ARTIFACT, Json::parse(&arguments).unwrap());
        let mut origin = Origin::default();
        origin.session = session.map(Into::into);
        let mut cx = ToolCx::for_call(Arc::new(call));
        cx.origin = Arc::new(origin);
        let outcome = tool.call_boxed(cx).await;
        let text = outcome.content.first().and_then(Block::as_text).unwrap_or_default();
        let code = outcome.error.as_ref().map_or("", |error| &error.code);
        assert_eq!(format!("{code}{text}"), expected);
    }

    #[tokio::test]
    async fn an_artifact_is_read_part_by_part() {
        check(Some("s1"), "", "aä😀\n[bytes 0 to 7 of 7; this is the end]").await;
        check(Some("s1"), r#","limit":2"#, "a\n[bytes 0 to 1 of 7; continue with offset 1]").await;
        check(Some("s1"), r#","offset":1,"limit":4"#, "ä\n[bytes 1 to 3 of 7; continue with offset 3]").await;
        check(Some("s1"), r#","offset":99"#, "\n[bytes 7 to 7 of 7; this is the end]").await;
    }

    #[tokio::test]
    async fn another_session_does_not_find_it() {
        check(Some("s2"), "", "artifact_not_found").await;
        check(None, "", "artifact_not_found").await;
    }
}
