//! Vectors of kind `descriptor`: load, hash, build, resolve and createContext of one descriptor.
//!
//! Of several errors the first is compared. Of its message the facts count: its quotes and the path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use harness_descriptor::{
    Agent, ContextInput, Descriptor, DescriptorError, FileSource, Graph, Handoff, Instructions, Map,
    PromptMap, Registry, TextSource, Value,
};

use serde::Deserialize;
use serde::de::IgnoredAny as Any;

use crate::case::closed;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the case of a directory.
pub(crate) fn run(vector: &Vector) -> Verdict {
    checked(vector).into()
}

closed! {
    #[expect(dead_code, reason = "what is for readers is named, so that all other words are refused")]
    Case {
        kind: Any, description: Any, optional: Option<Any>, tier: Tier, #[serde(default)] load: Load,
        #[serde(default)] outside: BTreeMap<String, String>, #[serde(default)] symlinks: Vec<Symlink>,
        #[serde(default)] registry: Bindings, expect: Expect, #[serde(default)] resolve: Vec<Resolve>,
        #[serde(default)] create_context: Vec<CreateContext>,
    }
    Expect {
        hash: Option<String>, canonical: Option<String>, materialized: Option<Value>,
        #[serde(default)] metadata: Value, #[serde(default)] max_turns: Value,
        #[serde(default)] entry_agent: Value, #[serde(default)] agent_order: Value,
        #[serde(default)] agents: Value, error: Option<Refusal>,
    }
    /// An error; each product has its own code.
    Refusal { stage: Stage, #[serde(rename = "kind")] _kind: Any, message: String, compare: Compare }
    #[derive(Default)]
    Load {
        #[serde(default)] mode: Mode, path: Option<String>, root_dir: Option<String>,
        descriptor_path: Option<String>, prompt_map: Option<Value>, prompt_map_direct: Option<Value>,
    }
    Symlink { path: String, target: String }
    #[derive(Default)]
    Bindings { registry_version: Option<String>, tools: BTreeMap<String, String> }
    Resolve { agent: String, context: Value, expect: Resolved, turn: Option<Turn> }
    Resolved { instructions: Option<String>, error: Option<String> }
    Turn {
        #[serde(default)] tools: Value, #[serde(default)] model: Value,
        #[serde(default)] model_settings: Value, error: Option<String>,
    }
    CreateContext { input: Input, expect: Made }
    Input { message: Option<String>, now: Option<String>, #[serde(default)] overrides: Value }
    Made { #[serde(default)] context: Value, error: Option<String>, compare: Option<Compare> }
}

/// Weight of a case: oddities of YAML may be rejected.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tier {
    Core,
    Exotic,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    File,
    Text,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Load,
    Build,
}

/// Compared part of an error: its stage, or its facts, too.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compare {
    Stage,
    Message,
}

fn checked(vector: &Vector) -> Result<(), String> {
    let case: Case = vector.parse()?;
    let work = tempfile::tempdir().map_err(|error| format!("temporary directory: {error}"))?;
    let work_path = work.path().canonicalize().map_err(|error| format!("temporary directory: {error}"))?;
    let folder = set_up(&vector.path, &work_path, &case).map_err(|error| format!("setting up: {error}"))?;
    case.check(&folder)
}

/// Copies the case and makes what the vector wants beside it.
fn set_up(from: &Path, work: &Path, case: &Case) -> io::Result<PathBuf> {
    let folder = work.join("case");
    copy(from, &folder)?;
    let outside = work.join("outside");
    fs::create_dir(&outside)?;
    for (name, text) in &case.outside {
        let path = outside.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&outside))?;
        fs::write(path, text)?;
    }
    for link in &case.symlinks {
        make_link(&link.target, &folder.join(&link.path))?;
    }
    Ok(folder)
}

