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

/// The first line of a descriptor that makes editors complete and check it, for a schema file beside it.
///
/// `harness schema` prints the schema; `docs/reference/descriptor.schema.json` is a copy.
pub const HEADER: &str = "# yaml-language-server: $schema=descriptor.schema.json";

/// The JSON Schema of descriptors as they are written.
///
/// Misspelled keys are refused, as they are when a graph is built. Keys that begin with `x-` are free everywhere, and
/// what lies in the mapping `extensions`. It cannot see what the descriptor names (agents, tools,
/// parts, context paths); [`check`](crate::check) does.
pub fn schema() -> Schema {
    schemars::schema_for!(Source)
}

/// [`schema`] as indented JSON with a final line end.
pub fn text() -> String {
    sorted(schema().to_value())
}

/// The JSON Schema of contracts in files of their own, as indented JSON with a final line end.
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

/// A graph of agents: their instructions, tools and handoffs, and the context that these read.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Agent descriptor", extend("patternProperties" = { "^x-": true }))]
struct Source {
    /// The version of the format.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Version")]
    descriptor_version: Option<()>,
    /// Who this is. `name` and `version` are reported with every run; other keys are free.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Metadata")]
    metadata: Option<()>,
    /// How a run begins and ends.
    runtime: Runtime,
    /// The values of a run that instructions and conditions read.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Context")]
    context: Option<()>,
    /// Texts by name that `instructions_sequence` uses with `ref`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, String>")]
    instruction_parts: Option<()>,
    /// Tools by id.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Tool>")]
    tools: Option<()>,
    /// What agents take that do not say it themselves.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "AgentDefaults")]
    agent_defaults: Option<()>,
    /// How runs go on until the work is done. An extension of this project: other readers of the format keep
    /// it without effect.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Run")]
    run: Option<()>,
    /// Data of other programs. Nothing here reads it; it is kept and hashed.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Value>")]
    extensions: Option<()>,
    /// Agents by id.
    #[schemars(extend("minProperties" = 1))]
    agents: BTreeMap<String, Agent>,
}

/// The section `run`, whose shape is a table of its own.
struct Run;

impl JsonSchema for Run {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(crate::run::schema()).unwrap_or_default()
    }
}

/// The version of the format.
#[derive(JsonSchema)]
enum Version {
    #[schemars(rename = "aioc.agent_graph.v0")]
    V0,
}

/// Who this is.
#[derive(JsonSchema)]
struct Metadata {
    /// The name of the descriptor.
    name: Option<Value>,
    /// The version of the descriptor.
    version: Option<Value>,
}

/// How a run begins and ends.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Runtime {
    /// The id of the agent that a run starts with.
    #[schemars(regex(pattern = r"\S"))]
    entry_agent: String,
    /// The number of iterations that a run may make: model calls of its agents.
    max_iterations: Option<NonZeroU32>,
    /// An alias of `max_iterations`.
    #[schemars(extend("deprecated" = true))]
    max_turns: Option<NonZeroU32>,
}

/// The values of a run.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Context {
    /// Values that a run starts with, by their dotted path.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, ContextField>")]
    fields: Option<()>,
    /// What instructions and conditions may read, by its dotted path: `true`, or a mapping that says
    /// more. `false` takes a declaration back.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "BTreeMap<String, Reference>")]
    references: Option<()>,
}

/// A value that a run starts with.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct ContextField {
    /// The type of the value.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "ValueType")]
    r#type: Option<()>,
    /// The value. `{{input.message}}` stands for the user's message, `{{runtime.now_iso}}` for the time.
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
    /// What the value means, for people.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// What may be read.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Reference {
    /// `true` declares the path, `false` does not.
    Flag(bool),
    /// A declaration that says more.
    Declared(Declaration),
}

/// A path that may be read.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Declaration {
    /// The type of the value; conditions need `boolean`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "ValueType")]
    r#type: Option<()>,
    /// Whether a placeholder becomes empty where the value is missing, instead of failing.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "bool")]
    optional: Option<()>,
    /// What the value means, for people.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// The type of a context value. Only `boolean` has an effect: conditions need it.
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
    /// The name under which the program's registry has the tool.
    #[schemars(regex(pattern = r"\S"), extend("examples" = ["tool://orders/find"]))]
    target: String,
    /// What the tool is for, for people.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    description: Option<()>,
}

