//! The registry: targets and their tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "mcp")]
use futures_util::future::join_all;
use harness_core::limits::SpendBudget;
use harness_core::port::Clock;
use harness_core::tool::{DynTool, Toolbox};
use harness_diagnostics::{Diagnostic, Document, Fields, Findings, Place, Severity, YamlLimits};
use harness_host::process::Environment;

use super::agents::Wanted;
use super::budgets;
use super::builtin::{self, Builtin, Made, Missing, Workshop, below};
use super::command::{folder_of, tool_of};
use super::entry::{self, Entry};
use super::lack::{program_problem, sandbox_problem};
use super::memory::{self, MemorySetting};
use super::models::{self, ModelEntry, ModelKey};
#[cfg(feature = "mcp")]
use super::remote::Remote;
use super::server::{self, ServerEntry};
use crate::command::CommandTool;
use crate::error::ToolsError;
use crate::shell::ShellTool;
use crate::source::Binding;
use crate::workspace::ProtectedFiles;

/// Maximum size of a registry file: 1 MiB.
pub const MAX_FILE: u64 = 1024 * 1024;

/// Version of the format.
const VERSION: u64 = 1;

/// Code of an error in a registry file.
const INVALID: &str = "tools.registry_faulty";
/// Code of something that this machine lacks.
const MISSING: &str = "tools.missing";

const KEYS: [&str; 2] = ["version", "registry_version"];
const SECTIONS: [&str; 4] = ["tools", models::SECTION, memory::SECTION, budgets::SECTION];

/// The tools that a registry file binds to targets.
///
/// A registry is read once; later changes of the file and of the environment have no effect.
pub struct Registry {
    file: PathBuf,
    document: Document,
    tools: BTreeMap<String, Bound>,
    own: ProtectedFiles,
    pub(super) models: BTreeMap<String, ModelEntry>,
    pub(super) budgets: Vec<SpendBudget>,
    pub(super) wanted: Wanted,
    pub(super) memory: Option<MemorySetting>,
    #[cfg(feature = "mcp")]
    pub(super) servers: BTreeMap<String, Remote>,
}

/// A tool with the parts of its entry that problems refer to.
struct Bound {
    tool: Arc<dyn DynTool>,
    kind: Kind,
    /// Key of its entry.
    entry: String,
    env_missing: Vec<String>,
    missing: Option<Missing>,
    position: usize,
}