#[cfg(unix)]
fn make_link(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn make_link(_: &str, _: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

impl Case {
    fn check(&self, folder: &Path) -> Result<(), String> {
        let Expect { error: refusal, .. } = &self.expect;
        let refused = |error: &DescriptorError, stage| match refusal {
            Some(refusal) => refusal.check(error, stage, folder),
            None => Err(format!("failed at {stage:?}: {error}")),
        };
        let descriptor = match self.load(folder) {
            Ok(descriptor) => descriptor,
            // Oddities may be refused, as long as they never get another hash.
            Err(error) if self.tier == Tier::Exotic => return clear(&error),
            Err(error) => return refused(&error, Stage::Load),
        };
        if let Some(Refusal { stage: Stage::Load, message, .. }) = refusal {
            return Err(format!("loaded, but expected the error {message}"));
        }
        check_loaded(&descriptor, &self.expect)?;
        let graph = match Graph::build(&descriptor, &self.registry()) {
            Ok(graph) => graph,
            Err(error) => return refused(&error, Stage::Build),
        };
        if let Some(Refusal { message, .. }) = refusal {
            return Err(format!("built, but expected the error {message}"));
        }
        check_graph(&graph, &self.expect)?;
        for (index, step) in self.resolve.iter().enumerate() {
            check_resolve(&graph, step).map_err(|reason| format!("resolve[{index}]: {reason}"))?;
        }
        for (index, step) in self.create_context.iter().enumerate() {
            check_context(&graph, step).map_err(|reason| format!("createContext[{index}]: {reason}"))?;
        }
        Ok(())
    }

    fn load(&self, folder: &Path) -> Result<Descriptor, DescriptorError> {
        let load = &self.load;
        if let Mode::File = load.mode {
            let source = FileSource::new(folder.join(load.path.as_deref().unwrap_or("descriptor.yaml")));
            return match &load.root_dir {
                Some(root) => source.root(folder.join(root)).load(),
                None => source.load(),
            };
        }
        let bytes = fs::read(folder.join("descriptor.yaml")).unwrap_or_default();
        let mut source = TextSource::new(String::from_utf8_lossy(&bytes));
        if let Some(path) = &load.descriptor_path {
            source = source.path(path);
        }
        if let Some(root) = &load.root_dir {
            source = source.root(root);
        }
        if let Some(prompts) = load.prompt_map.as_ref().or(load.prompt_map_direct.as_ref()) {
            source = source.prompt_map(PromptMap::from_value(prompts));
        }
        source.load()
    }

    fn registry(&self) -> Registry {
        let version = self.registry.registry_version.as_ref();
        let built = version.into_iter().fold(Registry::new(), Registry::version);
        let bind = |built: Registry, (target, name): (&String, &String)| {
            built.bind(target, name.as_str(), format!("stub {name}"))
        };
        self.registry.tools.iter().fold(built, bind)
    }
}

impl Refusal {
    fn check(&self, error: &DescriptorError, stage: Stage, folder: &Path) -> Result<(), String> {
        if self.stage != stage {
            return Err(format!("failed at {stage:?}: {error}; expected {}", self.message));
        }
        match self.compare {
            Compare::Message => {
                same_facts(error, &self.message.replace("${CASE}", &folder.to_string_lossy()))
            }
            Compare::Stage => clear(error),
        }
    }
}

/// An error that only has to exist still has a message.
fn clear(error: &DescriptorError) -> Result<(), String> {
    let text = error.fault().to_string();
    if text.is_empty() || error.kind().is_empty() {
        Err(format!("no clear error: {error:?}"))
    } else {
        Ok(())
    }
}

/// The facts of a message: what it quotes, and the first path that it names.
fn same_facts(error: &DescriptorError, expected: &str) -> Result<(), String> {
    let said = error.to_string();
    let quoted = expected.split('"').skip(1).step_by(2);
    let words = expected.split('"').step_by(2).flat_map(|text| text.split([' ', ',']));
    let paths = words.map(|word| word.trim_matches('.')).filter(|word| word.contains(['_', '[']));
    let path = paths.map(|path| path.trim_start_matches("descriptor.")).next();
    match quoted.chain(path).find(|fact| !said.contains(fact)) {
        Some(fact) => Err(format!("`{said}` does not say `{fact}` of {expected:?}")),
        None => clear(error),
    }
}

fn check_loaded(descriptor: &Descriptor, expect: &Expect) -> Result<(), String> {
    if let Some(canonical) = &expect.canonical {
        let found = descriptor.canonical_text();
        if found != *canonical {
            return Err(format!("canonical text {found}, expected {canonical}"));
        }
    }
    if let Some(hash) = &expect.hash {
        same("hash", &Value::from(descriptor.hash().to_string().as_str()), &Value::from(hash.as_str()))?;
    }
    match &expect.materialized {
        Some(expected) => same("materialized", &json(&descriptor.to_value())?, expected),
        None => Ok(()),
    }
}

fn check_graph(graph: &Graph, expect: &Expect) -> Result<(), String> {
    let meta = graph.metadata();
    let metadata = [
        ("name", meta.name.clone()),
        ("version", meta.version.clone()),
        ("descriptorVersion", meta.descriptor_version.clone()),
        ("descriptorHash", Some(meta.descriptor_hash.to_string().as_str().into())),
        ("registryVersion", meta.registry_version.as_deref().map(Value::from)),
    ];
    same("metadata", &present(metadata), &expect.metadata)?;
    let max_turns = graph.max_iterations().map_or(Value::Null, |most| Value::from(f64::from(most.get())));
    same("maxTurns", &max_turns, &expect.max_turns)?;
    same("entryAgent", &graph.entry_agent().id().into(), &expect.entry_agent)?;
    let order = graph.agents().map(|agent| agent.id().into()).collect();
    same("agentOrder", &Value::List(order), &expect.agent_order)?;
    let agents: Map = graph.agents().map(|agent| (agent.id().into(), describe(agent))).collect();
    same("agents", &Value::Map(agents), &expect.agents)
}

fn describe(agent: &Agent) -> Value {
    let ids = |gated: bool| {
        let handoffs = agent.handoffs().iter().filter(|handoff| !gated || handoff.gate().is_some());
        Value::List(handoffs.map(Handoff::to).map(Value::from).collect())
    };
    let dynamic = match agent.instructions() {
        None => false,
        // Upstream resolves parts per turn, whatever they hold.
        Some(Instructions::Parts(_)) => true,
        Some(instructions) => !instructions.is_constant(),
    };
    present([
        ("name", Some(agent.name().into())),
        ("handoffDescription", Some(agent.handoff_description().into())),
        ("tools", Some(Value::List(agent.tools().iter().map(|tool| Value::from(&*tool.name)).collect()))),
        ("handoffs", Some(ids(false))),
        ("conditionalHandoffs", Some(ids(true))),
        ("dynamicInstructions", Some(dynamic.into())),
        ("model", agent.model().cloned()),
        ("modelSettings", agent.model_settings().cloned()),
    ])
}

/// Creates a mapping of the present values.
fn present<const N: usize>(entries: [(&str, Option<Value>); N]) -> Value {
    Value::Map(entries.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect())
}

fn check_resolve(graph: &Graph, step: &Resolve) -> Result<(), String> {
    let Resolve { agent, context, expect, turn } = step;
    match (graph.instructions(agent, context), &expect.error) {
        (Err(error), Some(message)) => same_facts(&error, message)?,
        (Err(error), None) => return Err(format!("failed: {error}")),
        (Ok(_), Some(message)) => return Err(format!("resolved, but expected the error {message}")),
        (Ok(found), None) => {
            let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
            same("instructions", &text(found.as_deref()), &text(expect.instructions.as_deref()))?;
        }
    }
    let Some(turn) = turn else { return Ok(()) };
    match (graph.resolve(agent, context), &turn.error) {
        (Err(error), Some(message)) => same_facts(&error, message),
        (Err(error), None) => Err(format!("no offer: {error}")),
        (Ok(_), Some(message)) => Err(format!("offered, but expected the error {message}")),
        (Ok(offer), None) => {
            let own = offer.tools.iter().map(|tool| (&tool.name, &tool.description));
            let handoffs = offer.handoffs.iter().map(|handoff| (&handoff.tool_name, &handoff.description));
            let tools = own.chain(handoffs).map(|(name, description)| {
                present([("name", Some((&**name).into())), ("description", Some((&**description).into()))])
            });
            same("tools", &Value::List(tools.collect()), &turn.tools)?;
            same("model", &Value::from(&*offer.model), &turn.model)?;
            let settings = offer.model_settings.as_ref().unwrap_or(&Value::Null);
            same("modelSettings", settings, &turn.model_settings)
        }
    }
}

fn check_context(
    graph: &Graph,
    CreateContext { input: given, expect }: &CreateContext,
) -> Result<(), String> {
    let mut input = ContextInput::new(given.now.as_deref().unwrap_or("1970-01-01T00:00:00.000Z"));
    input = input.message(given.message.as_deref().unwrap_or_default());
    // What is no mapping has nothing to put in the place of a default.
    if let Some(overrides) = given.overrides.as_map() {
        input = input.overrides(overrides.clone());
    }
    match (graph.create_context(&input), &expect.error) {
        (Err(error), Some(_)) if expect.compare == Some(Compare::Stage) => clear(&error),
        (Err(error), Some(message)) => same_facts(&error, message),
        (Err(error), None) => Err(format!("failed: {error}")),
        (Ok(_), Some(message)) => Err(format!("made, but expected the error {message}")),
        (Ok(found), None) => same("context", &json(&found)?, &expect.context),
    }
}

/// Compares values; numbers as doubles, mappings without regard to order.
fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, expected {expected}")) }
}

/// A value as JSON carries it: non-finite numbers become `null`.
fn json(value: &Value) -> Result<Value, String> {
    serde_json::from_str(&value.to_string()).map_err(|error| format!("printed as bad JSON: {error}"))
}
