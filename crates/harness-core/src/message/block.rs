//! The typed blocks that messages are made of.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{CallId, ToolName};
use crate::json::{Extra, Json};
use crate::stored::{Item, Stored, read_tag, rebuild, write_raw, write_tagged};

crate::stored! {
    /// Text. Allowed in every message.
    #[derive(Default)]
    pub struct TextBlock {
        /// The text; may be empty.
        text: String = "text",
        /// A provider's signature over the text.
        text_signature: Option<String> = "textSignature",
        /// Citations and the like, as the provider sent them.
        annotations: Option<Vec<Json>> = "annotations",
        /// Token probabilities, as the provider sent them.
        logprobs: Option<Json> = "logprobs",
        /// The phase of an answer (for example `commentary`), where a provider tells it.
        phase: Option<String> = "phase",
        /// Blocks of one provider item share its id.
        item_id: Option<String> = "itemId",
        /// The provider's status of the item.
        status: Option<String> = "status",
    }
}

crate::stored! {
    /// An image, by value or by reference. Allowed in system, user, tool result and custom messages.
    #[derive(Default)]
    pub struct ImageBlock {
        /// Base64 data; then `mime_type` is needed.
        data: Option<String> = "data",
        /// The media type of `data`.
        mime_type: Option<String> = "mimeType",
        /// Where the image is.
        url: Option<String> = "url",
        /// A file already uploaded to the provider.
        file_id: Option<String> = "fileId",
        /// The wished level of detail.
        detail: Option<String> = "detail",
    }
}

crate::stored! {
    /// A file. Allowed in user and tool result messages.
    pub struct FileBlock {
        /// Base64 data.
        data: Option<String> = "data",
        /// Where the file is.
        url: Option<String> = "url",
        /// A file already uploaded to the provider.
        file_id: Option<String> = "fileId",
        /// The media type.
        mime_type: Option<String> = "mimeType",
        /// The file's name.
        name: Option<String> = "name",
    }
}

crate::stored! {
    /// Sound. Allowed in user, assistant and tool result messages.
    pub struct AudioBlock {
        /// Base64 data.
        data: Option<String> = "data",
        /// Where the sound is.
        url: Option<String> = "url",
        /// The media type.
        mime_type: Option<String> = "mimeType",
        /// What is said in it.
        transcript: Option<String> = "transcript",
    }
}

crate::stored! {
    /// What a model thought before it answered. Allowed in assistant messages.
    #[derive(Default)]
    pub struct ThinkingBlock {
        /// The text; a placeholder when `redacted`.
        thinking: String = "thinking",
        /// The provider's signature, or the encrypted payload when `redacted`.
        thinking_signature: Option<String> = "thinkingSignature",
        /// Whether the provider withholds the text.
        redacted: Option<bool> = "redacted",
        /// The provider's id of the item.
        id: Option<String> = "id",
        /// Summaries of the thinking.
        summary: Option<Vec<String>> = "summary",
        /// The wire field that the text came in.
        field: Option<String> = "field",
    }
}

crate::stored! {
    /// A call that the model asks for. Allowed in assistant messages.
    pub struct ToolCall {
        /// The provider's id, repeated in the result. A turn makes it unique in its transcript.
        id: CallId = "id",
        /// The tool's name.
        name: ToolName = "name",
        /// The arguments: an object, numbers exact, keys in order.
        arguments: Json = "arguments",
        /// The provider's own text, whenever it is not what `arguments` would print as.
        raw_arguments: Option<String> = "rawArguments",
        /// How `arguments` came about: `strict`, `repaired`, `partial` or `invalid`.
        arguments_mode: Option<String> = "argumentsMode",
        /// A provider's signature over the thought behind the call.
        thought_signature: Option<String> = "thoughtSignature",
        /// The provider's id of the item.
        item_id: Option<String> = "itemId",
        /// The provider's status of the item.
        status: Option<String> = "status",
        /// `function` (when absent), `handoff` or `hosted`.
        kind: Option<String> = "kind",
        /// What a provider-hosted tool did.
        hosted: Option<Json> = "hosted",
    }
}

impl TextBlock {
    /// A text without anything else.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl ThinkingBlock {
    /// A thought without a signature.
    pub fn new(text: impl Into<String>) -> Self {
        Self { thinking: text.into(), ..Self::default() }
    }
}

impl ToolCall {
    /// A call of `name` with `arguments`.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, arguments: Json) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            raw_arguments: None,
            arguments_mode: None,
            thought_signature: None,
            item_id: None,
            status: None,
            kind: None,
            hosted: None,
            extra: Extra::default(),
        }
    }
}

crate::stored! {
    /// The model declines. Allowed in assistant messages.
    pub struct RefusalBlock {
        /// What the model says.
        text: String = "text",
    }
}

