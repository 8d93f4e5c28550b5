//! Content of a result for the model.

use harness_core::Json;
use harness_core::message::Block;
use harness_host::process::{Capture, Shown};
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Maximum size of the base64 data of one image, sound or file: 8 MiB. Larger data is omitted with a note.
pub const MAX_DATA: usize = 8 * 1024 * 1024;

/// Maximum number of blocks of one result; the rest is omitted with a note.
const MAX_BLOCKS: usize = 200;

/// Turns a server's blocks into ours. `room` bytes of text are kept: of a text that is longer than what
/// is left, the beginning and the end.
pub(super) fn blocks(content: Vec<ContentBlock>, mut room: usize) -> Vec<Block> {
    let more = content.len().saturating_sub(MAX_BLOCKS);
    let mut blocks: Vec<Block> =
        content.into_iter().take(MAX_BLOCKS).map(|block| block_of(block, &mut room)).collect();
    if more > 0 {
        blocks.push(Block::text(format!("[... {more} blocks left out ...]")));
    }
    blocks
}

fn block_of(block: ContentBlock, room: &mut usize) -> Block {
    let mut written = serde_json::to_value(&block).unwrap_or_default();
    written.sort_all_objects();
    let kept = match block {
        ContentBlock::Text(text) => {
            let mut kept =
                with_rest(json!({"type": "text", "text": fitted(&text.text, room)}), &written, &["text"]);
            if let Some(annotations) = kept.get_mut("annotations") {
                // Ours is a list.
                *annotations = json!([annotations.take()]);
            }
            kept
        }
        ContentBlock::Image(image) if image.data.len() > MAX_DATA => {
            too_long("image", &image.mime_type, image.data.len())
        }
        ContentBlock::Audio(audio) if audio.data.len() > MAX_DATA => {
            too_long("audio", &audio.mime_type, audio.data.len())
        }
        // The keys are ours, too.
        ContentBlock::Image(_) | ContentBlock::Audio(_) => written,
        ContentBlock::Resource(resource) => {
            with_rest(resource_of(resource.resource, room), &written, &["resource"])
        }
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("[resource {}: {}", link.name, link.uri);
            for part in [&link.mime_type, &link.description].into_iter().flatten() {
                text.push_str(", ");
                text.push_str(part);
            }
            text.push(']');
            json!({"type": "text", "text": fitted(&text, room), "mcpResourceLink": written})
        }
        _ => json!({"type": "text", "text": fitted(&written.to_string(), room)}),
    };
    read(kept)
}

/// A resource by value: its text, or its data as an image, a sound or a file.
fn resource_of(resource: ResourceContents, room: &mut usize) -> Value {
    match resource {
        ResourceContents::TextResourceContents { uri, mime_type, text, meta } => {
            json!({
                "type": "text",
                "text": format!("[resource {uri}]\n{}", fitted(&text, room)),
                "mcpResource": {"_meta": meta, "mimeType": mime_type, "uri": uri},
            })
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, meta } => {
            let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
            if blob.len() > MAX_DATA {
                return too_long(&format!("resource {uri}"), kind, blob.len());
            }
            let origin = json!({"_meta": meta, "uri": uri});
            if let Some(class @ ("image" | "audio")) = kind.split('/').next() {
                return json!({"type": class, "data": blob, "mimeType": kind, "mcpResource": origin});
            }
            let name = uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&uri);
            json!({"type": "file", "data": blob, "mimeType": kind, "name": name, "mcpResource": origin})
        }
        _ => json!({"type": "text", "text": "[a resource of a kind that is not known here]"}),
    }
}

fn too_long(what: &str, kind: &str, bytes: usize) -> Value {
    let text =
        format!("[{what} ({kind}) left out: {bytes} bytes of base64, and at most {MAX_DATA} are kept]");
    json!({"type": "text", "text": text})
}

/// The block with what the written one says beside its content: annotations and metadata.
fn with_rest(mut block: Value, written: &Value, content: &[&str]) -> Value {
    if let (Some(block), Some(written)) = (block.as_object_mut(), written.as_object()) {
        for (key, value) in written.iter().filter(|(key, _)| !content.contains(&key.as_str())) {
            if !block.contains_key(key) {
                block.insert(key.clone(), value.clone());
            }
        }
    }
    block
}

