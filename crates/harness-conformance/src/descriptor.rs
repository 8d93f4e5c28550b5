//! Vectors of kind `descriptor`: load, hash, build, resolve and createContext of one descriptor.
//!
//! Of several faults the first is looked at. Of its message the facts count: what it quotes, and the path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use harness_descriptor::{
    Agent, ContextInput, Descriptor, DescriptorError, FileSource, Graph, Handoff, Instructions, Map,
    PromptMap, Registry, TextSource, Value,
};

use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the case of a directory.
pub(crate) fn run(vector: &Vector) -> Verdict {
    checked(vector).into()
}

/// The words of a case: what is not here is refused.
mod words {
    #![expect(
        dead_code,
        reason = "which words there are is what counts; they are read where they are acted on"
    )]

    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::IgnoredAny as Any;

    macro_rules! closed {
        ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
            $(
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields, rename_all = "camelCase")]
                pub(super) struct $name { $($field: $type),* }
            )*
        };
    }

    closed! {
        Case {
            kind: Any, description: Any, tier: Any, optional: Option<Any>, load: Option<Load>,
            outside: Option<BTreeMap<String, String>>, symlinks: Option<Vec<Symlink>>, registry: Option<Registry>,
            expect: Expect, resolve: Option<Vec<Resolve>>, create_context: Option<Vec<CreateContext>>,
        }
        Expect {
            hash: Option<Any>, canonical: Option<Any>, materialized: Option<Any>, metadata: Option<Any>,
            max_turns: Option<Any>, entry_agent: Option<Any>, agent_order: Option<Any>, agents: Option<Any>,
            error: Option<Error>,
        }
        Error { stage: Any, kind: Any, message: Any, compare: Any }
        Load {
            mode: Mode, path: Option<String>, root_dir: Option<String>, descriptor_path: Option<String>,
            prompt_map: Option<BTreeMap<String, String>>, prompt_map_direct: Option<BTreeMap<String, String>>,
        }
        Symlink { path: String, target: String }
        Registry { registry_version: Option<String>, tools: BTreeMap<String, String> }
        Resolve { agent: String, context: Any, expect: Resolved, turn: Option<Turn> }
        Resolved { instructions: Option<String>, error: Option<String> }
        Turn {
            tools: Option<Vec<Tool>>, model: Option<Any>, model_settings: Option<Any>, error: Option<String>,
        }
        Tool { name: String, description: String }
        CreateContext { input: Input, expect: Made }
        Input { message: Option<String>, now: Option<String>, overrides: Option<Any> }
        Made { context: Option<Any>, error: Option<String>, compare: Option<String> }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        File,
        Text,
    }
}

fn checked(vector: &Vector) -> Result<(), String> {
    vector.parse::<words::Case>()?;
    let (case, vector) = (&vector.path, vector.parse::<Value>()?);
    let work = tempfile::tempdir().map_err(|error| format!("temporary folder: {error}"))?;
    let work_path = work.path().canonicalize().map_err(|error| format!("temporary folder: {error}"))?;
    let folder = set_up(case, &work_path, &vector).map_err(|error| format!("setting up: {error}"))?;
    Case { folder, vector: &vector }.check()
}

/// Copies the case and makes what the vector wants beside it.
fn set_up(case: &Path, work: &Path, vector: &Value) -> io::Result<PathBuf> {
    let folder = work.join("case");
    copy(case, &folder)?;
    let outside = work.join("outside");
    fs::create_dir(&outside)?;
    for (name, text) in object(at(vector, "outside")) {
        let path = outside.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&outside))?;
        fs::write(path, text.as_str().unwrap_or_default())?;
    }
    for link in list(at(vector, "symlinks")) {
        make_link(
            text(link, "target").unwrap_or_default(),
            &folder.join(text(link, "path").unwrap_or_default()),
        )?;
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

struct Case<'a> {
    folder: PathBuf,
    vector: &'a Value,
}

