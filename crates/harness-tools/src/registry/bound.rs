//! The registry: targets and their tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::port::Clock;
use harness_core::tool::{DynTool, ToolDef, Toolbox};
use harness_host::process::{Environment, is_path};

use super::agents::Wanted;
use super::builtin::{self, Builtin, Made, Missing, Workshop, below};
use super::entry::{self, Entry, child, known_keys};
use super::faults::Faults;
use super::lack::{program_problem, sandbox_problem};
use super::memory::{self, MemorySetting};
use super::models::{self, ModelEntry, ModelKey};
#[cfg(feature = "mcp")]
use super::remote::Remote;
use super::server::{self, ServerEntry};
use super::yaml::{self, Node, Part, Step};
use crate::command::{CommandSpec, CommandTool};
use crate::error::{Problem, ToolsError};
use crate::near::near;
use crate::shell::ShellTool;
use crate::source::Binding;
#[cfg(feature = "mcp")]
use crate::source::all;
use crate::workspace::ProtectedFiles;

/// The longest registry file that is read: 1 MiB.
pub const MAX_FILE: u64 = 1024 * 1024;

/// The one version of the format.
const VERSION: u64 = 1;
/// The keys of the file.
const KEYS: [&str; 5] = ["version", "registry_version", "tools", models::SECTION, memory::SECTION];

/// The tools that a registry file binds to targets.
///
/// A registry is read once; later changes of the file, and of the environment, do not reach it.
pub struct Registry {
    file: PathBuf,
    text: String,
    tools: BTreeMap<String, Bound>,
    own: ProtectedFiles,
    pub(super) models: BTreeMap<String, ModelEntry>,
    pub(super) wanted: Wanted,
    memory: Option<MemorySetting>,
    #[cfg(feature = "mcp")]
    pub(super) servers: BTreeMap<String, Remote>,
}

/// A tool and what of its entry problems are told by.
struct Bound {
    tool: Arc<dyn DynTool>,
    kind: Kind,
    /// The key of its entry.
    entry: String,
    env_missing: Vec<String>,
    missing: Option<Missing>,
    position: usize,
}

/// What must be known of a tool besides that it is one.
enum Kind {
    Command(Arc<CommandTool>),
    Shell(Arc<ShellTool>),
    Other,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("file", &self.file)
            .field("targets", &self.tools.keys())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Reads a registry file; its tools get their variables from this process.
    ///
    /// # Errors
    /// When the file cannot be read, is no registry, or is of a later version. All faults at once.
    pub fn load(file: impl AsRef<Path>) -> Result<Self, ToolsError> {
        Self::load_with(file, &Environment::of_process())
    }

    /// Reads a registry file; its tools get their variables from `environment`.
    ///
    /// # Errors
    /// As [`Registry::load`].
    pub fn load_with(file: impl AsRef<Path>, environment: &Environment) -> Result<Self, ToolsError> {
        let file = file.as_ref();
        let text = read_text(file)?;
        Self::parse(&text, file, environment)
    }

    /// Reads a registry from its text. `file` names it in messages, and relative paths in the text
    /// start from its folder.
    ///
    /// # Errors
    /// As [`Registry::load`].
    pub fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Self, ToolsError> {
        let mut faults = Faults::new(text);
        let folder = folder_of(file);
        let rooted = |path: &str| below(folder, path);
        let mut workshop = Workshop::new(&rooted, environment);
        workshop.own.add(file);
        let mut tools: BTreeMap<String, Bound> = BTreeMap::new();
        #[cfg(feature = "mcp")]
        let mut servers = BTreeMap::new();
        let Contents { entries, models, memory } = read_file(text, file, &rooted)?;
        for key in models.values().filter_map(ModelEntry::key) {
            if let ModelKey::File(file) = key {
                workshop.own.add(file);
            }
        }
        for entry in entries {
            #[cfg(feature = "mcp")]
            let entry = match entry {
                AnyEntry::Server(entry) => {
                    servers.insert(entry.id.clone(), Remote::new(*entry, file, environment));
                    continue;
                }
                entry @ (AnyEntry::Command(_) | AnyEntry::Builtin(_)) => entry,
            };
            let key = entry.target().to_owned();
            match bounds_of(entry, file, &mut workshop) {
                Ok(made) => {
                    for (target, mut bound) in made {
                        bound.position = tools.len();
                        if let Some(first) = tools.insert(target.clone(), bound) {
                            let problem = format!("the target `{target}` is made by `{}`, too", first.entry);
                            let hint = "give one of the entries another key".to_owned();
                            faults.key(&child(&tools_path(), &key), problem, Some(hint));
                        }
                    }
                }
                Err(error) => schema_fault(&key, &error, &mut faults),
            }
        }
        match faults.into_error(file) {
            Some(error) => Err(error),
            None => Ok(Self {
                file: file.to_owned(),
                text: text.to_owned(),
                tools,
                own: workshop.own,
                models,
                wanted: workshop.wanted,
                memory,
                #[cfg(feature = "mcp")]
                servers,
            }),
        }
    }

