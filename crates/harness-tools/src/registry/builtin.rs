//! Entries of built-in tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness_control::work::WorkLimits;
use harness_core::Time;
use harness_core::port::{BoxFuture, Clock};
use harness_core::tool::DynTool;
use harness_diagnostics::{Fields, suggest};
use harness_host::process::Environment;
use harness_host::{
    DynWorkspace, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode, WorkspaceFile, WorkspaceHit,
};

use super::agents::{self, Wanted};
use super::entry::{env, max_output, prefix, timeout, tool_name};
use super::sandbox::{self, SandboxEntry};
use crate::background::BackgroundAgents;
use crate::error::ToolsError;
use crate::modes::{Mode, Modes};
use crate::shell::{ShellPolicy, ShellTool};
use crate::state::Keep;
use crate::subagent::{SUBAGENT_TOOLS, Subagent, SubagentTool};
use crate::work::WorkTools;
use crate::workspace::{
    FileEdits, FolderWorkspace, ProtectedFiles, SeenFiles, WorkspaceOptions, WorkspaceTools,
};

/// Built-in tools by their names in the file, with their keys besides `builtin`.
const KINDS: [(&str, &[&str]); 7] = [
    ("workspace", &["root", "prefix", "max_file"]),
    ("file_edit", &["root", "prefix", "max_file", "requires_approval", "unprotected"]),
    (
        "shell",
        &[
            "allow",
            "allow_options",
            "deny",
            "name",
            "description",
            "cwd",
            "timeout",
            "max_output",
            "env",
            "env_pass",
            "requires_approval",
            "sandbox",
        ],
    ),
    ("work_items", &["max_items", "artifacts", "keep"]),
    ("modes", &["initial", "model_may_set"]),
    ("subagents", &["agents"]),
    ("background", &["agents", "most_running", "keep"]),
];

/// Tools of work items, those of a simple list first.
const WORK_TOOLS: [&str; 6] = [
    "work_item_add",
    "work_item_update",
    "work_item_list",
    "work_item_get",
    "work_item_set_artifact",
    "work_item_flag_revision",
];

/// Maximum size of a file of a workspace: 1 GiB.
const MAX_FILE: u64 = 1024 * 1024 * 1024;

/// Entry of built-in tools, as written.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) target: String,
    which: Which,
}

#[derive(Debug)]
enum Which {
    Workspace { root: String, prefix: String, max_file: Option<u64> },
    FileEdit { root: String, prefix: String, max_file: Option<u64>, approval: bool, unprotected: Vec<String> },
    Shell(Box<Shell>),
    WorkItems { max_items: Option<u64>, artifacts: bool, keep: Keep },
    Modes { initial: Initial, model_may_set: bool },
    Subagents { agents: Vec<Subagent> },
    Background { agents: Vec<Subagent>, most_running: Option<u64>, keep: Keep },
}

/// Initial mode of a thread.
#[derive(Clone, Copy, Debug, Default)]
enum Initial {
    #[default]
    Plan,
    Execute,
}

#[derive(Debug)]
struct Shell {
    policy: ShellPolicy,
    name: String,
    description: Option<String>,
    cwd: String,
    timeout: Option<Duration>,
    max_output: Option<usize>,
    env: Vec<(String, String)>,
    env_pass: Vec<String>,
    approval: bool,
    sandbox: SandboxEntry,
}

