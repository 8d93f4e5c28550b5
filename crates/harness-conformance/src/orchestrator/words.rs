//! Every word of a vector: what is not here is refused.

#![expect(dead_code, reason = "which words there are is what counts; they are read where they are acted on")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny as Any;
use serde_json::Value;

use crate::prompts::SkillWords;

macro_rules! closed {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(super) struct $name { $($field: $type),* }
        )*
    };
}

closed! {
    Input { options: Option<Options>, model_script: Option<Vec<Entry>>, actions: Vec<Action> }
    Options {
        system_prompt: Option<String>, thinking_level: Option<String>, tools: Option<Vec<Tool>>,
        active_tools: Option<Vec<String>>, tool_execution: Option<Execution>, steering_mode: Option<Delivery>,
        follow_up_mode: Option<Delivery>, session: Option<Session>, fail_appends: Option<u64>,
        seed_file: Option<String>, skills: Option<Vec<SkillWords>>, templates: Option<Vec<Template>>,
        context_window: Option<u64>, compactor: Option<Compactor>, api_keys: Option<Vec<String>>,
        convert_drop_role: Option<Role>, build_system_prompt: Option<bool>,
    }
    Compactor {
        reserve_tokens: Option<u64>, keep_recent_tokens: Option<u64>, summaries: Option<Vec<String>>,
        fail_on: Option<Vec<u64>>,
    }
    Tool {
        name: String, parameters: Option<Any>, mode: Option<Execution>, no_execute: Option<bool>,
        prepare_fill: Option<BTreeMap<String, Value>>, default: Option<Behaviour>,
        calls: Option<BTreeMap<String, Behaviour>>,
    }
    Behaviour {
        during: Option<Vec<Action>>, wait: Option<String>, open: Option<String>, progress: Option<Vec<String>>,
        wait_cancel: Option<bool>, panic: Option<String>, error: Option<String>, text: Option<String>,
        echo_args: Option<bool>, terminate: Option<bool>,
    }
    Entry {
        during: Option<Vec<Action>>, setup_error: Option<String>, chunks: Option<Vec<Chunk>>, fail: Option<String>,
        no_terminal: Option<bool>, stop: Option<String>, usage: Option<Usage>, response_id: Option<String>,
        bare: Option<bool>,
    }
    Call { r#type: CallType, id: String, name: String, arguments: Value }
    TextChunk { text: String }
    ThoughtChunk { thinking: String, signature: Option<String> }
    ToolChunk { tool: Call }
    ActionChunk { r#do: Action }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Image {
    data: String,
    mime_type: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Cost {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    total: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Usage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    total_tokens: u64,
    cost: Option<Cost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Template {
    name: String,
    content: String,
}

/// A part of an answer: the word that it begins with says which.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Chunk;

impl TryFrom<Value> for Chunk {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        if value.get("tool").is_some() {
            ToolChunk::deserialize(value)?;
        } else if value.get("do").is_some() {
            ActionChunk::deserialize(value)?;
        } else if value.get("thinking").is_some() {
            ThoughtChunk::deserialize(value)?;
        } else {
            TextChunk::deserialize(value)?;
        }
        Ok(Self)
    }
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Action {
    Prompt { text: String, images: Option<Vec<Image>> },
    Continue {},
    Steer { text: String, images: Option<Vec<Image>> },
    FollowUp { text: String, images: Option<Vec<Image>> },
    Abort {},
    Compact {},
    SetActiveTools { names: Vec<String> },
    SetTools { names: Vec<String> },
    SetModel { model: String },
    SetThinkingLevel { level: String },
    SetSystemPrompt { text: String },
    Skill { name: String, args: Option<Vec<String>> },
    Template { name: String, args: Option<Vec<String>> },
    Reopen {},
    Snapshot {},
    ActiveTools {},
}

macro_rules! one_of {
    ($($name:ident { $($word:literal = $variant:ident),* })*) => {
        $(
            #[derive(Deserialize)]
            enum $name { $(#[serde(rename = $word)] $variant),* }
        )*
    };
}

one_of! {
    Execution { "parallel" = Parallel, "sequential" = Sequential }
    Delivery { "one-at-a-time" = One, "all" = All }
    Session { "none" = No, "memory" = Memory, "jsonl" = Jsonl, "failing" = Failing }
    Role { "user" = User, "assistant" = Assistant, "toolResult" = ToolResult, "system" = System, "custom" = Custom }
    CallType { "toolCall" = ToolCall }
}