/// The text, or its beginning and end, within `room`.
pub(super) fn fitted(text: &str, room: &mut usize) -> String {
    let mut capture = Capture::new(*room);
    capture.push(text.as_bytes());
    *room = room.saturating_sub(text.len());
    match capture.show(true) {
        Shown::Text { text, .. } => text,
        Shown::Binary(bytes) => format!("[... {bytes} bytes left out ...]"),
    }
}

fn read(block: Value) -> Block {
    let block = Json::from(block);
    block.to().unwrap_or_else(|_| Block::text(block.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(block: &str, room: usize, expected: &str) {
        let content: ContentBlock = serde_json::from_str(block).unwrap();
        let blocks = blocks(vec![content], room);
        assert_eq!(Json::of(&blocks).unwrap().text(), format!("[{expected}]"));
    }

    #[test]
    fn every_kind_of_block_is_kept_with_all_that_it_says() {
        check(r#"{"type":"text","text":"hi"}"#, 100, r#"{"type":"text","text":"hi"}"#);
        check(
            r#"{"type":"text","text":"hi","annotations":{"audience":["user"]},"_meta":{"k":1}}"#,
            100,
            r#"{"type":"text","text":"hi","annotations":[{"audience":["user"]}],"_meta":{"k":1}}"#,
        );
        check(
            r#"{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1.0}}"#,
            100,
            r#"{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1.0}}"#,
        );
        check(
            r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#,
            100,
            r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#,
        );
    }

    #[test]
    fn resources_are_texts_media_or_files() {
        check(
            r#"{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"hi"}}"#,
            100,
            r#"{"type":"text","text":"[resource file:///a.txt]\nhi","mcpResource":{"_meta":null,"mimeType":"text/plain","uri":"file:///a.txt"}}"#,
        );
        check(
            r#"{"type":"resource","resource":{"uri":"x:/a.png","mimeType":"image/png","blob":"aGk="}}"#,
            100,
            r#"{"type":"image","data":"aGk=","mimeType":"image/png","mcpResource":{"_meta":null,"uri":"x:/a.png"}}"#,
        );
        check(
            r#"{"type":"resource","resource":{"uri":"x:/d/a.zip","blob":"aGk="}}"#,
            100,
            r#"{"type":"file","data":"aGk=","mimeType":"application/octet-stream","name":"a.zip","mcpResource":{"_meta":null,"uri":"x:/d/a.zip"}}"#,
        );
        check(
            r#"{"type":"resource_link","uri":"file:///a.txt","name":"a","mimeType":"text/plain","description":"notes"}"#,
            100,
            r#"{"type":"text","text":"[resource a: file:///a.txt, text/plain, notes]","mcpResourceLink":{"description":"notes","mimeType":"text/plain","name":"a","type":"resource_link","uri":"file:///a.txt"}}"#,
        );
    }

    #[test]
    fn texts_share_one_bound() {
        let text = |text: &str| ContentBlock::text(text);
        let blocks = blocks(vec![text("12345678"), text("12345678"), text("12345678")], 12);
        let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
        assert_eq!(
            texts,
            ["12345678", "12\n[... 4 bytes left out ...]\n78", "\n[... 8 bytes left out ...]\n"]
        );
    }

    #[test]
    fn data_and_blocks_have_bounds() {
        let long = "A".repeat(MAX_DATA + 1);
        let image = blocks(vec![ContentBlock::image(long, "image/png")], 10);
        let said = "[image (image/png) left out: 8388609 bytes of base64, and at most 8388608 are kept]";
        assert_eq!(image, [Block::text(said)]);
        let many = blocks((0..MAX_BLOCKS + 3).map(|_| ContentBlock::text("x")).collect(), 1000);
        assert_eq!(many.len(), MAX_BLOCKS + 1);
        assert_eq!(many.last().and_then(Block::as_text), Some("[... 3 blocks left out ...]"));
    }
}
