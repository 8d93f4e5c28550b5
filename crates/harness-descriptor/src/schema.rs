//! The JSON Schema of descriptors, for editors.
//!
//! The types below describe the format and nothing else: reading goes through the crate's own
//! loader, which keeps what a typed structure would lose. Their comments are what an editor shows.
#![expect(dead_code, reason = "the types exist for their schema")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// First line of a descriptor that enables editor support, for a schema file next to it.
///
/// `harness schema` prints the schema; `docs/reference/descriptor.schema.json` is a copy.
pub const HEADER: &str = "# yaml-language-server: $schema=descriptor.schema.json";

/// JSON Schema of descriptors as written.
///
/// Misspelled keys are rejected, as when a graph is built. Keys that start with `x-` are free
/// everywhere, and so is the content of the mapping `extensions`. The schema cannot check
/// references (agents, tools, parts, context paths); [`check`](crate::check) does.
pub fn schema() -> Schema {
    schemars::schema_for!(Source)
}

/// [`schema`] as indented JSON with a final line end.
pub fn text() -> String {
    sorted(schema().to_value())
}

/// JSON Schema of contract files, as indented JSON with a final line end.
pub fn contract_text() -> String {
    let mut schema = crate::run::contract_schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".to_owned(), "Contract".into());
    }
    sorted(schema)
}

/// Keys are sorted, whichever order the build keeps them in.
fn sorted(mut schema: Value) -> String {
    schema.sort_all_objects();
    format!("{schema:#}\n")
}

/// A graph of agents: their instructions, tools and handoffs, and the context that they read.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Agent descriptor", extend("patternProperties" = { "^x-": true }))]
struct Source {
    /// Version of the format.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Version")]
    descriptor_version: Option<()>,
    /// Identification of the descriptor. `name` and `version` are reported with every run; other
    /// keys are free.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Metadata")]
    metadata: Option<()>,
    /// Entry agent and limits of a run.
    runtime: Runtime,
    /// Context values that instructions and conditions read.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Context")]
    context: Option<()>,
    /// Named texts that `instructions_sequence` uses with `ref`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, String>")]
    instruction_parts: Option<()>,
    /// Tools by id.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Tool>")]
    tools: Option<()>,
    /// Defaults of the agents.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "AgentDefaults")]
    agent_defaults: Option<()>,
    /// How runs continue until the work is done. An extension of this project: other readers of the
    /// format keep it without effect.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Run")]
    run: Option<()>,
    /// Data of other programs. It is kept and hashed, but never read.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Value>")]
    extensions: Option<()>,
    /// Agents by id.
    #[schemars(extend("minProperties" = 1))]
    agents: BTreeMap<String, Agent>,
}

/// The section `run`, whose shape is defined by a separate table.
struct Run;

impl JsonSchema for Run {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(crate::run::schema()).unwrap_or_default()
    }
}

/// Version of the format.
#[derive(JsonSchema)]
enum Version {
    #[schemars(rename = "aioc.agent_graph.v0")]
    V0,
}

/// Identification of the descriptor.
#[derive(JsonSchema)]
struct Metadata {
    /// Name of the descriptor.
    name: Option<Value>,
    /// Version of the descriptor.
    version: Option<Value>,
}

/// Entry agent and limits of a run.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Runtime {
    /// Id of the agent that a run starts with.
    #[schemars(regex(pattern = r"\S"))]
    entry_agent: String,
    /// Maximum number of iterations of a run: model calls of its agents.
    max_iterations: Option<NonZeroU32>,
    /// Alias of `max_iterations`.
    #[schemars(extend("deprecated" = true))]
    max_turns: Option<NonZeroU32>,
}

/// Context values of a run.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Context {
    /// Initial values of a run, by their dotted path.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, ContextField>")]
    fields: Option<()>,
    /// Paths that instructions and conditions may read: `true`, or a mapping with details. `false`
    /// removes a declaration.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Reference>")]
    references: Option<()>,
}