    /// Files that its tools never write: the registry file itself, and those that the host adds, such as its
    /// descriptor and its key files.
    pub fn protected(&self) -> &ProtectedFiles {
        &self.own
    }

    /// Memory of the agents; `None` when the file has no section `memory`.
    pub fn memory(&self) -> Option<&MemorySetting> {
        self.memory.as_ref()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The file it was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The bound targets, by name.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The targets and their tools, in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn DynTool>)> {
        let mut all: Vec<_> = self.tools.iter().collect();
        all.sort_by_key(|(_, bound)| bound.position);
        all.into_iter().map(|(target, bound)| (target.as_str(), &bound.tool))
    }

    /// The program that stands behind a target, if it is one.
    pub fn command(&self, target: &str) -> Option<&CommandTool> {
        match &self.tools.get(target)?.kind {
            Kind::Command(tool) => Some(tool),
            Kind::Shell(_) | Kind::Other => None,
        }
    }

    /// The tool that stands behind a target.
    ///
    /// # Errors
    /// [`ToolsError::Unbound`] with the bound targets that are nearly that.
    pub fn get(&self, target: &str) -> Result<Arc<dyn DynTool>, ToolsError> {
        match self.tools.get(target) {
            Some(bound) => Ok(Arc::clone(&bound.tool)),
            None => Err(self.unbound(target)),
        }
    }

    /// What stands behind a target: a tool, or one or all of the tools of a server (`SERVER.TOOL`,
    /// `SERVER.*`). Whether a server has the tool is known when it is connected to.
    ///
    /// # Errors
    /// [`ToolsError::Unbound`] with the bound targets that are nearly that.
    pub fn binding(&self, target: &str) -> Result<Binding, ToolsError> {
        if let Some(bound) = self.tools.get(target) {
            return Ok(Binding::Tool(Arc::clone(&bound.tool)));
        }
        #[cfg(feature = "mcp")]
        if let Some((remote, tool)) = self.remote(target) {
            return Ok(remote.binding(tool));
        }
        Err(self.unbound(target))
    }

    /// Ends the servers that were started or connected to, and waits until their programs are gone.
    ///
    /// Dropping the registry ends them, too, but nobody waits then.
    #[cfg_attr(not(feature = "mcp"), expect(clippy::unused_async, reason = "only servers take time to end"))]
    pub async fn close(&self) {
        #[cfg(feature = "mcp")]
        all(self.servers.values().map(|remote| Box::pin(remote.server().close()) as _).collect()).await;
    }

    fn unbound(&self, target: &str) -> ToolsError {
        let bound: Vec<String> = self.targets().map(str::to_owned).collect();
        #[cfg(feature = "mcp")]
        let bound: Vec<String> =
            bound.into_iter().chain(self.servers.keys().map(|id| format!("{id}.*"))).collect();
        let near: Vec<String> = match bound.iter().find(|known| known.strip_suffix(".*") == Some(target)) {
            Some(all) => vec![all.clone()],
            None => near(target, bound.iter().map(String::as_str)).into_iter().map(str::to_owned).collect(),
        };
        ToolsError::Unbound { file: self.file.clone(), target: target.to_owned(), near, bound }
    }

