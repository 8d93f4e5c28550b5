//! Descriptors as typed values, for programs that build them, and for their JSON Schema.
//!
//! A program fills an [`AgentHarnessDescriptor`] and [builds](AgentHarnessDescriptor::build) it. The value
//! is written as YAML and read like a file, so both have the same checks and the same hash. Comments of
//! the fields are what editors show.
//!
//! ```
//! use harness_descriptor::source::{Agent, AgentHarnessDescriptor, Runtime, Tool};
//!
//! let descriptor = AgentHarnessDescriptor {
//!     runtime: Runtime { entry_agent: "desk".into(), ..Runtime::default() },
//!     tools: [("find".into(), Tool { target: "orders.find".into(), ..Tool::default() })].into(),
//!     agents: [(
//!         "desk".into(),
//!         Agent {
//!             model: Some("small".into()),
//!             instructions: Some("Answer questions about orders.".into()),
//!             tools: vec!["find".into()],
//!             ..Agent::default()
//!         },
//!     )]
//!     .into(),
//!     ..AgentHarnessDescriptor::default()
//! };
//! let built = descriptor.build()?;
//!
//! let file = harness_descriptor::load_text("
//! runtime: { entry_agent: desk }
//! tools: { find: { target: orders.find } }
//! agents:
//!   desk: { model: small, instructions: Answer questions about orders., tools: [find] }
//! ").unwrap();
//! assert_eq!(built.hash(), file.hash());
//! # Ok::<(), Box<harness_descriptor::check::Report>>(())
//! ```

mod form;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::check::{CheckOptions, Report};
use crate::descriptor::Descriptor;
use crate::load::TextSource;
use crate::value::Value;

/// A graph of agents: their instructions, tools and handoffs, and the context that they read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Agent descriptor", extend("patternProperties" = { "^x-": true }))]
pub struct AgentHarnessDescriptor {
    /// Version of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Version")]
    pub descriptor_version: Option<Version>,
    /// Identification of the descriptor. `name` and `version` are reported with every run; other
    /// keys are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Metadata")]
    pub metadata: Option<Metadata>,
    /// Entry agent and limits of a run.
    pub runtime: Runtime,
    /// Context values that instructions and conditions read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Context")]
    pub context: Option<Context>,
    /// Named texts that `instructions_sequence` uses with `ref`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instruction_parts: BTreeMap<String, String>,
    /// Tools by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Tool>,
    /// Defaults of the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgentDefaults")]
    pub agent_defaults: Option<AgentDefaults>,
    /// How runs continue until the work is done. An extension of this project: other readers of the
    /// format keep it without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::Run")]
    pub run: Option<Value>,
    /// Data of other programs. It is kept and hashed, but never read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Json>")]
    pub extensions: BTreeMap<String, Value>,
    /// Agents by id.
    #[schemars(extend("minProperties" = 1))]
    pub agents: BTreeMap<String, Agent>,
}

/// Version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the variants are words of the format, and comments would be in the schema")]
pub enum Version {
    #[default]
    #[serde(rename = "aioc.agent_graph.v0")]
    V0,
}

/// Identification of the descriptor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Metadata {
    /// Name of the descriptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Json>")]
    pub name: Option<Value>,
    /// Version of the descriptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Json>")]
    pub version: Option<Value>,
    /// Further keys.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Entry agent and limits of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Runtime {
    /// Id of the agent that a run starts with.
    #[schemars(regex(pattern = r"\S"))]
    pub entry_agent: String,
    /// Maximum number of iterations of a run: model calls of its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<NonZeroU32>,
    /// Alias of `max_iterations`.
    #[schemars(extend("deprecated" = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
}

/// Context values of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Context {
    /// Initial values of a run, by their dotted path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, ContextField>,
    /// Paths that instructions and conditions may read: `true`, or a mapping with details. `false`
    /// removes a declaration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<String, Reference>,
}

/// An initial value of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct ContextField {
    /// Type of the value.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueType")]
    pub value_type: Option<ValueType>,
    /// The value. `{{input.message}}` is replaced by the user's message, `{{runtime.now_iso}}` by
    /// the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Json>")]
    pub default: Option<Value>,
    /// Whether the value may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub optional: Option<bool>,
    /// Whether tools may change the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub mutable: Option<bool>,
    /// Whether records must not show the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub redact: Option<bool>,
    /// Human-readable description of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub description: Option<String>,
}

/// Declaration of a path.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reference {
    /// `true` declares the path, `false` does not.
    Flag(bool),
    /// A declaration with details.
    Declared(Declaration),
}

/// A path that may be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Declaration {
    /// Type of the value; conditions require `boolean`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueType")]
    pub value_type: Option<ValueType>,
    /// Whether a placeholder without a value becomes empty instead of failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub optional: Option<bool>,
    /// Human-readable description of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub description: Option<String>,
}

/// Type of a context value. Only `boolean` has an effect: conditions require it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants are words of the format, and comments would be in the schema")]
pub enum ValueType {
    Any,
    Array,
    Boolean,
    Date,
    Integer,
    List,
    Null,
    Number,
    Object,
    String,
    Timestamp,
}

/// A tool that agents may list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Tool {
    /// Target of the tool in the program's registry.
    #[schemars(regex(pattern = r"\S"), extend("examples" = ["tool://orders/find"]))]
    pub target: String,
    /// Human-readable description of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub description: Option<String>,
}