/// Tools that get a clock.
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
    /// If the file cannot be read, is not a registry, or has a newer version; with all errors at once.
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

    /// Reads a registry from its text. `file` names it in messages; relative paths in the text start
    /// from its directory.
    ///
    /// # Errors
    /// As [`Registry::load`].
    pub fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Self, ToolsError> {
        let invalid = |diagnostics| ToolsError::Invalid { file: file.to_owned(), diagnostics };
        let limits = YamlLimits::for_text(MAX_FILE);
        let mut forgiven = Vec::new();
        let read = harness_diagnostics::read(text, file.display().to_string(), &limits, Some(&mut forgiven));
        let mut diagnostics: Vec<Diagnostic> = forgiven.into_iter().map(Diagnostic::from).collect();
        let document = match read {
            Ok(document) => document,
            Err(error) => {
                diagnostics.push(error.into());
                return Err(invalid(diagnostics));
            }
        };
        let findings = Findings::new(&document, INVALID);
        let mut registry =
            Self::build(&findings, file, environment).map_err(|error| invalid(vec![*error]))?;
        diagnostics.extend(findings.into_diagnostics());
        if !diagnostics.is_empty() {
            return Err(invalid(diagnostics));
        }
        registry.document = document;
        Ok(registry)
    }

    /// The tools of a document; errors go to `findings`, and the result counts only if there are none.
    fn build(
        findings: &Findings<'_>,
        file: &Path,
        environment: &Environment,
    ) -> Result<Self, Box<Diagnostic>> {
        let folder = folder_of(file);
        let rooted = |path: &str| below(folder, path);
        let mut workshop = Workshop::new(&rooted, environment);
        workshop.own.add(file);
        let mut tools: BTreeMap<String, Bound> = BTreeMap::new();
        #[cfg(feature = "mcp")]
        let mut servers = BTreeMap::new();
        let Sections { tools: section, models, budgets, memory } = read_root(findings, file)?;
        for key in models.values().filter_map(ModelEntry::key) {
            if let ModelKey::File(file) = key {
                workshop.own.add(file);
            }
        }
        let entries = section.as_ref().map(read_entries).unwrap_or_default();
        if let Some(section) = section.filter(|_| findings.is_empty()) {
            for entry in entries {
                #[cfg(feature = "mcp")]
                let entry = match entry {
                    AnyEntry::Server(entry) => {
                        servers.insert(entry.id.clone(), Remote::new(*entry, file, environment));
                        continue;
                    }
                    entry @ (AnyEntry::Command(_) | AnyEntry::Builtin(_)) => entry,
                };
                bind(entry, &section, file, &mut workshop, &mut tools);
            }
        }
        Ok(Self {
            file: file.to_owned(),
            document: Document::default(),
            tools,
            own: workshop.own,
            models,
            budgets,
            wanted: workshop.wanted,
            memory,
            #[cfg(feature = "mcp")]
            servers,
        })
    }

    /// Files that its tools never write: the registry file itself, and those that the host adds, such as
    /// its descriptor and its key files.
    pub fn protected(&self) -> &ProtectedFiles {
        &self.own
    }

    pub(super) fn document(&self) -> &Document {
        &self.document
    }

    /// Place of the value at a path of keys, such as `["models", "house", "auth"]`, or of the nearest value that
    /// contains it.
    pub fn place(&self, path: &[&str]) -> Place {
        self.document.place_at(path)
    }

    /// File of the registry.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Bound targets, sorted by name.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Targets and their tools, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn DynTool>)> {
        let mut all: Vec<_> = self.tools.iter().collect();
        all.sort_by_key(|(_, bound)| bound.position);
        all.into_iter().map(|(target, bound)| (target.as_str(), &bound.tool))
    }

    /// The tool of a target, if it runs a program.
    pub fn command(&self, target: &str) -> Option<&CommandTool> {
        match &self.tools.get(target)?.kind {
            Kind::Command(tool) => Some(tool),
            Kind::Shell(_) | Kind::Other => None,
        }
    }

    /// The tool that a target is bound to.
    ///
    /// # Errors
    /// [`ToolsError::Unbound`], whose hint suggests a similar target.
    pub fn get(&self, target: &str) -> Result<Arc<dyn DynTool>, ToolsError> {
        match self.tools.get(target) {
            Some(bound) => Ok(Arc::clone(&bound.tool)),
            None => Err(self.unbound(target)),
        }
    }

    /// The binding of a target: a tool, or one or all of the tools of a server (`SERVER.TOOL`,
    /// `SERVER.*`). Whether a server has the tool is known once it is connected.
    ///
    /// # Errors
    /// [`ToolsError::Unbound`], whose hint suggests a similar target.
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

    /// Stops the servers that were started or connected, and waits until their programs have exited.
    ///
    /// Dropping the registry stops them without waiting.
    #[cfg_attr(not(feature = "mcp"), expect(clippy::unused_async, reason = "only servers take time to stop"))]
    pub async fn close(&self) {
        #[cfg(feature = "mcp")]
        join_all(self.servers.values().map(|remote| remote.server().close())).await;
    }

    fn unbound(&self, target: &str) -> ToolsError {
        let bound: Vec<String> = self.targets().map(str::to_owned).collect();
        #[cfg(feature = "mcp")]
        let bound: Vec<String> =
            bound.into_iter().chain(self.servers.keys().map(|id| format!("{id}.*"))).collect();
        ToolsError::Unbound { file: self.file.clone(), target: target.to_owned(), bound }
    }

    /// The tools of some targets, in that order, each once.
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

    /// Sets the clock by which tools stop at the deadline of the turn
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

    /// Reports programs, directories and variables that the tools need and this machine lacks.
    ///
    /// Reads the file system and starts nothing. The file itself is valid, so loading it works; a call of
    /// the tool would fail.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut all: Vec<_> = self.tools.values().collect();
        all.sort_by_key(|bound| bound.position);
        // A problem of all tools of an entry is reported once.
        all.dedup_by_key(|bound| &bound.entry);
        let problems = all.into_iter().flat_map(|bound| self.problems_of(bound)).collect();
        #[cfg(feature = "mcp")]
        let problems = self.with_problems_of_servers(problems);
        problems
    }

    fn problems_of(&self, bound: &Bound) -> Vec<Diagnostic> {
        let target = &*bound.entry;
        let mut found = Vec::new();
        if let Kind::Command(tool) = &bound.kind {
            let program = &tool.spec().program;
            if let Some(cwd) = program.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
                let problem = format!("directory `{}` does not exist", cwd.display());
                found.push(self.problem(target, "cwd", problem, "create it, or correct `cwd`"));
            }
            if let Some((problem, hint)) = program_problem(program) {
                found.push(self.problem(target, "command", problem, hint));
            }
        }
        let sandbox = match &bound.kind {
            Kind::Command(tool) => tool.spec().sandbox.as_ref(),
            Kind::Shell(tool) => tool.spec.sandbox.as_ref(),
            Kind::Other => None,
        };
        // A missing directory is already reported.
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

    fn problem(&self, target: &str, key: &str, problem: String, hint: &str) -> Diagnostic {
        self.problem_at(target, &[key], problem, hint)
    }

    pub(super) fn problem_at(&self, target: &str, keys: &[&str], problem: String, hint: &str) -> Diagnostic {
        let path: Vec<&str> = ["tools", target].into_iter().chain(keys.iter().copied()).collect();
        Diagnostic::new(Severity::Error, MISSING, format!("tool target `{target}`: {problem}"))
            .at(self.document.place_at(&path))
            .hint(hint)
    }
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