crate::stored! {
    /// Something went wrong. Allowed in assistant and tool result messages.
    pub struct ErrorBlock {
        /// What happened, for people.
        message: String = "message",
        /// A stable code.
        code: Option<String> = "code",
        /// Anything else.
        details: Option<Json> = "details",
    }
}

/// How far an approval has come.
///
/// ```
/// use harness_core::message::ApprovalState;
///
/// assert_eq!(serde_json::to_string(&ApprovalState::Granted)?, r#""granted""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Somebody must decide.
    Requested,
    /// Allowed.
    Granted,
    /// Refused.
    Denied,
}

crate::stored! {
    /// An approval and its state. Allowed in assistant and tool result messages.
    pub struct ApprovalBlock {
        /// The call it is about.
        call_id: CallId = "callId",
        /// How far it has come.
        state: ApprovalState = "state",
        /// Why.
        reason: Option<String> = "reason",
    }
}

crate::stored! {
    /// A block of somebody else's vocabulary. Allowed in every message.
    pub struct ExtensionBlock {
        /// Whose vocabulary; `harness` is this crate's.
        namespace: String = "namespace",
        /// The word.
        name: String = "name",
        /// Its content.
        data: Json = "data",
    }
}

macro_rules! blocks {
    ($( $(#[$doc:meta])* $variant:ident($ty:ty) = $tag:literal ),* $(,)?) => {
        /// One piece of a message, tagged by `type`.
        ///
        /// Each is shared: a clone costs one reference count, however long its text is. [`Arc::make_mut`] changes one.
        /// A block whose type is not known is kept whole, written back unchanged and never sent to a model.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Block {
            $( $(#[$doc])* $variant(Arc<$ty>), )*
            /// A block of a type that this version does not know.
            Unknown(Json),
        }

        $(
            impl From<$ty> for Block {
                fn from(body: $ty) -> Self {
                    Self::$variant(Arc::new(body))
                }
            }
        )*

        impl Serialize for Block {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(body) => write_tagged(serializer, "type", $tag, &**body), )*
                    Self::Unknown(raw) => write_raw(serializer, raw),
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
                        let (kept, tag) = read_tag("type", &mut map)?;
                        let named = |e| A::Error::custom(format_args!("block `{tag}`: {e}"));
                        match &*tag {
                            $( $tag => <$ty>::read_map(kept, &mut map)
                                .map(|body| Block::$variant(Arc::new(body))).map_err(named), )*
                            _ => rebuild(kept, "type", &tag, &mut map).map(Block::Unknown),
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
    /// An image.
    Image(ImageBlock) = "image",
    /// A file.
    File(FileBlock) = "file",
    /// Sound.
    Audio(AudioBlock) = "audio",
    /// What the model thought.
    Thinking(ThinkingBlock) = "thinking",
    /// The model declines.
    Refusal(RefusalBlock) = "refusal",
    /// Something went wrong.
    Error(ErrorBlock) = "error",
    /// An approval and its state.
    Approval(ApprovalBlock) = "approval",
    /// A block of somebody else's vocabulary.
    Extension(ExtensionBlock) = "extension",
    /// A call that the model asks for.
    ToolCall(ToolCall) = "toolCall",
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(TextBlock::new(text))
    }

    /// A thinking block without signature.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::from(ThinkingBlock::new(text))
    }

    /// A refusal block.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::from(RefusalBlock { text: text.into(), extra: Extra::default() })
    }

    /// An image by its base64 data and media type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::from(ImageBlock {
            data: Some(data.into()),
            mime_type: Some(mime_type.into()),
            ..ImageBlock::default()
        })
    }

    /// An error block.
    pub fn error(message: impl Into<String>, code: Option<String>, details: Option<Json>) -> Self {
        Self::from(ErrorBlock { message: message.into(), code, details, extra: Extra::default() })
    }

    /// An extension block.
    pub fn extension(namespace: impl Into<String>, name: impl Into<String>, data: Json) -> Self {
        Self::from(ExtensionBlock {
            namespace: namespace.into(),
            name: name.into(),
            data,
            extra: Extra::default(),
        })
    }

    /// The text, when this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(block) = self { Some(&block.text) } else { None }
    }

    /// The call, when this is a tool call.
    pub fn as_tool_call(&self) -> Option<&Arc<ToolCall>> {
        if let Self::ToolCall(call) = self { Some(call) } else { None }
    }

    /// The data of an extension block of this crate's vocabulary with that name.
    pub(crate) fn as_own(&self, word: &str) -> Option<&Json> {
        let Self::Extension(block) = self else { return None };
        (block.namespace == "harness" && block.name == word).then_some(&block.data)
    }
}

impl Item for Block {
    /// Reads a list of blocks; a plain string is read as one text block.
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