impl Case<'_> {
    fn check(&self) -> Result<(), String> {
        let expect = at(self.vector, "expect");
        let descriptor = match self.load() {
            Ok(descriptor) => descriptor,
            // Oddities may be refused, as long as they never get another hash.
            Err(error) if text(self.vector, "tier") == Some("exotic") => {
                return clear(&error);
            }
            Err(error) => return self.check_error(&error, "load", at(expect, "error")),
        };
        if text(expect, "error.stage") == Some("load") {
            return Err(format!("loaded, but expected the error {}", at(expect, "error.message")));
        }
        check_loaded(&descriptor, expect)?;
        let graph = match Graph::build(&descriptor, &self.registry()) {
            Ok(graph) => graph,
            Err(error) => return self.check_error(&error, "build", at(expect, "error")),
        };
        if expect.get("error").is_some() {
            return Err(format!("built, but expected the error {}", at(expect, "error.message")));
        }
        check_graph(&graph, expect)?;
        for (index, step) in list(at(self.vector, "resolve")).iter().enumerate() {
            check_resolve(&graph, step).map_err(|reason| format!("resolve[{index}]: {reason}"))?;
        }
        for (index, step) in list(at(self.vector, "createContext")).iter().enumerate() {
            check_context(&graph, step).map_err(|reason| format!("createContext[{index}]: {reason}"))?;
        }
        Ok(())
    }

    fn load(&self) -> Result<Descriptor, DescriptorError> {
        let load = at(self.vector, "load");
        if text(load, "mode") != Some("text") {
            let path = text(load, "path").unwrap_or("descriptor.yaml");
            let source = FileSource::new(self.folder.join(path));
            return match text(load, "rootDir") {
                Some(root) => source.root(self.folder.join(root)).load(),
                None => source.load(),
            };
        }
        let bytes = fs::read(self.folder.join("descriptor.yaml")).unwrap_or_default();
        let mut source = TextSource::new(String::from_utf8_lossy(&bytes));
        if let Some(path) = text(load, "descriptorPath") {
            source = source.path(path);
        }
        if let Some(root) = text(load, "rootDir") {
            source = source.root(root);
        }
        let prompts = [at(load, "promptMap"), at(load, "promptMapDirect")]
            .into_iter()
            .find(|map| map.as_map().is_some());
        if let Some(prompts) = prompts {
            source = source.prompt_map(PromptMap::from_value(prompts));
        }
        source.load()
    }

    fn registry(&self) -> Registry {
        let registry = at(self.vector, "registry");
        let mut built = Registry::new();
        if let Some(version) = text(registry, "registryVersion") {
            built = built.version(version);
        }
        for (target, name) in object(at(registry, "tools")) {
            let name = name.as_str().unwrap_or_default();
            built = built.bind(target, name, format!("stub {name}"));
        }
        built
    }

    fn check_error(&self, error: &DescriptorError, stage: &str, expected: &Value) -> Result<(), String> {
        if text(expected, "stage") != Some(stage) {
            return Err(format!("failed at {stage}: {error}; expected {expected}"));
        }
        if text(expected, "compare") == Some("message") {
            let folder = self.folder.to_string_lossy();
            let message = text(expected, "message").unwrap_or_default().replace("${CASE}", &folder);
            return same_facts(error, &message);
        }
        clear(error)
    }
}

/// A fault that only has to be there still says what it is.
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

fn check_loaded(descriptor: &Descriptor, expect: &Value) -> Result<(), String> {
    if let Some(canonical) = text(expect, "canonical") {
        let found = descriptor.canonical_text();
        if found != canonical {
            return Err(format!("canonical text {found}, expected {canonical}"));
        }
    }
    if let Some(hash) = text(expect, "hash") {
        same("hash", &Value::from(descriptor.hash().to_string().as_str()), &Value::from(hash))?;
    }
    match expect.get("materialized") {
        Some(expected) => same("materialized", &json(&descriptor.to_value())?, expected),
        None => Ok(()),
    }
}