/// The sections of a file.
#[derive(Default)]
struct Sections<'a> {
    /// `None` if there are no tools, or the section cannot be read.
    tools: Option<Fields<'a>>,
    models: BTreeMap<String, ModelEntry>,
    budgets: Vec<SpendBudget>,
    memory: Option<MemorySetting>,
}

/// Reads everything but the entries of the tools.
///
/// # Errors
/// If the file has a newer version: errors of a newer format would be noise.
fn read_root<'a>(findings: &'a Findings<'a>, file: &Path) -> Result<Sections<'a>, Box<Diagnostic>> {
    let Some(root) = Fields::root(findings, "the registry file") else { return Ok(Sections::default()) };
    check_version(&root)?;
    super::release::check(&root);
    root.known(&[&KEYS[..], &SECTIONS].concat());
    if !SECTIONS.iter().any(|section| root.has(section)) {
        root.missing("tools", "write the targets and their programs below `tools:`");
    }
    let tools = root.section("tools", "write the targets below it, or `{}` for none");
    let folder = folder_of(file);
    let models = models::read(&root, &|path| below(folder, path));
    Ok(Sections { tools, models, budgets: budgets::read(&root), memory: memory::read(&root, folder) })
}

fn check_version(root: &Fields<'_>) -> Result<(), Box<Diagnostic>> {
    let hint = format!("write `version: {VERSION}`");
    let Some(node) = root.node("version") else {
        root.missing("version", &hint);
        return Ok(());
    };
    match root.document().whole(node) {
        Some(VERSION) => Ok(()),
        Some(found) if found > VERSION => {
            let message = format!("unsupported registry version {found}, expected {VERSION}");
            let error = Diagnostic::new(Severity::Error, "tools.registry_newer_version", message)
                .at(root.document().place(node))
                .hint(format!("update this program, or write the file as version {VERSION}"));
            Err(Box::new(error))
        }
        _ => {
            root.expected("version", &format!("`{VERSION}`"), &hint);
            Ok(())
        }
    }
}