/// What agents take that do not say it themselves.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = one_form()))]
struct AgentDefaults {
    /// The model.
    model: Option<NonEmpty>,
    /// Settings of the model, as a whole.
    #[schemars(rename = "modelSettings")]
    model_settings: Option<ModelSettings>,
    /// The instructions.
    instructions: Option<Instructions>,
    /// A prompt file with the instructions, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    instructions_file: Option<()>,
    /// Prompt files that make up the instructions, before `instructions`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPaths")]
    instructions_files: Option<()>,
    /// Files, parts and texts that make up the instructions.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Sequence")]
    instructions_sequence: Option<()>,
}

/// An agent.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }, "not" = one_form()))]
struct Agent {
    /// The name that models and people see. Default: the id.
    name: Option<String>,
    /// What other agents are told about this one.
    #[schemars(rename = "handoffDescription")]
    handoff_description: Option<String>,
    /// The model. Default: that of `agent_defaults`.
    model: Option<NonEmpty>,
    /// Settings of the model. They replace those of `agent_defaults` as a whole.
    #[schemars(rename = "modelSettings")]
    model_settings: Option<ModelSettings>,
    /// The ids of the tools that the agent may call.
    tools: Option<Vec<ToolId>>,
    /// The agents that may take over.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Vec<Handoff>")]
    handoffs: Option<()>,
    /// The instructions. Default: those of `agent_defaults`.
    instructions: Option<Instructions>,
    /// A prompt file with the instructions, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    instructions_file: Option<()>,
    /// Prompt files that make up the instructions, before `instructions`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPaths")]
    instructions_files: Option<()>,
    /// Files, parts and texts that make up the instructions.
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

/// The id of a tool, a key of `tools`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum ToolId {
    Text(String),
    Number(i64),
}

/// The path of a prompt file, relative to the descriptor and inside its root folder.
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

/// The instructions of an agent. `{{context.PATH}}` stands for a value of the context.
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
    /// The text.
    text: String,
    /// When the part is included. Default: always.
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
    /// A prompt file, relative to the descriptor.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "PromptPath")]
    file: Option<()>,
    /// The name of an entry of `instruction_parts`.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "NonEmpty")]
    r#ref: Option<()>,
    /// A text.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "String")]
    text: Option<()>,
    /// When the item is included. Default: always.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Condition")]
    r#where: Option<()>,
}

/// A condition: a context path, declared with type `boolean`, that must be `true`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct Condition {
    /// The context path.
    context: NonEmpty,
}

/// An agent that may take over.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Handoff {
    /// The id of the agent.
    Id(NonEmpty),
    /// The id with a condition.
    Conditional(HandoffItem),
}

/// A handoff that may have a condition.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = { "^x-": true }))]
struct HandoffItem {
    /// The id of the agent that takes over.
    agent: NonEmpty,
    /// When the handoff is offered. Default: always.
    #[schemars(default, skip_serializing_if = "Option::is_none", with = "Condition")]
    r#where: Option<()>,
}

/// Settings of the model, sent as they are; those below are the usual ones.
#[derive(JsonSchema)]
struct ModelSettings {
    /// How random the answers are.
    temperature: Option<f64>,
    /// The share of likely words that is drawn from.
    top_p: Option<f64>,
    /// How many likely words are drawn from.
    top_k: Option<i64>,
    /// The greatest length of an answer in tokens.
    max_tokens: Option<i64>,
    /// The greatest length of an answer in tokens, thinking included.
    max_completion_tokens: Option<i64>,
    /// How much words that were used at all are avoided.
    presence_penalty: Option<f64>,
    /// How much words that were used often are avoided.
    frequency_penalty: Option<f64>,
    /// Makes answers repeatable as far as the provider can.
    seed: Option<i64>,
    /// Whether several tools may be called at once.
    parallel_tool_calls: Option<bool>,
    /// How much the model thinks before it answers.
    reasoning_effort: Option<String>,
    /// How the model thinks before it answers, in the provider's own terms.
    reasoning: Option<BTreeMap<String, Value>>,
    /// The form of the answer, in the provider's own terms.
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