fn check_graph(graph: &Graph, expect: &Value) -> Result<(), String> {
    let meta = graph.metadata();
    let metadata = [
        ("name", meta.name.clone()),
        ("version", meta.version.clone()),
        ("descriptorVersion", meta.descriptor_version.clone()),
        ("descriptorHash", Some(meta.descriptor_hash.to_string().as_str().into())),
        ("registryVersion", meta.registry_version.as_deref().map(Value::from)),
    ];
    same("metadata", &present(metadata), at(expect, "metadata"))?;
    let max_turns = graph.max_iterations().map_or(Value::Null, |most| Value::from(f64::from(most.get())));
    same("maxTurns", &max_turns, at(expect, "maxTurns"))?;
    same("entryAgent", &graph.entry_agent().id().into(), at(expect, "entryAgent"))?;
    let order = graph.agents().map(|agent| agent.id().into()).collect();
    same("agentOrder", &Value::List(order), at(expect, "agentOrder"))?;
    let agents: Map = graph.agents().map(|agent| (agent.id().into(), describe(agent))).collect();
    same("agents", &Value::Map(agents), at(expect, "agents"))
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

/// A mapping of the values that are there.
fn present<const N: usize>(entries: [(&str, Option<Value>); N]) -> Value {
    Value::Map(entries.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect())
}

fn check_resolve(graph: &Graph, step: &Value) -> Result<(), String> {
    let agent = text(step, "agent").unwrap_or_default();
    let context = at(step, "context");
    let expect = at(step, "expect");
    match (graph.instructions(agent, context), text(expect, "error")) {
        (Err(error), Some(message)) => same_facts(&error, message)?,
        (Err(error), None) => return Err(format!("failed: {error}")),
        (Ok(_), Some(message)) => return Err(format!("resolved, but expected the error {message}")),
        (Ok(found), None) => {
            same(
                "instructions",
                &found.as_deref().map_or(Value::Null, Value::from),
                at(expect, "instructions"),
            )?;
        }
    }
    let Some(turn) = step.get("turn") else { return Ok(()) };
    match (graph.resolve(agent, context), text(turn, "error")) {
        (Err(error), Some(message)) => same_facts(&error, message),
        (Err(error), None) => Err(format!("no offer: {error}")),
        (Ok(_), Some(message)) => Err(format!("offered, but expected the error {message}")),
        (Ok(resolved), None) => {
            let own = resolved.tools.iter().map(|tool| (&tool.name, &tool.description));
            let handoffs = resolved.handoffs.iter().map(|handoff| (&handoff.tool_name, &handoff.description));
            let tools = own.chain(handoffs).map(|(name, description)| {
                present([("name", Some((&**name).into())), ("description", Some((&**description).into()))])
            });
            same("tools", &Value::List(tools.collect()), at(turn, "tools"))?;
            same("model", &Value::from(&*resolved.model), at(turn, "model"))?;
            same(
                "modelSettings",
                resolved.model_settings.as_ref().unwrap_or(&Value::Null),
                at(turn, "modelSettings"),
            )
        }
    }
}

fn check_context(graph: &Graph, step: &Value) -> Result<(), String> {
    let given = at(step, "input");
    let mut input = ContextInput::new(text(given, "now").unwrap_or("1970-01-01T00:00:00.000Z"));
    input = input.message(text(given, "message").unwrap_or_default());
    if let Some(overrides) = at(given, "overrides").as_map() {
        input = input.overrides(overrides.clone());
    }
    let expect = at(step, "expect");
    match (graph.create_context(&input), text(expect, "error")) {
        (Err(error), Some(_)) if text(expect, "compare") == Some("stage") => clear(&error),
        (Err(error), Some(message)) => same_facts(&error, message),
        (Err(error), None) => Err(format!("failed: {error}")),
        (Ok(_), Some(message)) => Err(format!("made, but expected the error {message}")),
        (Ok(found), None) => same("context", &json(&found)?, at(expect, "context")),
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

/// The value at a dotted path, `null` if there is none.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, Value::get).unwrap_or(&Value::Null)
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    at(value, path).as_str()
}

fn list(value: &Value) -> &[Value] {
    value.as_list().unwrap_or_default()
}

fn object(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_map().into_iter().flat_map(Map::iter)
}
