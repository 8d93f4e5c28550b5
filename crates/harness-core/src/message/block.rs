//! Typed blocks of messages.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{CallId, ToolName};
use crate::json::Json;
use crate::schema::tagged;
use crate::stored::{Item, Stored, read_tag, read_unknown, write_tagged};

crate::schema::described! {
    /// Text. Allowed in every message.
    #[derive(Default)]
    pub struct TextBlock {
        /// Text; may be empty.
        text: String = "text",
        /// Provider's signature over the text.
        text_signature: Option<String> = "textSignature",
        /// Citations and similar notes, as the provider sent them.
        annotations: Option<Vec<Json>> = "annotations",
        /// Token probabilities, as the provider sent them.
        logprobs: Option<Json> = "logprobs",
        /// Phase of an answer (for example `commentary`), if the provider reports it.
        phase: Option<String> = "phase",
        /// Provider's item id; blocks of one item share it.
        item_id: Option<String> = "itemId",
        /// Provider's status of the item.
        status: Option<String> = "status",
    }
}

crate::schema::described! {
    /// Image, by value or by reference. Allowed in system, user, tool result and custom messages.
    #[derive(Default)]
    pub struct ImageBlock {
        /// Base64 data; requires `mime_type`.
        data: Option<String> = "data",
        /// Media type of `data`.
        mime_type: Option<String> = "mimeType",
        /// URL of the image.
        url: Option<String> = "url",
        /// File uploaded to the provider.
        file_id: Option<String> = "fileId",
        /// Requested level of detail.
        detail: Option<String> = "detail",
    }
}

crate::schema::described! {
    /// File. Allowed in user and tool result messages.
    #[derive(Default)]
    pub struct FileBlock {
        /// Base64 data.
        data: Option<String> = "data",
        /// URL of the file.
        url: Option<String> = "url",
        /// File uploaded to the provider.
        file_id: Option<String> = "fileId",
        /// Media type.
        mime_type: Option<String> = "mimeType",
        /// File name.
        name: Option<String> = "name",
    }
}

crate::schema::described! {
    /// Audio. Allowed in user, assistant and tool result messages.
    #[derive(Default)]
    pub struct AudioBlock {
        /// Base64 data.
        data: Option<String> = "data",
        /// URL of the audio.
        url: Option<String> = "url",
        /// Media type.
        mime_type: Option<String> = "mimeType",
        /// Transcript of the speech.
        transcript: Option<String> = "transcript",
    }
}

crate::schema::described! {
    /// Reasoning of a model. Allowed in assistant messages.
    #[derive(Default)]
    pub struct ThinkingBlock {
        /// Text; a placeholder if `redacted`.
        thinking: String = "thinking",
        /// Provider's signature, or the encrypted payload if `redacted`.
        thinking_signature: Option<String> = "thinkingSignature",
        /// Whether the provider withholds the text.
        redacted: Option<bool> = "redacted",
        /// Provider's item id.
        id: Option<String> = "id",
        /// Summaries of the reasoning.
        summary: Option<Vec<String>> = "summary",
        /// Wire field of the text.
        field: Option<String> = "field",
    }
}

crate::schema::described! {
    /// Tool call of a model. Allowed in assistant messages.
    #[derive(Default)]
    pub struct ToolCall {
        /// Provider's id, repeated in the result. A turn makes it unique in its transcript.
        id: CallId = "id",
        /// Tool name.
        name: ToolName = "name",
        /// Arguments: an object, numbers exact, keys in order.
        arguments: Json = "arguments",
        /// Provider's text, if it differs from the text of `arguments`.
        raw_arguments: Option<String> = "rawArguments",
        /// Parser result for `arguments`: `strict`, `repaired`, `partial` or `invalid`.
        arguments_mode: Option<String> = "argumentsMode",
        /// Provider's signature over the reasoning that led to the call.
        thought_signature: Option<String> = "thoughtSignature",
        /// Provider's item id.
        item_id: Option<String> = "itemId",
        /// Provider's status of the item.
        status: Option<String> = "status",
        /// `function` (default), `handoff` or `hosted`.
        kind: Option<String> = "kind",
        /// Report of a tool that the provider ran.
        hosted: Option<Json> = "hosted",
    }
}

crate::schema::described! {
    /// Refusal of a model. Allowed in assistant messages.
    #[derive(Default)]
    pub struct RefusalBlock {
        /// Text of the refusal.
        text: String = "text",
    }
}

crate::schema::described! {
    /// Error. Allowed in assistant and tool result messages.
    #[derive(Default)]
    pub struct ErrorBlock {
        /// Human-readable message.
        message: String = "message",
        /// Stable code.
        code: Option<String> = "code",
        /// Further data.
        details: Option<Json> = "details",
    }
}

/// State of an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Pending.
    #[default]
    Requested,
    /// Approved.
    Granted,
    /// Denied.
    Denied,
}

crate::schema::described! {
    /// Approval and its state. Allowed in assistant and tool result messages.
    #[derive(Default)]
    pub struct ApprovalBlock {
        /// Call that needs approval.
        call_id: CallId = "callId",
        /// State of the approval.
        state: ApprovalState = "state",
        /// Reason.
        reason: Option<String> = "reason",
    }
}

crate::schema::described! {
    /// Block of another vocabulary. Allowed in every message.
    #[derive(Default)]
    pub struct ExtensionBlock {
        /// Vocabulary; `harness` is this crate's.
        namespace: String = "namespace",
        /// Name in the vocabulary.
        name: String = "name",
        /// Content.
        data: Json = "data",
    }
}