    /// The tools behind some targets, in that order, each once.
    ///
    /// # Errors
    /// [`ToolsError::Unbound`] for the first target that is not bound.
    pub fn toolbox<'a>(&self, targets: impl IntoIterator<Item = &'a str>) -> Result<Toolbox, ToolsError> {
        let mut chosen: Vec<&str> = Vec::new();
        for target in targets {
            if !chosen.contains(&target) {
                chosen.push(target);
            }
        }
        let tools: Result<Vec<_>, _> = chosen.into_iter().map(|target| self.get(target)).collect();
        tools.map(Toolbox::new)
    }

    /// The same registry, whose tools stop at the turn's deadline by this clock
    /// ([`CommandTool::with_clock`]).
    #[must_use]
    pub fn with_clock(mut self, clock: &Arc<dyn Clock>) -> Self {
        for bound in self.tools.values_mut() {
            match &mut bound.kind {
                Kind::Command(tool) => {
                    *tool = Arc::new(CommandTool::clone(tool).with_clock(Arc::clone(clock)));
                    bound.tool = Arc::clone(tool) as _;
                }
                Kind::Shell(tool) => {
                    *tool = Arc::new(ShellTool::clone(tool).with_clock(Arc::clone(clock)));
                    bound.tool = Arc::clone(tool) as _;
                }
                Kind::Other => {}
            }
        }
        if let Some(work) = self.wanted.work.take() {
            let work = work.with_clock(Arc::clone(clock));
            let set = work.clone().into_set();
            for bound in self.tools.values_mut() {
                let name = &bound.tool.tool_def().name;
                if let Some(tool) = set.tools().iter().find(|tool| tool.tool_def().name == *name) {
                    bound.tool = Arc::clone(tool);
                }
            }
            self.wanted.work = Some(work);
        }
        #[cfg(feature = "mcp")]
        for remote in self.servers.values_mut() {
            remote.set_clock(clock);
        }
        self
    }

    /// What this machine lacks for the tools to work: programs, folders, variables to pass on. Looks at
    /// the file system, and starts nothing.
    pub fn problems(&self) -> Vec<Problem> {
        let mut all: Vec<_> = self.tools.values().collect();
        all.sort_by_key(|bound| bound.position);
        // What all tools of an entry lack is told once.
        all.dedup_by_key(|bound| &bound.entry);
        let problems = all.into_iter().flat_map(|bound| self.problems_of(bound)).collect();
        #[cfg(feature = "mcp")]
        let problems = self.with_problems_of_servers(problems);
        problems
    }

    fn problems_of(&self, bound: &Bound) -> Vec<Problem> {
        let target = &*bound.entry;
        let mut found = Vec::new();
        if let Kind::Command(tool) = &bound.kind {
            let spec = tool.spec();
            if let Some(cwd) = spec.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
                let problem = format!("its folder {} does not exist", cwd.display());
                found.push(self.problem(target, "cwd", problem, "create it, or correct `cwd`"));
            }
            if let Some((problem, hint)) = program_problem(&spec.program, &spec.env) {
                found.push(self.problem(target, "command", problem, hint));
            }
        }
        let sandbox = match &bound.kind {
            Kind::Command(tool) => tool.spec().sandbox.as_ref(),
            Kind::Shell(tool) => tool.sandboxed(),
            Kind::Other => None,
        };
        // A folder that is not there is told already.
        let sandbox = sandbox.filter(|_| found.is_empty() && bound.missing.is_none());
        if let Some((problem, hint)) = sandbox.and_then(sandbox_problem) {
            found.push(self.problem(target, "sandbox", problem, hint));
        }
        if let Some((key, problem, hint)) = &bound.missing {
            found.push(self.problem(target, key, problem.clone(), hint));
        }
        for name in &bound.env_missing {
            let problem = format!("the variable `{name}` is not set");
            found.push(self.problem(target, "env_pass", problem, "set it, or remove it from `env_pass`"));
        }
        found
    }

    fn problem(&self, target: &str, key: &str, problem: String, hint: &str) -> Problem {
        self.problem_at(target, &[key], problem, hint)
    }

    pub(super) fn problem_at(&self, target: &str, keys: &[&str], problem: String, hint: &str) -> Problem {
        let path = keys.iter().fold(child(&tools_path(), target), |path, key| child(&path, key));
        Problem {
            file: self.file.clone(),
            place: yaml::place(&self.text, &path, Part::Value),
            target: target.to_owned(),
            problem,
            hint: hint.to_owned(),
        }
    }
}

pub(super) fn tools_path() -> Vec<Step> {
    vec![Step::Key("tools".to_owned())]
}

fn read_text(file: &Path) -> Result<String, ToolsError> {
    let unreadable = |source| ToolsError::Unreadable { file: file.to_owned(), source };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(ToolsError::TooLong { file: file.to_owned(), limit: MAX_FILE });
    }
    String::from_utf8(bytes)
        .map_err(|e| ToolsError::NotText { file: file.to_owned(), offset: e.utf8_error().valid_up_to() })
}

/// Contents of a file.
#[derive(Default)]
struct Contents {
    entries: Vec<AnyEntry>,
    models: BTreeMap<String, ModelEntry>,
    memory: Option<MemorySetting>,
}

