//! Every word of a vector: what is not here is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::prompts::SkillWords;

macro_rules! closed {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$on:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Clone, Deserialize)]
            #[serde(deny_unknown_fields)]
            $(#[$attribute])*
            pub(super) struct $name { $($(#[$on])* pub(super) $field: $type),* }
        )*
    };
}

closed! {
    Input { options: Option<Options>, model_script: Option<Vec<Entry>>, actions: Vec<Action> }
    #[derive(Default)]
    #[serde(default)]
    Options {
        system_prompt: String, thinking_level: String, tools: Vec<Tool>, active_tools: Option<Vec<String>>,
        tool_execution: Option<Execution>, steering_mode: Delivery, follow_up_mode: Delivery, session: Session,
        fail_appends: u64, seed_file: Option<String>, skills: Vec<SkillWords>, templates: Vec<Template>,
        context_window: u64, compactor: Option<Compactor>, api_keys: Option<Vec<String>>,
        convert_drop_role: Option<Role>, build_system_prompt: bool,
    }
    Tool {
        name: String, parameters: Option<Value>, mode: Option<Execution>, no_execute: Option<bool>,
        prepare_fill: Option<Map<String, Value>>, default: Option<Behaviour>,
        calls: Option<BTreeMap<String, Behaviour>>,
    }
    #[derive(Default)]
    #[serde(default)]
    Behaviour {
        during: Vec<Action>, wait: Option<String>, open: Option<String>, progress: Vec<String>,
        wait_cancel: bool, panic: Option<String>, error: Option<String>, text: Option<String>,
        echo_args: bool, terminate: bool,
    }
    #[derive(Default)]
    #[serde(default)]
    Entry {
        during: Vec<Action>, setup_error: Option<String>, chunks: Vec<Chunk>, fail: Option<String>,
        no_terminal: bool, stop: Option<String>, usage: Option<Usage>, response_id: Option<String>, bare: bool,
    }
    #[derive(Default)]
    #[serde(default)]
    Compactor { reserve_tokens: u64, keep_recent_tokens: u64, summaries: Vec<String>, fail_on: Vec<usize> }
    #[derive(Serialize)]
    Said { text: String, images: Option<Vec<Image>> }
    #[derive(Serialize)]
    Invoked { name: String, args: Option<Vec<String>> }
    #[derive(Serialize)]
    Call { r#type: CallType, id: String, name: String, arguments: Value }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    Image { data: String, mime_type: String }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    Cost { input: f64, output: f64, cache_read: f64, cache_write: f64, total: f64 }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    Usage {
        input: u64, output: u64, cache_read: u64, cache_write: u64, total_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")] cost: Option<Cost>,
    }
    #[serde(rename_all = "PascalCase")]
    Template { name: String, content: String }
    TextChunk { text: String }
    ThoughtChunk { thinking: String, signature: Option<String> }
    ToolChunk { tool: Call }
    ActionChunk { r#do: Action }
}

/// A part of an answer: the word that it begins with says which.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Chunk {
    Text(TextChunk),
    Thought(ThoughtChunk),
    Tool(ToolChunk),
    Act(ActionChunk),
}

/// Action in a run or from outside.
#[derive(Clone, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Action {
    Prompt(Said),
    Continue {},
    Steer(Said),
    FollowUp(Said),
    Abort {},
    Compact {},
    SetActiveTools { names: Vec<String> },
    SetTools { names: Vec<String> },
    SetModel { model: String },
    SetThinkingLevel { level: String },
    SetSystemPrompt { text: String },
    Skill(Invoked),
    Template(Invoked),
    Reopen {},
    Snapshot {},
    ActiveTools {},
}

macro_rules! one_of {
    ($($name:ident { $($word:literal = $variant:ident),* })*) => {
        $(
            #[derive(Clone, Copy, Default, Deserialize, Serialize, PartialEq, Eq)]
            pub(super) enum $name { #[default] $(#[serde(rename = $word)] $variant),* }
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