impl TextBlock {
    /// Creates a block of plain text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl ThinkingBlock {
    /// Creates a block without a signature.
    pub fn new(text: impl Into<String>) -> Self {
        Self { thinking: text.into(), ..Self::default() }
    }
}

impl ToolCall {
    /// Creates a call.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, arguments: Json) -> Self {
        Self { id: id.into(), name: name.into(), arguments, ..Self::default() }
    }
}

macro_rules! blocks {
    ($( $(#[doc = $doc:literal])* $variant:ident($ty:ty) = $tag:literal ),* $(,)?) => {
        /// Part of a message, tagged by `type`.
        ///
        /// Blocks are shared: a clone costs one reference count. [`Arc::make_mut`] changes one. Blocks of unknown types are
        /// kept, written back unchanged and never sent to a model.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Block {
            $( $(#[doc = $doc])* $variant(Arc<$ty>), )*
            /// Block of an unknown type.
            Unknown(Json),
        }

        $(
            impl From<$ty> for Block {
                fn from(body: $ty) -> Self {
                    Self::$variant(Arc::new(body))
                }
            }
        )*

        impl JsonSchema for Block {
            fn schema_name() -> Cow<'static, str> {
                "Block".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let known = [$( tagged::<$ty>(generator, "type", $tag) ),*];
                let unknown = json_schema!({
                    "description": "Block of an unknown type.",
                    "type": "object",
                    "properties": { "type": { "type": "string", "not": { "enum": [$($tag),*] } } },
                    "required": ["type"],
                });
                let all: Vec<Schema> = known.into_iter().chain([unknown]).collect();
                json_schema!({ "description": "Part of a message, tagged by `type`.", "oneOf": all })
            }
        }

        impl Serialize for Block {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(body) => write_tagged(serializer, "type", $tag, &**body), )*
                    Self::Unknown(raw) => raw.serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for Block {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Blocks;
                impl<'de> Visitor<'de> for Blocks {
                    type Value = Block;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a block: an object with a `type`")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
                        let (before, tag) = read_tag("type", &mut map)?;
                        let named = |e| A::Error::custom(format_args!("block `{tag}`: {e}"));
                        match &*tag {
                            $( $tag => <$ty>::read_map(before, &mut map)
                                .map(|body| Block::$variant(Arc::new(body))).map_err(named), )*
                            _ => read_unknown(before, "type", &tag, &mut map).map(Block::Unknown),
                        }
                    }
                }
                deserializer.deserialize_map(Blocks)
            }
        }
    };
}

blocks! {
    /// Text.
    Text(TextBlock) = "text",
    /// Image.
    Image(ImageBlock) = "image",
    /// File.
    File(FileBlock) = "file",
    /// Audio.
    Audio(AudioBlock) = "audio",
    /// Reasoning of a model.
    Thinking(ThinkingBlock) = "thinking",
    /// Refusal of a model.
    Refusal(RefusalBlock) = "refusal",
    /// Error.
    Error(ErrorBlock) = "error",
    /// Approval and its state.
    Approval(ApprovalBlock) = "approval",
    /// Block of another vocabulary.
    Extension(ExtensionBlock) = "extension",
    /// Tool call of a model.
    ToolCall(ToolCall) = "toolCall",
}

impl Block {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(TextBlock::new(text))
    }

    /// Creates a thinking block without a signature.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::from(ThinkingBlock::new(text))
    }

    /// Creates a refusal block.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::from(RefusalBlock { text: text.into(), ..RefusalBlock::default() })
    }

    /// Creates an image block of base64 data.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (Some(data.into()), Some(mime_type.into()));
        Self::from(ImageBlock { data, mime_type, ..ImageBlock::default() })
    }

    /// Creates an error block.
    pub fn error(message: impl Into<String>, code: Option<String>, details: Option<Json>) -> Self {
        Self::from(ErrorBlock { message: message.into(), code, details, ..ErrorBlock::default() })
    }

    /// Creates an extension block.
    pub fn extension(namespace: impl Into<String>, name: impl Into<String>, data: Json) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        Self::from(ExtensionBlock { namespace, name, data, ..ExtensionBlock::default() })
    }

    /// Returns the text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(block) = self { Some(&block.text) } else { None }
    }

    /// Returns the call of a tool call block.
    pub fn as_tool_call(&self) -> Option<&Arc<ToolCall>> {
        if let Self::ToolCall(call) = self { Some(call) } else { None }
    }

    /// Returns the data of an extension block of this crate's vocabulary.
    pub(crate) fn as_own(&self, name: &str) -> Option<&Json> {
        let Self::Extension(block) = self else { return None };
        (block.namespace == "harness" && block.name == name).then_some(&block.data)
    }
}

impl Item for Block {
    /// Reads a list of blocks, or a string as one text block.
    fn read_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Self>, D::Error> {
        struct Content;
        impl<'de> Visitor<'de> for Content {
            type Value = Vec<Block>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of blocks or a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Vec<Block>, E> {
                Ok(vec![Block::text(text)])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Block>, A::Error> {
                let mut blocks = Vec::with_capacity(seq.size_hint().unwrap_or(1).min(64));
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(blocks)
            }
        }
        deserializer.deserialize_any(Content)
    }
}

crate::slots! {
    ApprovalState => None,
}