/// Reads an entry with the key `builtin`; `None` if it cannot be read at all.
pub(crate) fn read(target: &str, fields: &Fields<'_>) -> Option<Builtin> {
    let word = fields.text("builtin")?;
    let Some((_, keys)) = KINDS.iter().find(|(name, _)| *name == word) else {
        let hint = suggest::hint(&word, KINDS.map(|(name, _)| name));
        fields.error("builtin", format!("unknown built-in tool `{word}`"), hint);
        return None;
    };
    let known: Vec<&str> = keys.iter().copied().chain(["builtin"]).collect();
    fields.known(&known);
    let which = match &*word {
        "workspace" => Which::Workspace {
            root: fields.required("root", ROOT),
            prefix: prefix(fields),
            max_file: fields.size("max_file", 1, MAX_FILE),
        },
        "file_edit" => Which::FileEdit {
            root: fields.required("root", ROOT),
            prefix: prefix(fields),
            max_file: fields.size("max_file", 1, MAX_FILE),
            approval: fields.flag("requires_approval").unwrap_or(true),
            unprotected: fields.texts("unprotected"),
        },
        "shell" => Which::Shell(Box::new(shell(fields, target)?)),
        "work_items" => Which::WorkItems {
            max_items: fields.whole("max_items", 1, 10_000),
            artifacts: fields.flag("artifacts").unwrap_or(false),
            keep: keep(fields),
        },
        "modes" => Which::Modes {
            initial: fields
                .one_of("initial", &[("plan", Initial::Plan), ("execute", Initial::Execute)])
                .unwrap_or_default(),
            model_may_set: fields.flag("model_may_set").unwrap_or(false),
        },
        "subagents" => Which::Subagents { agents: agents::read(fields) },
        _ => Which::Background {
            agents: agents::read(fields),
            most_running: fields.whole("most_running", 1, 32),
            keep: keep(fields),
        },
    };
    Some(Builtin { target: target.to_owned(), which })
}

const ROOT: &str = "set it to the directory that the tools may use";

fn keep(fields: &Fields<'_>) -> Keep {
    fields.one_of("keep", &[("run", Keep::Run), ("thread", Keep::Thread)]).unwrap_or_default()
}

fn shell(fields: &Fields<'_>, target: &str) -> Option<Shell> {
    const FORM: &str = "list the commands that may run, such as `[git status, ls]`, or write `any` for all";
    let policy = match fields.node("allow").map(|node| fields.document().string(node)) {
        Some(Some("any")) => ShellPolicy::any(),
        Some(Some(_)) => {
            fields.expected("allow", "a list of commands", FORM);
            return None;
        }
        None => {
            fields.missing("allow", FORM);
            return None;
        }
        Some(None) => {
            let rules = fields.texts("allow");
            checked(fields, "allow", &rules, ShellPolicy::allowing(&rules))?
        }
    };
    let options = fields.texts("allow_options");
    let policy = checked(fields, "allow_options", &options, policy.allowing_options(&options))?;
    let denied = fields.texts("deny");
    let policy = checked(fields, "deny", &denied, policy.denying(&denied))?;
    Some(Shell {
        policy,
        name: if fields.has("name") { tool_name(fields, target) } else { "shell".to_owned() },
        description: fields.text("description"),
        cwd: fields.text("cwd").unwrap_or_default(),
        timeout: timeout(fields),
        max_output: max_output(fields),
        env: env(fields),
        env_pass: fields.texts("env_pass"),
        approval: fields.flag("requires_approval").unwrap_or(true),
        sandbox: sandbox::read(fields).unwrap_or(SandboxEntry::DEFAULT),
    })
}

/// A policy with the rules of a key; `None` if one of them is invalid, which is reported.
fn checked(
    fields: &Fields<'_>,
    key: &str,
    rules: &[String],
    policy: Result<ShellPolicy, ToolsError>,
) -> Option<ShellPolicy> {
    let error = match policy {
        Ok(policy) => return Some(policy),
        Err(error) => error,
    };
    let hint = error.hint();
    if let ToolsError::ShellRule { rule, problem } = &error
        && let Some(at) = rules.iter().position(|known| known == rule)
        && let Some(node) = fields.node(key).and_then(|list| fields.document().list(list)?.get(at))
    {
        let message = format!("{}[{at}]: the rule has {problem}", fields.path_of(key));
        fields.findings().value(*node, message, hint);
    } else {
        fields.error(key, error.to_string(), hint.unwrap_or_default());
    }
    None
}

/// A tool of an entry, ready to be bound.
pub(crate) struct Made {
    pub(crate) target: String,
    pub(crate) tool: Arc<dyn DynTool>,
    /// The tool once more, if it takes a clock.
    pub(crate) shell: Option<Arc<ShellTool>>,
}

/// Something that an entry needs and the machine lacks: the key, the problem, the hint.
pub(crate) type Missing = (&'static str, String, &'static str);

