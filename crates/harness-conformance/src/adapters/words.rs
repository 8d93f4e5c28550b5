//! The words of vectors of adapters: what is not here is refused.

#![expect(clippy::struct_field_names, reason = "the names are those of the vectors")]

use std::collections::BTreeMap;

use harness::adapters::execution::{ExecutionCapabilities, ExecutionRequest, ExecutionRequirements};
use harness_core::Json;
use serde::de::{Error, IgnoredAny as Any};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use crate::case::closed;
use crate::known::Known;
use crate::turn::words::{Definition, OutputType, Request as Approval, ToolResult};

/// A vector with the words that are for readers.
macro_rules! vectors {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        closed! {
            $(
                #[expect(dead_code, reason = "what is for readers is named, so that all other words are refused")]
                $name {
                    $($field: $type,)*
                    name: Any, note: Option<Any>, upstream_defect: Option<Any>, upstream_crash: Option<Any>,
                    loose_message: Option<Any>,
                }
            )*
        }
    };
}

vectors! {
    CliVector {
        runner: String, mode: CliMode, config: CliConfig, files: Option<BTreeMap<String, String>>, input: CliWords,
        expected: CliExpected,
    }
    CommandVector { preset: Preset, spec: CommandSpec, input: Request, expected: CommandExpected }
    NegotiationVector {
        adapter: Negotiator, capabilities: Option<Known<ExecutionCapabilities>>, input: Request, expected: Value,
    }
    RequestVector { adapter: ChatAdapter, config: ChatConfig, input: Json, expected: Sent }
    ResponseVector {
        adapter: ChatAdapter, config: ChatConfig, input: Option<Json>, transport: Option<ChatTransport>,
        replies: Vec<Reply>, expected: Answered,
    }
    StreamVector {
        chunks_base64: Vec<String>, content_type: String, text: Any, cut: Any, byte_length: Any, http_status: Any,
        expected: Value,
    }
    RelayVector {
        direction: Direction, config: RelayConfig, transport: Option<RelayTransportWords>,
        inbound_events: Option<Vec<Value>>, runner: Option<RunnerWords>, input: Option<Request>, expected: Value,
    }
}