/// An initial value of a run.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct ContextField {
    /// Type of the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "ValueType")]
    r#type: Option<()>,
    /// The value. `{{input.message}}` is replaced by the user's message, `{{runtime.now_iso}}` by
    /// the time.
    default: Option<Value>,
    /// Whether the value may be missing.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "bool")]
    optional: Option<()>,
    /// Whether tools may change the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "bool")]
    mutable: Option<()>,
    /// Whether records must not show the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "bool")]
    redact: Option<()>,
    /// Human-readable description of the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// Declaration of a path.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Reference {
    /// `true` declares the path, `false` does not.
    Flag(bool),
    /// A declaration with details.
    Declared(Declaration),
}

/// A path that may be read.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Declaration {
    /// Type of the value; conditions require `boolean`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "ValueType")]
    r#type: Option<()>,
    /// Whether a placeholder without a value becomes empty instead of failing.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "bool")]
    optional: Option<()>,
    /// Human-readable description of the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// Type of a context value. Only `boolean` has an effect: conditions require it.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum ValueType {
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
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Tool {
    /// Target of the tool in the program's registry.
    #[schemars(regex(pattern = r"\S"), extend("examples" = ["tool://orders/find"]))]
    target: String,
    /// Human-readable description of the tool.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// Defaults of the agents.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = one_form()))]
struct AgentDefaults {
    /// Model of agents without one.
    model: Option<NonEmpty>,
    /// Settings of the model, as a whole.
    #[schemars(rename = "modelSettings")]
    model_settings: Option<ModelSettings>,
    /// Instructions of agents without any.
    instructions: Option<Instructions>,
    /// Prompt file with the instructions, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    instructions_file: Option<()>,
    /// Prompt files of the instructions, placed before `instructions`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPaths")]
    instructions_files: Option<()>,
    /// Files, parts and texts of the instructions.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Sequence")]
    instructions_sequence: Option<()>,
}

/// Agent of the graph.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = one_form()))]
struct Agent {
    /// Name for models and users. Default: the id.
    name: Option<String>,
    /// Description for other agents.
    #[schemars(rename = "handoffDescription")]
    handoff_description: Option<String>,
    /// Model. Default: that of `agent_defaults`.
    model: Option<NonEmpty>,
    /// Settings of the model. They replace those of `agent_defaults` as a whole.
    #[schemars(rename = "modelSettings")]
    model_settings: Option<ModelSettings>,
    /// JSON Schema that the agent's answers must match, or a JSON or YAML file with it, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Output")]
    output: Option<()>,
    /// Ids of the tools that the agent may call.
    tools: Option<Vec<ToolId>>,
    /// Agents to which the agent may hand off.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Vec<Handoff>")]
    handoffs: Option<()>,
    /// Instructions. Default: those of `agent_defaults`.
    instructions: Option<Instructions>,
    /// Prompt file with the instructions, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    instructions_file: Option<()>,
    /// Prompt files of the instructions, placed before `instructions`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPaths")]
    instructions_files: Option<()>,
    /// Files, parts and texts of the instructions.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Sequence")]
    instructions_sequence: Option<()>,
}

/// Forms of instructions that exclude each other.
fn one_form() -> Value {
    let both = |first: &str, second: &str| serde_json::json!({ "required": [first, second] });
    let files = |form: &str| {
        [both(form, "instructions_file"), both(form, "instructions_files"), both(form, "instructions")]
    };
    let mut pairs = files("instructions_sequence").to_vec();
    pairs.push(both("instructions_file", "instructions_files"));
    pairs.push(both("instructions_file", "instructions"));
    serde_json::json!({ "anyOf": pairs })
}

/// A text with at least one visible character.
#[derive(JsonSchema)]
#[schemars(inline)]
struct NonEmpty(#[schemars(regex(pattern = r"\S"))] String);

/// JSON Schema, or the path of its file.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum Output {
    Inline(serde_json::Map<String, Value>),
    File(PromptPath),
}

/// Id of a tool, a key of `tools`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum ToolId {
    Text(String),
    Number(i64),
}

/// Path of a prompt file, relative to the descriptor and inside its root directory.
#[derive(JsonSchema)]
#[schemars(inline)]
struct PromptPath(
    #[schemars(regex(pattern = r"^(?![A-Za-z][A-Za-z0-9+.-]*://)[^/*?\[\]{}][^*?\[\]{}]*$"))]
    String,
);