/// Reads the whole document, with all of its faults.
fn read_file(text: &str, file: &Path, rooted: &dyn Fn(&str) -> PathBuf) -> Result<Contents, ToolsError> {
    let root = yaml::parse(text).map_err(|e| ToolsError::Syntax {
        file: file.to_owned(),
        place: e.place,
        problem: e.problem,
        hint: e.hint,
    })?;
    let mut faults = Faults::new(text);
    let mut contents = Contents::default();
    if let Some(keys) = root.as_map() {
        check_version(keys, text, file, &mut faults)?;
        contents.models = models::read(keys, rooted, &mut faults);
        contents.memory = memory::read(keys, folder_of(file), &mut faults);
        super::release::check(keys, &mut faults);
        for (key, _) in keys.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
            let hint = known_keys(key, &KEYS);
            faults.key(&child(&[], key), format!("unknown key `{key}`"), Some(hint));
        }
        contents.entries = read_tools(keys, &mut faults);
    } else {
        let hint = "begin it with `version: 1` and `tools:`".to_owned();
        faults.value(&[], format!("expected a registry, found {}", root.kind()), Some(hint));
    }
    check_names(&contents.entries, &mut faults);
    faults.into_error(file).map_or(Ok(contents), Err)
}

/// The version comes first: the faults of a later format would be noise.
fn check_version(
    keys: &[(String, Node)],
    text: &str,
    file: &Path,
    faults: &mut Faults<'_>,
) -> Result<(), ToolsError> {
    let path = child(&[], "version");
    let hint = Some(format!("write `version: {VERSION}`"));
    let Some(node) = value_of(keys, "version") else {
        faults.value(&[], "`version` is missing", hint);
        return Ok(());
    };
    let Node::Number(written, number) = node else {
        faults.value(&path, format!("expected a number, found {}", node.kind()), hint);
        return Ok(());
    };
    match *number {
        Some(VERSION) => Ok(()),
        Some(found) if found > VERSION => Err(ToolsError::NewerVersion {
            file: file.to_owned(),
            place: yaml::place(text, &path, Part::Value),
            found,
            supported: VERSION,
        }),
        _ => {
            faults.value(&path, format!("there is no version {written} of the format"), hint);
            Ok(())
        }
    }
}

fn value_of<'a>(keys: &'a [(String, Node)], wanted: &str) -> Option<&'a Node> {
    keys.iter().find(|(key, _)| key == wanted).map(|(_, node)| node)
}

/// An entry of any kind.
enum AnyEntry {
    Command(Box<Entry>),
    Builtin(Builtin),
    Server(Box<ServerEntry>),
}

impl AnyEntry {
    /// The key of the entry.
    fn target(&self) -> &str {
        match self {
            Self::Command(entry) => &entry.target,
            Self::Builtin(entry) => &entry.target,
            Self::Server(entry) => &entry.id,
        }
    }

    /// The names of its tools.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Command(entry) => vec![entry.name.clone()],
            Self::Builtin(entry) => entry.names(),
            Self::Server(_) => Vec::new(),
        }
    }

    fn env_pass(&self) -> &[String] {
        match self {
            Self::Command(entry) => &entry.env_pass,
            Self::Builtin(entry) => entry.env_pass(),
            Self::Server(_) => &[],
        }
    }
}

fn read_entry(target: &str, node: &Node, path: &[Step], faults: &mut Faults<'_>) -> Option<AnyEntry> {
    match node.as_map() {
        Some(keys) if value_of(keys, "builtin").is_some() => {
            builtin::read(target, keys, path, faults).map(AnyEntry::Builtin)
        }
        Some(keys) if value_of(keys, "mcp").is_some() => {
            let entry = server::read(target, keys, path, faults)?;
            if cfg!(feature = "mcp") {
                return Some(AnyEntry::Server(Box::new(entry)));
            }
            let hint = "use a build with the feature `mcp`".to_owned();
            faults.key(&child(path, "mcp"), "this program is built without MCP servers", Some(hint));
            None
        }
        _ => entry::read(target, node, path, faults).map(|entry| AnyEntry::Command(Box::new(entry))),
    }
}

/// The tools of an entry, by their targets.
///
/// # Errors
/// When the schema of its arguments cannot be used.
fn bounds_of(
    entry: AnyEntry,
    file: &Path,
    workshop: &mut Workshop<'_>,
) -> Result<Vec<(String, Bound)>, ToolsError> {
    let missing_in = |name: &&String| workshop.environment.get(name).is_none();
    let env_missing: Vec<String> = entry.env_pass().iter().filter(missing_in).cloned().collect();
    let key = entry.target().to_owned();
    let bound = |tool, kind, missing| {
        let (entry, env_missing) = (key.clone(), env_missing.clone());
        Bound { tool, kind, entry, env_missing, missing, position: 0 }
    };
    match entry {
        AnyEntry::Command(entry) => {
            let tool = Arc::new(tool_of(*entry, file, workshop.environment)?);
            Ok(vec![(key.clone(), bound(Arc::clone(&tool) as _, Kind::Command(tool), None))])
        }
        AnyEntry::Builtin(entry) => {
            let (made, missing) = entry.make(workshop);
            let one = |Made { target, tool, shell }| {
                (target, bound(tool, shell.map_or(Kind::Other, Kind::Shell), missing.clone()))
            };
            Ok(made.into_iter().map(one).collect())
        }
        // What tools it has is known when it is connected to.
        AnyEntry::Server(_) => Ok(Vec::new()),
    }
}

