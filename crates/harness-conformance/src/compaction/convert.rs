//! Messages of vectors as they are written, and as the product's.

use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_core::{Json, ToolName};
use harness_memory::compact::durability::ToolResultEnvelope;
use serde::Deserialize;
use serde_json::Value;

use crate::known::Known;

/// A message of a vector.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageWords {
    pub(super) id: String,
    role: Role,
    text: Option<Text>,
    #[serde(default)]
    calls: Vec<CallWords>,
    #[serde(default)]
    results: Vec<ResultWords>,
    reasoning: Option<String>,
    envelope: Option<Known<ToolResultEnvelope>>,
    pub(super) tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A text, or what repeats so often.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Written(String),
    Repeated(Repeated),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeated {
    repeat: (String, usize),
}

impl Text {
    fn written(self) -> String {
        match self {
            Self::Written(text) => text,
            Self::Repeated(Repeated { repeat: (unit, times) }) => unit.repeat(times),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallWords {
    id: String,
    tool: String,
    #[serde(default = "Json::empty_object")]
    args: Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultWords {
    id: String,
    text: Text,
}

impl MessageWords {
    /// The product's messages: it has one for each result.
    pub(super) fn messages(self) -> Vec<Message> {
        let said = self.text.map(Text::written);
        match self.role {
            Role::System => vec![SystemMessage::text(said.unwrap_or_default()).into()],
            Role::User => vec![Message::user(said.unwrap_or_default())],
            Role::Assistant => {
                let thought = self.reasoning.map(Block::thinking);
                let calls =
                    self.calls.into_iter().map(|call| ToolCall::new(call.id, call.tool, call.args).into());
                let mut answer = AssistantMessage::default();
                answer.content = thought.into_iter().chain(said.map(Block::text)).chain(calls).collect();
                vec![answer.into()]
            }
            Role::Tool => {
                let envelope = self.envelope.map(|known| known.0.block());
                self.results.into_iter().map(|part| result(part, envelope.clone())).collect()
            }
        }
    }
}

/// The source's results do not name their tool: the product finds it at the call.
fn result(part: ResultWords, envelope: Option<Block>) -> Message {
    let unnamed = ToolCall::new(part.id, ToolName::from(""), Json::empty_object());
    let content = [Block::text(part.text.written())].into_iter().chain(envelope).collect();
    ToolResultMessage::new(&unnamed, content, false).into()
}

/// Long texts are given by their beginning and their length.
pub(super) fn shown(text: &str) -> String {
    let length = text.chars().count();
    if length <= 160 {
        return text.to_owned();
    }
    format!("{}…({length} chars)", text.chars().take(60).collect::<String>())
}

/// Puts a wanted text with `<…>` in it, which stands for any wording, in the place of a text that fits.
pub(super) fn free_texts(wanted: &Value, got: &mut Value) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (key, wanted) in wanted {
                if let Some(got) = got.get_mut(key) {
                    free_texts(wanted, got);
                }
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            for (wanted, got) in wanted.iter().zip(got) {
                free_texts(wanted, got);
            }
        }
        (Value::String(wanted), Value::String(got)) if fits(wanted, got) => got.clone_from(wanted),
        _ => {}
    }
}

fn fits(wanted: &str, got: &str) -> bool {
    let Some((begin, rest)) = wanted.split_once('<') else { return false };
    let Some((_, end)) = rest.split_once('>') else { return false };
    let whole = got.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    // A shown text has lost its end when it is long.
    whole.is_some() || (got.ends_with(" chars)") && begin.starts_with(got.split('…').next().unwrap_or(got)))
}
