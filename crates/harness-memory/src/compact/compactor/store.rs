//! The rung that stores large contents elsewhere.

use harness_core::Fault;
use harness_core::FaultSource;
use harness_core::message::{Block, Message, ToolResultMessage};
use harness_core::port::ViewCx;
use harness_host::{ArtifactMeta, DynArtifactStore, StorageError};

use super::draft::Draft;
use super::mark::{Form, Mark};
use super::rungs::{Means, left_of};
use crate::compact::artifacts::pointer;
use crate::compact::durability::ToolNames;
use crate::compact::group::GroupKind;
use crate::compact::tokens::content_tokens;

/// Result of storing.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) groups: u32,
    pub(super) failed: Option<Fault>,
}

/// Stores large results and images, oldest group first, until the target is met. Where the store fails, the
/// content stays in the view, and nothing more is tried.
pub(super) async fn externalize(
    draft: &mut Draft,
    means: &Means<'_>,
    store: &dyn DynArtifactStore,
    cx: &ViewCx,
) -> Stored {
    let mut done = Stored::default();
    for at in draft.candidates() {
        if means.are_done(draft) || cx.cancel.is_cancelled() {
            break;
        }
        let slot = draft.slots.get(at);
        let slot = slot.filter(|slot| matches!(slot.kind, GroupKind::ToolCall | GroupKind::User));
        let Some(slot) = slot.filter(|slot| matches!(slot.form, Form::Whole | Form::Cleared)) else {
            continue;
        };
        let (form, messages) = (slot.form, slot.messages.clone());
        let mut left = Vec::with_capacity(messages.len());
        let mut any = false;
        let names = ToolNames::of(&messages);
        for message in &messages {
            match shorter(message, &names, means, store, cx).await {
                Ok(Some(shorter)) => {
                    any = true;
                    left.push(shorter);
                }
                Ok(None) => left.push(Message::clone(message)),
                Err(error) => {
                    let text = format!("a tool result stays in the view, it could not be stored: {error}");
                    done.failed = Some(Fault::new(FaultSource::Compactor, error.kind, text));
                    return done;
                }
            }
        }
        if any && draft.try_replace(at, form.max(Form::Stored), left, means.counter) {
            done.groups += 1;
        }
    }
    done
}

/// The message with a pointer in place of what was stored; `None` when it is small enough.
async fn shorter(
    message: &Message,
    names: &ToolNames<'_>,
    means: &Means<'_>,
    store: &dyn DynArtifactStore,
    cx: &ViewCx,
) -> Result<Option<Message>, StorageError> {
    match message {
        Message::ToolResult(result) if !Mark::is_on(result) => {
            let policy = means.durability.policy_of(names.name_of(result));
            let from = policy.externalize_threshold_tokens.unwrap_or(means.policy.externalize_from);
            if content_tokens(means.counter, message) < from {
                return Ok(None);
            }
            stored_result(result, names.name_of(result), means, store, cx).await.map(|left| Some(left.into()))
        }
        Message::User(user) if user.content.iter().any(is_inline_image) => {
            let mut left = user.clone();
            for block in left.content.iter_mut().filter(|block| is_inline_image(block)) {
                *block = stored_block(block, "an image of the user's", means, store, cx).await?;
            }
            left.content.push(Mark::new(Form::Stored).block());
            Ok(Some(left.into()))
        }
        Message::ToolResult(_)
        | Message::User(_)
        | Message::System(_)
        | Message::Assistant(_)
        | Message::Custom(_)
        | _ => Ok(None),
    }
}

fn is_inline_image(block: &Block) -> bool {
    matches!(block, Block::Image(image) if image.data.is_some())
}

async fn stored_result(
    result: &ToolResultMessage,
    name: &str,
    means: &Means<'_>,
    store: &dyn DynArtifactStore,
    cx: &ViewCx,
) -> Result<ToolResultMessage, StorageError> {
    let label = format!("result of {name} for call {}", result.tool_call_id);
    let mut left = left_of(result, Block::text(""), Form::Stored);
    let mark = left.content.pop();
    left.content.clear();
    for block in &result.content {
        left.content.push(stored_block(block, &label, means, store, cx).await?);
    }
    left.content.extend(mark);
    Ok(left)
}

/// Content of a block for the store, and its media type.
fn large(block: &Block, excerpt: usize) -> Option<(&str, &str)> {
    if let Block::Image(image) = block {
        return Some((image.data.as_deref()?, image.mime_type.as_deref().unwrap_or("image/*")));
    }
    let text = block.as_text().filter(|text| text.chars().nth(excerpt).is_some())?;
    Some((text, "text/plain"))
}

/// A pointer in place of a text that is longer than an excerpt, or of an image; anything else as it is.
async fn stored_block(
    block: &Block,
    label: &str,
    means: &Means<'_>,
    store: &dyn DynArtifactStore,
    cx: &ViewCx,
) -> Result<Block, StorageError> {
    let Some((bytes, media_type)) = large(block, means.policy.excerpt) else { return Ok(block.clone()) };
    let mut meta = ArtifactMeta::default();
    meta.owner.clone_from(&cx.origin.session);
    media_type.clone_into(&mut meta.media_type);
    label.clone_into(&mut meta.label);
    meta.created_at = cx.now;
    let id = store.put_boxed(bytes.as_bytes(), meta).await?;
    let text = (media_type == "text/plain").then_some(bytes);
    Ok(Block::text(pointer(&id, label, bytes.len(), text, means.policy.excerpt)))
}