/// Defaults of the agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = form::one_form()))]
pub struct AgentDefaults {
    /// Model of agents without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<form::NonEmpty>")]
    pub model: Option<String>,
    /// Settings of the model, as a whole.
    #[serde(rename = "modelSettings", skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<ModelSettings>,
    /// Instructions of agents without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Prompt file with the instructions, relative to the descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::PromptPath")]
    pub instructions_file: Option<String>,
    /// Prompt files of the instructions, placed before `instructions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "form::PromptPaths")]
    pub instructions_files: Vec<String>,
    /// Files, parts and texts of the instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "form::Sequence")]
    pub instructions_sequence: Vec<SequenceItem>,
}

/// Agent of the graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = form::one_form()))]
pub struct Agent {
    /// Name for models and users. Default: the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description for other agents.
    #[serde(rename = "handoffDescription", skip_serializing_if = "Option::is_none")]
    pub handoff_description: Option<String>,
    /// Model. Default: that of `agent_defaults`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<form::NonEmpty>")]
    pub model: Option<String>,
    /// Settings of the model. They replace those of `agent_defaults` as a whole.
    #[serde(rename = "modelSettings", skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<ModelSettings>,
    /// JSON Schema that the agent's answers must match, or a JSON or YAML file with it, relative to the descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::Output")]
    pub output: Option<Value>,
    /// Ids of the tools that the agent may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<form::ToolId>>")]
    pub tools: Vec<String>,
    /// Agents to which the agent may hand off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Handoff>,
    /// Instructions. Default: those of `agent_defaults`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Prompt file with the instructions, relative to the descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::PromptPath")]
    pub instructions_file: Option<String>,
    /// Prompt files of the instructions, placed before `instructions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "form::PromptPaths")]
    pub instructions_files: Vec<String>,
    /// Files, parts and texts of the instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "form::Sequence")]
    pub instructions_sequence: Vec<SequenceItem>,
}

/// Instructions of an agent. `{{context.PATH}}` is replaced by a value of the context.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Instructions {
    /// One text.
    Text(String),
    /// Parts, joined by a blank line.
    Parts(Vec<Part>),
}

/// A part of instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Part {
    /// Text of the part.
    pub text: String,
    /// Condition of the part. Default: always included.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Condition")]
    pub condition: Option<Condition>,
}

/// An item of instructions: exactly one of `file`, `ref` and `text`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend(
        "patternProperties" = { "^x-": true },
        "oneOf" = [{ "required": ["file"] }, { "required": ["ref"] }, { "required": ["text"] }],
    )
)]
pub struct SequenceItem {
    /// Prompt file, relative to the descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::PromptPath")]
    pub file: Option<String>,
    /// Name of an entry of `instruction_parts`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "form::NonEmpty")]
    pub part: Option<String>,
    /// Text of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
    /// Condition of the item. Default: always included.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Condition")]
    pub condition: Option<Condition>,
}

/// A condition: a context path, declared with type `boolean`, that must be `true`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct Condition {
    /// Context path of the condition.
    #[schemars(with = "form::NonEmpty")]
    pub context: String,
}

/// Target of a handoff.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Handoff {
    /// Id of the agent.
    Id(#[schemars(with = "form::NonEmpty")] String),
    /// Id with a condition.
    Conditional(HandoffItem),
}

/// Handoff with an optional condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
pub struct HandoffItem {
    /// Id of the agent that takes over.
    #[schemars(with = "form::NonEmpty")]
    pub agent: String,
    /// Condition of the handoff. Default: always offered.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Condition")]
    pub condition: Option<Condition>,
}

/// Settings of the model, sent unchanged; common ones are listed below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModelSettings {
    /// Randomness of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Share of likely tokens to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Number of likely tokens to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<i64>,
    /// Maximum length of an answer in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// Maximum length of an answer in tokens, including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<i64>,
    /// Penalty for tokens that were already used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens by their frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Seed for repeatable answers, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether several tools may be called in one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Reasoning effort of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Reasoning settings in the provider's own terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub reasoning: Option<BTreeMap<String, Value>>,
    /// Format of the answer in the provider's own terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub response_format: Option<BTreeMap<String, Value>>,
    /// Further settings.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

impl AgentHarnessDescriptor {
    /// Checks and materializes the descriptor, which must not use prompt files.
    ///
    /// [`Self::source`] adds prompt files and limits.
    ///
    /// # Errors
    /// A report of all errors. Its places are in the text of [`Self::to_yaml`].
    pub fn build(&self) -> Result<Descriptor, Box<Report>> {
        let report = self.source().check(&CheckOptions::default());
        match report.descriptor() {
            Some(descriptor) => Ok(descriptor.clone()),
            None => Err(Box::new(report)),
        }
    }

    /// The descriptor as a source to load or check, for example with the texts of its prompt files.
    pub fn source(&self) -> TextSource {
        TextSource::new(self.to_yaml())
    }

    /// The descriptor as YAML.
    pub fn to_yaml(&self) -> String {
        // The types have no map with keys that are not strings, so nothing can fail.
        let json = serde_json::to_value(self).unwrap_or_default();
        serde_json::from_value::<Value>(json).unwrap_or_default().to_yaml()
    }
}

impl From<&str> for Instructions {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&str> for Handoff {
    /// A handoff without a condition.
    fn from(agent: &str) -> Self {
        Self::Id(agent.to_owned())
    }
}