/// State shared by all entries of a file while their tools are created.
pub(crate) struct Workshop<'e> {
    /// Makes a path of the file absolute.
    pub(crate) rooted: &'e dyn Fn(&str) -> PathBuf,
    pub(crate) environment: &'e Environment,
    /// Files read by tools, by directory: tools that edit a directory know what was read there.
    seen: BTreeMap<PathBuf, SeenFiles>,
    /// Files that no tool may write.
    pub(super) own: ProtectedFiles,
    pub(super) wanted: Wanted,
}

impl Builtin {
    /// The names that models will call.
    pub(crate) fn names(&self) -> Vec<String> {
        let with =
            |prefix: &str, names: &[&str]| names.iter().map(|name| format!("{prefix}{name}")).collect();
        match &self.which {
            Which::Workspace { prefix, .. } => {
                with(prefix, &["workspace_search", "workspace_list", "workspace_read", "workspace_read_json"])
            }
            Which::FileEdit { prefix, .. } => with(prefix, &["file_write", "file_edit"]),
            Which::Shell(shell) => vec![shell.name.clone()],
            Which::WorkItems { artifacts, .. } => {
                with("", WORK_TOOLS.get(..if *artifacts { 6 } else { 3 }).unwrap_or_default())
            }
            Which::Modes { .. } => with("mode_", &["get", "set"]),
            Which::Subagents { .. } => with("", &["task"]),
            Which::Background { .. } => with("", SUBAGENT_TOOLS.split_first().map_or(&[], |(_, rest)| rest)),
        }
    }

    /// The variables that the entry passes on.
    pub(crate) fn env_pass(&self) -> &[String] {
        if let Which::Shell(shell) = &self.which { &shell.env_pass } else { &[] }
    }

    /// Creates the tools, and reports what this machine lacks for them.
    pub(crate) fn make(&self, workshop: &mut Workshop<'_>) -> (Vec<Made>, Option<Missing>) {
        match &self.which {
            Which::Workspace { root, prefix, max_file } => {
                let (files, seen, missing) = workshop.folder(root, *max_file, |files| files);
                let tools = WorkspaceTools::new(files, WorkspaceOptions::default());
                (self.set(tools.with_prefix(&**prefix).with_seen(seen).into_set(), prefix), missing)
            }
            Which::FileEdit { root, prefix, max_file, approval, unprotected } => {
                let own = workshop.own.clone();
                let writable = |files: FolderWorkspace| {
                    files.writable().protecting(own).unprotected(unprotected.clone())
                };
                let (files, seen, missing) = workshop.folder(root, *max_file, writable);
                let edits = FileEdits::new(files, seen).with_prefix(&**prefix);
                let edits = if *approval { edits } else { edits.without_approval() };
                (self.set(edits.into_set(), prefix), missing)
            }
            Which::Shell(shell) => self.shell(shell.tool(workshop)),
            Which::WorkItems { max_items, artifacts, keep } => {
                let mut limits = WorkLimits::default();
                limits.items = max_items.and_then(|most| usize::try_from(most).ok()).unwrap_or(limits.items);
                let work = WorkTools::new(*keep, Arc::new(Timeless)).with_limits(limits);
                workshop.wanted.work = Some(work.clone());
                let tools = if *artifacts { work.into_set() } else { work.into_list() };
                (self.set(tools, "work_item_"), None)
            }
            Which::Modes { initial, model_may_set } => {
                let modes = initial.modes();
                let modes = if *model_may_set { modes.model_may_set() } else { modes };
                let tools = modes.tools();
                workshop.wanted.modes = Some(modes);
                (self.set(tools, "mode_"), None)
            }
            Which::Subagents { agents } => {
                let runner = Arc::new(workshop.wanted.runner());
                let tool = SubagentTool::new(agents.iter().cloned(), runner).map(SubagentTool::gated);
                (self.set(SubagentTool::set_of(tool), ""), None)
            }
            Which::Background { agents, most_running, keep } => {
                let runner = Arc::new(workshop.wanted.runner());
                let tools = BackgroundAgents::new(agents.iter().cloned(), runner, *keep).map(|tools| {
                    let most = most_running.and_then(|most| usize::try_from(most).ok());
                    let tools = most.into_iter().fold(tools, BackgroundAgents::most_running);
                    self.set(tools.gated().into_set(), "background_agents_")
                });
                (tools.unwrap_or_default(), None)
            }
        }
    }