/// Paths of prompt files.
#[derive(JsonSchema)]
#[schemars(inline)]
struct PromptPaths(#[schemars(length(min = 1))] Vec<PromptPath>);

/// Items of instructions, in order.
#[derive(JsonSchema)]
#[schemars(inline)]
struct Sequence(#[schemars(length(min = 1))] Vec<SequenceItem>);

/// Instructions of an agent. `{{context.PATH}}` is replaced by a value of the context.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Instructions {
    /// One text.
    Text(String),
    /// Parts, joined by a blank line.
    Parts(Vec<Part>),
}

/// A part of instructions.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Part {
    /// Text of the part.
    text: String,
    /// Condition of the part. Default: always included.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Condition")]
    r#where: Option<()>,
}

/// An item of instructions: exactly one of `file`, `ref` and `text`.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend(
        "patternProperties" = { "^x-": true },
        "oneOf" = [{ "required": ["file"] }, { "required": ["ref"] }, { "required": ["text"] }],
    )
)]
struct SequenceItem {
    /// Prompt file, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    file: Option<()>,
    /// Name of an entry of `instruction_parts`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "NonEmpty")]
    r#ref: Option<()>,
    /// Text of the item.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    text: Option<()>,
    /// Condition of the item. Default: always included.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Condition")]
    r#where: Option<()>,
}

/// A condition: a context path, declared with type `boolean`, that must be `true`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Condition {
    /// Context path of the condition.
    context: NonEmpty,
}

/// Target of a handoff.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Handoff {
    /// Id of the agent.
    Id(NonEmpty),
    /// Id with a condition.
    Conditional(HandoffItem),
}

/// Handoff with an optional condition.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct HandoffItem {
    /// Id of the agent that takes over.
    agent: NonEmpty,
    /// Condition of the handoff. Default: always offered.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Condition")]
    r#where: Option<()>,
}

/// Settings of the model, sent unchanged; common ones are listed below.
#[derive(JsonSchema)]
struct ModelSettings {
    /// Randomness of the answers.
    temperature: Option<f64>,
    /// Share of likely tokens to sample from.
    top_p: Option<f64>,
    /// Number of likely tokens to sample from.
    top_k: Option<i64>,
    /// Maximum length of an answer in tokens.
    max_tokens: Option<i64>,
    /// Maximum length of an answer in tokens, including reasoning.
    max_completion_tokens: Option<i64>,
    /// Penalty for tokens that were already used.
    presence_penalty: Option<f64>,
    /// Penalty for tokens by their frequency.
    frequency_penalty: Option<f64>,
    /// Seed for repeatable answers, if the provider supports it.
    seed: Option<i64>,
    /// Whether several tools may be called in one response.
    parallel_tool_calls: Option<bool>,
    /// Reasoning effort of the model.
    reasoning_effort: Option<String>,
    /// Reasoning settings in the provider's own terms.
    reasoning: Option<BTreeMap<String, Value>>,
    /// Format of the answer in the provider's own terms.
    response_format: Option<BTreeMap<String, Value>>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    use expect_test::expect_file;
    use jsonschema::Validator;

    use crate::check::{CheckOptions, Report, check_file, check_text};
    use crate::faults::Faults;
    use crate::limits::Limits;
    use crate::yaml::{input, reader};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn validator() -> Validator {
        jsonschema::validator_for(&super::schema().to_value()).unwrap()
    }

    /// A descriptor as written, prompts and parts not in place; `None` if it is no YAML.
    fn written(yaml: Vec<u8>) -> Option<serde_json::Value> {
        let text = input::decode(yaml).text;
        let document = reader::read(text.into(), "test".into(), &Limits::default(), &Faults::first()).ok()?;
        serde_json::to_value(document.json_value(document.root()?)).ok()
    }

    /// What makes a descriptor one that the schema need not accept.
    fn is_excused(report: &Report) -> bool {
        let stricter = [
            "descriptor.no_model",
            "lint.type_name",
            "lint.value_type",
            "lint.setting_type",
            "lint.descriptor_version",
        ];
        !report.is_sound() || report.warnings().any(|warning| stricter.contains(&warning.code))
    }