fn read_tools(keys: &[(String, Node)], faults: &mut Faults<'_>) -> Vec<AnyEntry> {
    let path = tools_path();
    let Some(node) = value_of(keys, "tools") else {
        if value_of(keys, models::SECTION).or_else(|| value_of(keys, memory::SECTION)).is_some() {
            return Vec::new();
        }
        let hint = "write the targets and their programs below `tools:`".to_owned();
        faults.value(&[], "`tools` is missing", Some(hint));
        return Vec::new();
    };
    let Some(tools) = node.as_map() else {
        let hint = "write the targets below it, or `{}` for none".to_owned();
        faults.value(&path, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return Vec::new();
    };
    let entry = |(target, node): &(String, Node)| read_entry(target, node, &child(&path, target), faults);
    tools.iter().filter_map(entry).collect()
}

/// A model tells tools apart by name alone.
fn check_names(entries: &[AnyEntry], faults: &mut Faults<'_>) {
    #[cfg(feature = "mcp")]
    super::remote::check_namespaces(
        entries
            .iter()
            .filter_map(|entry| if let AnyEntry::Server(entry) = entry { Some(&entry.id) } else { None }),
        faults,
    );
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for entry in entries {
        for name in entry.names() {
            if let Some(first) = owners.insert(name.clone(), entry.target()) {
                let path = child(&tools_path(), entry.target());
                let problem = format!("the tool of `{first}` has the name `{name}`, too");
                let hint = match entry {
                    AnyEntry::Command(_) | AnyEntry::Server(_) => "give one of them another `name`",
                    AnyEntry::Builtin(_) => "give one of them another `name` or `prefix`",
                };
                faults.key(&path, problem, Some(hint.to_owned()));
                // One name of an entry tells enough.
                break;
            }
        }
    }
}

/// The folder that relative paths of a file start from.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn tool_of(entry: Entry, file: &Path, environment: &Environment) -> Result<CommandTool, ToolsError> {
    let mut def = ToolDef::new(entry.name, entry.description).with_class(entry.class);
    def.requires_approval = entry.requires_approval;
    def.sequential = entry.sequential;
    def.input_schema = entry.parameters;
    let folder = folder_of(file);
    let program = program_of(&entry.command, folder);
    let cwd = rooted(&folder.join(entry.cwd.unwrap_or_default()));
    let mut spec = CommandSpec::new(program).args(entry.args).input(entry.input).env_from(environment);
    let passed = environment.share(entry.env_pass.iter().map(String::as_str));
    for (name, value) in passed.iter() {
        spec = spec.env(name, value);
    }
    for (name, value) in entry.env {
        spec = spec.env(name, value);
    }
    spec.sandbox = entry.sandbox.and_then(|entry| entry.of(&cwd, &|path| below(folder, path)));
    spec = spec.cwd(cwd);
    spec.timeout = entry.timeout.unwrap_or(spec.timeout);
    spec.max_output = entry.max_output.unwrap_or(spec.max_output);
    CommandTool::new(def, spec)
}

/// A program by its path, or by a name that is looked up in `PATH`.
pub(super) fn program_of(command: &str, folder: &Path) -> PathBuf {
    if is_path(command.as_ref()) { rooted(&folder.join(command)) } else { PathBuf::from(command) }
}

/// A fault of a schema, told at the place inside of it.
fn schema_fault(target: &str, error: &ToolsError, faults: &mut Faults<'_>) {
    let mut path = child(&child(&tools_path(), target), "parameters");
    let ToolsError::Schema { path: inner, problem, .. } = error else {
        faults.value(&path, error.to_string(), error.hint());
        return;
    };
    for name in inner.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        path.push(name.parse().map_or(Step::Key(name), Step::Index));
    }
    faults.value(&path, format!("the schema is wrong: {problem}"), error.hint());
}

/// A path that means the same from every folder: a program is looked for from its own `cwd`.
pub(super) fn rooted(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