closed! {
    CliConfig { command: Option<String>, script: Option<String> }
    CliWords {
        prompt: Option<String>, prompt_repeat: Option<Repeat>, timeout_ms: u64, model: Option<String>,
        cwd: Option<String>,
    }
    Repeat { text: String, times: usize }
    CliExpected { spawn: Option<Value>, #[serde(default)] stdin: Value, result: Value }
    #[expect(dead_code, reason = "what a stand-in does follows from what is expected of it")]
    CommandSpec {
        files: Option<BTreeMap<String, String>>, command: Option<String>, #[serde(default)] args: Vec<String>,
        #[serde(default)] env: BTreeMap<String, String>, #[serde(default)] backend_id: String,
        command_label: Option<String>, capabilities: Option<Known<ExecutionCapabilities>>, timeout_ms: Option<u64>,
        parser: Option<Parser>, #[serde(default)] non_retryable_exit_codes: Vec<i64>,
        trace_degraded_from_negotiation: Option<Any>, fake: Option<Fake>, #[serde(default)] stdout: String,
        #[serde(default)] exit_code: i64,
    }
    CommandExpected { argv: Option<Value>, #[serde(default)] stdin: Value, result: Option<Value> }
    #[expect(dead_code, reason = "the suite's clock is the only one")]
    ChatConfig {
        api_key: Option<String>, model: Option<String>, timeout_ms: Option<u64>,
        transient_retry_delay_ms: Option<u64>, default_temperature: Option<Number>, clock: Option<Any>,
    }
    Sent { request_count: usize, method: Value, headers: BTreeMap<String, Value>, body: Value }
    Answered { request_count: usize, result: Value }
    #[derive(Default)]
    Reply {
        status: Option<u16>, #[serde(default)] headers: BTreeMap<String, String>, #[serde(default)] body: String,
        #[serde(default)] hang: bool, #[serde(default)] close_without_reply: bool,
    }
    #[expect(dead_code, reason = "the suite's clock is the only one")]
    RelayConfig {
        backend_id: Option<String>, channel_id: Option<String>, orchestrator_name: Option<String>,
        worker_name: Option<String>, workspace_id: Option<String>, timeout_ms: Option<u64>,
        #[serde(default)] shutdown_after_execute: bool, capabilities: Option<Known<ExecutionCapabilities>>,
        spawn_worker: Option<SpawnWords>, register_worker: Option<bool>, runner_id: Option<String>,
        model: Option<String>, cwd: Option<String>, clock: Option<Any>,
    }
    SpawnWords {
        enabled: bool, cli: String, name: Option<String>, task: Option<String>, model: Option<String>,
        cwd: Option<String>, team: Option<String>, include_workflow_conventions: Option<bool>,
    }
    #[derive(Clone, Default)]
    RelayTransportWords {
        #[serde(default)] agents: Vec<String>, start_error: Option<String>, send_error: Option<String>,
        spawn_result: Option<Spawned>,
    }
    #[derive(Clone)]
    #[expect(dead_code, reason = "the product knows whom it asked for")]
    Spawned { success: bool, name: Option<Any>, error: Option<String> }
    #[derive(Default)]
    RunnerWords {
        status: Option<RunnerStatus>, #[serde(default)] text: String, metadata: Option<Json>,
        #[serde(default)] error: String, stderr: Option<String>, exit_code: Option<i32>, throws: Option<String>,
    }
    /// Request to the model of a turn.
    #[derive(Default)]
    #[expect(dead_code, reason = "what no request of the product holds is named, so that all other words are refused")]
    Step {
        assistant_id: Option<Any>, turn_id: Option<Any>, session_id: Option<Any>, user_id: Option<Any>,
        thread_id: Option<Any>, workspace_id: Option<Any>, iteration: Option<Any>, tool_call_count: Option<Any>,
        elapsed_ms: Option<Any>, remaining_budget: Option<Any>, metadata: Option<Any>,
        continuation: Option<TurnContinuation>, message: Option<MessageWords>,
        #[serde(default)] instructions: Instructions, context: Option<ContextWords>,
        #[serde(default)] transcript: Vec<Item>, #[serde(default)] available_tools: Vec<Definition>,
        #[serde(default)] thread_history: Vec<Said>,
    }
    #[expect(dead_code, reason = "no request holds it")]
    TurnContinuation {
        id: Any, r#type: Any, created_at: Option<Any>, turn_id: Option<Any>, session_id: Option<Any>,
        resume_token: Option<Any>, state: Option<Any>,
    }
    Item {
        r#type: ItemType, #[serde(rename = "iteration")] _iteration: Option<Any>, output_type: Option<OutputType>,
        text: Option<String>, result: Option<ToolResult>, question: Option<String>, request: Option<Approval>,
    }
    Said { role: Role, content: String }
    /// The words of a request to a backend, which the product reads itself.
    #[expect(dead_code, reason = "which words there are is what counts")]
    RequestWords {
        assistant_id: Any, turn_id: Any, session_id: Option<Any>, user_id: Option<Any>, thread_id: Option<Any>,
        message: MessageWords, instructions: Instructions, context: Option<ContextWords>,
        continuation: Option<BackendContinuation>, tools: Option<Vec<ToolWords>>,
        requirements: Option<Known<ExecutionRequirements>>, metadata: Option<Any>,
    }
    #[expect(dead_code, reason = "which words there are is what counts")]
    BackendContinuation {
        continuation_id: Option<Any>, kind: Option<Any>, state: Option<Any>, metadata: Option<Any>,
    }
    #[expect(dead_code, reason = "which words there are is what counts")]
    ToolWords {
        name: Any, description: Option<Any>, input_schema: Option<Any>, requires_approval: Option<Any>,
        metadata: Option<Any>,
    }
    #[expect(dead_code, reason = "only the text is said to a model")]
    MessageWords {
        id: Option<Any>, text: String, received_at: Option<Any>, attachments: Option<Vec<Attachment>>,
    }
    #[expect(dead_code, reason = "which words there are is what counts")]
    Attachment {
        id: Any, r#type: Any, name: Option<Any>, url: Option<Any>, metadata: Option<Any>,
    }
    #[derive(Default)]
    #[expect(dead_code, reason = "the style of an answer is a wish that no adapter reads")]
    Instructions {
        #[serde(default)] system_prompt: String, #[serde(default)] developer_prompt: String,
        response_style: Option<Style>,
    }
    #[expect(dead_code, reason = "as the style")]
    Style { prefer_markdown: Option<bool>, max_answer_chars: Option<u64> }
    ContextWords { #[serde(default)] blocks: Vec<Block>, structured: Option<Value> }
    #[expect(dead_code, reason = "which words there are is what counts")]
    Block {
        id: Any, label: Any, text: Option<Any>, content: Option<Any>, category: Option<Any>, metadata: Option<Any>,
        importance: Option<Any>,
    }
}

macro_rules! words {
    ($($case:literal $name:ident { $($word:ident),* $(,)? })*) => {
        $(
            #[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
            #[serde(rename_all = $case)]
            pub(crate) enum $name { $($word),* }
        )*
    };
}

words! {
    "lowercase" CliMode { Argv, Process }
    "kebab-case" Preset { None, ClaudeCode }
    "kebab-case" Parser { JsonObject, PlainText }
    "kebab-case" Negotiator { Openrouter, LocalNone, LocalMid, LocalFull, ClaudeCode, Relay }
    "kebab-case" ChatAdapter { Execution, Model, SingleShot }
    "kebab-case" ChatTransport { ConnectionRefused }
    "lowercase" Direction { Adapter, Bridge }
    "lowercase" RunnerStatus { Completed, Failed }
    "snake_case" ItemType { AssistantStep, ToolResult, ClarificationRequest, ApprovalRequest }
    "lowercase" Role { User, Assistant }
}

/// Behavior of a stand-in for Claude Code.
#[derive(Clone, Copy, Deserialize)]
pub(crate) enum Fake {
    #[serde(rename = "prints its argv")]
    PrintsItsArguments,
    #[serde(rename = "prints stdout, exits")]
    PrintsAndExits,
}

/// A request to a backend, as it is written, without a word that the product would keep unread.
pub(crate) struct Request(pub(crate) ExecutionRequest);

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Json::deserialize(deserializer)?;
        let read = written.to::<RequestWords>().and_then(|_| written.to());
        read.map(Self).map_err(D::Error::custom)
    }
}