    fn descriptors(folder: &str) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path().join("descriptor.yaml");
            found.extend(path.exists().then_some(path));
        }
        Ok(found)
    }

    #[test]
    fn what_has_no_warning_is_accepted_and_what_is_misspelled_is_not() {
        let validator = validator();
        let (mut accepted, mut refused) = (0, 0);
        for folder in ["fixtures/descriptors", "fixtures/examples", "fixtures/conformance/descriptor"] {
            for path in descriptors(folder).unwrap() {
                let Some(value) = written(fs::read(&path).unwrap()) else { continue };
                let report = check_file(&path, &CheckOptions::default());
                let faults: Vec<String> = validator
                    .iter_errors(&value)
                    .map(|fault| format!("{}: {fault}", fault.instance_path()))
                    .collect();
                if !is_excused(&report) {
                    assert_eq!(faults, Vec::<String>::new(), "{}", path.display());
                    accepted += 1;
                }
                let misspelled = |found: &crate::check::Diagnostic| found.code == "descriptor.unknown_key";
                if report.diagnostics().iter().any(misspelled) {
                    assert_ne!(faults, Vec::<String>::new(), "{}", path.display());
                    refused += 1;
                }
            }
        }
        assert!(accepted > 50 && refused > 2, "{accepted} accepted, {refused} refused");
    }

    #[track_caller]
    fn check(agent: &str, expected: bool) {
        let yaml = format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m, {agent} }} }}\n");
        let value = written(yaml.clone().into_bytes()).unwrap();
        assert_eq!(validator().is_valid(&value), expected, "{agent}");
        let report = check_text(yaml, &CheckOptions::default());
        let named: BTreeSet<&str> = report.diagnostics().iter().map(|found| found.code).collect();
        assert!(expected || !named.is_empty(), "the check finds nothing in {agent}");
    }

    #[track_caller]
    fn check_run(run: &str, expected: bool) {
        let yaml = format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m }} }}\nrun: {run}\n");
        let value = written(yaml.clone().into_bytes()).unwrap();
        assert_eq!(validator().is_valid(&value), expected, "{run}");
        assert_eq!(check_text(yaml, &CheckOptions::default()).is_sound(), expected, "{run}");
    }

    #[test]
    fn the_schema_and_the_check_of_run_agree() {
        for right in [
            "{}",
            "{ mode: interactive, x-why: 1 }",
            "{ limits: { cost: '2.50', elapsed: unlimited, tool_calls: 0 } }",
            "{ signal: false, work_items: true, stall: { threshold: 2 } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: always_true } }] } }",
            "{ guidance: { instructions: [{ id: a, text: b, when: { called: { look: 1 } } }] } }",
        ] {
            check_run(right, true);
        }
        for wrong in [
            "~",
            "[]",
            "{ mode: strict }",
            "{ modes: interactive }",
            "{ limits: { turns: 1.5 } }",
            "{ limits: { elapsed: 5 } }",
            "{ limits: { elapsed: 5 minutes } }",
            "{ stall: { threshold: 1 } }",
            "{ signal: 'yes' }",
            "{ compaction: { preset: shorter } }",
            "{ contract: { goal: '' } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: file_exists } }] } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: other } }] } }",
            "{ guidance: { texts: { other: a } } }",
            "{ guidance: { off: [everything] } }",
        ] {
            check_run(wrong, false);
        }
    }

    #[test]
    fn agents_of_the_wrong_shape() {
        check("tools: [], instructions: hello, x-note: 1", true);
        check("instructions: [{ text: a, x-why: b }]", true);
        check("modelSettings: { temperature: 1, own: [1] }, name: ~", true);
        for wrong in [
            "instruction: hello",
            "hand_offs: []",
            "handoffs: ~",
            "handoffs: [{ agent: a, when: { context: x } }]",
            "handoffs: ['']",
            "tools: x",
            "name: 7",
            "modelSettings: { temperature: hot }",
            "instructions: 7",
            "instructions: [{ txt: a }]",
            "instructions: a, instructions_file: a.md",
            "instructions_file: /a.md",
            "instructions_file: 'https://example.com/a.md'",
            "instructions_files: []",
            "instructions_sequence: [{ ref: a, text: b }]",
            "instructions_sequence: [{ where: { context: a } }]",
        ] {
            check(wrong, false);
        }
    }

    #[test]
    fn the_committed_copies_are_fresh() {
        expect_file!["../../../docs/reference/descriptor.schema.json"].assert_eq(&super::text());
        expect_file!["../../../docs/reference/contract.schema.json"].assert_eq(&super::contract_text());
    }
}