    /// The shell tool; its directory may be missing.
    fn shell(&self, tool: ShellTool) -> (Vec<Made>, Option<Missing>) {
        let missing = (!tool.folder().is_dir()).then(|| {
            let problem = format!("directory `{}` does not exist", tool.folder().display());
            ("cwd", problem, "create it, or correct `cwd`")
        });
        let (tool, target) = (Arc::new(tool), self.target.clone());
        (vec![Made { target, tool: Arc::clone(&tool) as _, shell: Some(tool) }], missing)
    }

    /// The tools of a set, each behind the target `ENTRY.TOOL`.
    fn set(&self, set: crate::tool_set::ToolSet, prefix: &str) -> Vec<Made> {
        let made = |tool: &Arc<dyn DynTool>| {
            let name = tool.tool_def().name.as_str();
            let name = name.strip_prefix(prefix).unwrap_or(name);
            Made { target: format!("{}.{name}", self.target), tool: Arc::clone(tool), shell: None }
        };
        set.tools().iter().map(made).collect()
    }
}

impl Initial {
    fn modes(self) -> Modes {
        match self {
            Self::Plan => Modes::plan_and_execute(),
            Self::Execute => Modes::new(Mode::execute(), [Mode::plan()]),
        }
    }
}

impl<'e> Workshop<'e> {
    pub(crate) fn new(rooted: &'e dyn Fn(&str) -> PathBuf, environment: &'e Environment) -> Self {
        Self {
            rooted,
            environment,
            seen: BTreeMap::new(),
            own: ProtectedFiles::default(),
            wanted: Wanted::default(),
        }
    }

    /// A directory as a workspace; if it cannot be opened, every call returns that error.
    fn folder(
        &mut self,
        root: &str,
        max_file: Option<u64>,
        kind: impl FnOnce(FolderWorkspace) -> FolderWorkspace,
    ) -> (Arc<dyn DynWorkspace>, SeenFiles, Option<Missing>) {
        let root = (self.rooted)(root);
        let seen = self.seen.entry(root.clone()).or_default().clone();
        match FolderWorkspace::open(&root) {
            Ok(files) => {
                let files = max_file.map_or(files.clone(), |most| files.max_file(most));
                (Arc::new(kind(files)), seen, None)
            }
            Err(error) => {
                let problem = error.to_string();
                let missing = ("root", problem.clone(), "create it, or correct `root`");
                (Arc::new(NoFolder(problem)), seen, Some(missing))
            }
        }
    }
}

impl Shell {
    fn tool(&self, workshop: &Workshop<'_>) -> ShellTool {
        let folder = (workshop.rooted)(&self.cwd);
        let sandbox = self.sandbox.of(&folder, workshop.rooted);
        let mut tool = ShellTool::new(self.policy.clone(), folder)
            .env_from(workshop.environment)
            .named(&self.name, self.description.as_deref());
        tool.spec.sandbox = sandbox;
        tool.spec.limit(self.timeout, self.max_output);
        let env = &mut tool.spec.program.env;
        *env = workshop.environment.share(self.env_pass.iter().map(String::as_str));
        for (name, value) in &self.env {
            env.set(name, value);
        }
        if self.approval { tool } else { tool.without_approval() }
    }
}

/// A directory that could not be opened.
struct NoFolder(String);

impl NoFolder {
    fn fault(&self) -> WorkspaceFault {
        WorkspaceFault::new(WorkspaceFaultCode::NotFound, &*self.0)
    }
}

impl Workspace for NoFolder {
    async fn list(&self, _: &str, _: u32, _: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        Err(self.fault())
    }

    async fn read(&self, _: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        Err(self.fault())
    }

    async fn search(&self, _: &str, _: Option<&str>, _: u32) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        Err(self.fault())
    }
}

/// Clock of tools until [`Registry::with_clock`](super::Registry::with_clock) sets one.
struct Timeless;

impl Clock for Timeless {
    fn now(&self) -> Time {
        Time(0)
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A path relative to the directory of a registry file.
pub(crate) fn below(folder: &Path, path: &str) -> PathBuf {
    let path = folder.join(path);
    std::path::absolute(&path).unwrap_or(path)
}