/// An entry of any kind.
enum AnyEntry {
    Command(Box<Entry>),
    Builtin(Builtin),
    Server(Box<ServerEntry>),
}

impl AnyEntry {
    /// Key of the entry.
    fn target(&self) -> &str {
        match self {
            Self::Command(entry) => &entry.target,
            Self::Builtin(entry) => &entry.target,
            Self::Server(entry) => &entry.id,
        }
    }

    /// Names of its tools for models.
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

/// Reads all entries, and reports names that a model could not tell apart.
fn read_entries(tools: &Fields<'_>) -> Vec<AnyEntry> {
    let entries: Vec<AnyEntry> = tools.keys().filter_map(|target| read_entry(target, tools)).collect();
    check_names(&entries, tools);
    entries
}

fn read_entry(target: &str, tools: &Fields<'_>) -> Option<AnyEntry> {
    let fields = tools.section(target, "write `command` and the tool's other keys below it")?;
    if fields.has("builtin") {
        return builtin::read(target, &fields).map(AnyEntry::Builtin);
    }
    if !fields.has("mcp") {
        return Some(AnyEntry::Command(Box::new(entry::read(target, &fields))));
    }
    let entry = server::read(target, &fields)?;
    if cfg!(feature = "mcp") {
        return Some(AnyEntry::Server(Box::new(entry)));
    }
    fields.key_error("mcp", "this build does not support MCP servers", "use a build with the feature `mcp`");
    None
}

/// Adds the tools of an entry.
fn bind(
    entry: AnyEntry,
    section: &Fields<'_>,
    file: &Path,
    workshop: &mut Workshop<'_>,
    tools: &mut BTreeMap<String, Bound>,
) {
    let key = entry.target().to_owned();
    let made = match bounds_of(entry, file, workshop) {
        Ok(made) => made,
        Err(error) => return schema_error(section, &key, &error),
    };
    for (target, mut bound) in made {
        bound.position = tools.len();
        if let Some(first) = tools.insert(target.clone(), bound) {
            let message = format!("`{key}` binds target `{target}`, which `{}` already binds", first.entry);
            section.key_error(&key, message, "rename one of the entries");
        }
    }
}

/// The tools of an entry, by their targets.
///
/// # Errors
/// If the schema of its arguments is invalid.
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
        // Its tools are known once it is connected.
        AnyEntry::Server(_) => Ok(Vec::new()),
    }
}

fn check_names(entries: &[AnyEntry], tools: &Fields<'_>) {
    #[cfg(feature = "mcp")]
    super::remote::check_namespaces(
        entries
            .iter()
            .filter_map(|entry| if let AnyEntry::Server(entry) = entry { Some(&entry.id) } else { None }),
        tools,
    );
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for entry in entries {
        for name in entry.names() {
            if let Some(first) = owners.insert(name.clone(), entry.target()) {
                let message = format!("duplicate tool name `{name}`, also used by `{first}`");
                let hint = match entry {
                    AnyEntry::Command(_) | AnyEntry::Server(_) => "set a different `name`",
                    AnyEntry::Builtin(_) => "set a different `name` or `prefix`",
                };
                tools.key_error(entry.target(), message, hint);
                // One name of an entry is enough.
                break;
            }
        }
    }
}

/// Reports an error of a schema at the place inside of it.
fn schema_error(section: &Fields<'_>, target: &str, error: &ToolsError) {
    let document = section.document();
    let entry = section.node(target);
    let schema = entry.and_then(|entry| document.get(entry, "parameters"));
    let (ToolsError::Schema { path, problem, .. }, Some(mut node)) = (error, schema) else {
        return section.key_error(target, error.to_string(), error.hint().unwrap_or_default());
    };
    for name in path.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let item = || document.list(node)?.get(name.parse::<usize>().ok()?).copied();
        node = document.get(node, &name).or_else(item).unwrap_or(node);
    }
    let message = format!(
        "{}.parameters{}: invalid schema: {problem}",
        section.path_of(target),
        path.replace('/', ".")
    );
    section.findings().value(node, message, error.hint());
}
