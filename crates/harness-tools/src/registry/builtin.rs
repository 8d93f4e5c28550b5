//! Entries of the tools that come with this crate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness_control::work::WorkLimits;
use harness_core::Time;
use harness_core::port::{BoxFuture, Clock};
use harness_core::tool::DynTool;
use harness_host::process::Environment;
use harness_host::{
    DynWorkspace, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode, WorkspaceFile, WorkspaceHit,
};

use super::agents::{self, Wanted};
use super::entry::{Fields, unknown_keys};
use super::faults::Faults;
use super::sandbox::{self, SandboxEntry};
use super::yaml::{Node, Step};
use crate::background::BackgroundAgents;
use crate::modes::{Mode, Modes};
use crate::near;
use crate::shell::{ShellPolicy, ShellTool};
use crate::state::Keep;
use crate::subagent::{SUBAGENT_TOOLS, Subagent, SubagentTool};
use crate::work::WorkTools;
use crate::workspace::{
    FileEdits, FolderWorkspace, ProtectedFiles, SeenFiles, WorkspaceOptions, WorkspaceTools,
};

/// The built-in tools by their names in the file, with their keys beside `builtin`.
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

/// The most that a file of a workspace may have: 1 GiB.
const MAX_FILE: u64 = 1024 * 1024 * 1024;

/// One entry of built-in tools as the file has it.
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

/// The mode that a conversation begins in.
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

/// Reads the entry at `path`, which has the key `builtin`. What is wrong in it goes to `faults`.
pub(crate) fn read(
    target: &str,
    entries: &[(String, Node)],
    path: &[Step],
    faults: &mut Faults<'_>,
) -> Option<Builtin> {
    let mut fields = Fields::new(entries, path, faults);
    let word = fields.text("builtin")?;
    let Some((_, keys)) = KINDS.iter().find(|(name, _)| *name == word) else {
        let known = KINDS.map(|(name, _)| name);
        let hint = near::did_you_mean(&word, known)
            .unwrap_or_else(|| format!("there are {}", near::list(&known, "and")));
        fields.fault("builtin", format!("there is no built-in tool `{word}`"), hint);
        return None;
    };
    let known: Vec<&str> = keys.iter().copied().chain(["builtin"]).collect();
    unknown_keys(entries, &known, path, fields.faults());
    let which = match &*word {
        "workspace" => {
            let root = fields.required("root", ROOT);
            Which::Workspace {
                root,
                prefix: fields.prefix(),
                max_file: fields.bytes("max_file", 1, MAX_FILE),
            }
        }
        "file_edit" => Which::FileEdit {
            root: fields.required("root", ROOT),
            prefix: fields.prefix(),
            max_file: fields.bytes("max_file", 1, MAX_FILE),
            approval: fields.flag("requires_approval", true),
            unprotected: fields.texts("unprotected"),
        },
        "shell" => Which::Shell(Box::new(shell(&mut fields, target)?)),
        "work_items" => Which::WorkItems {
            max_items: fields.whole("max_items", 1, 10_000),
            artifacts: fields.flag("artifacts", false),
            keep: keep(&mut fields),
        },
        "modes" => Which::Modes {
            initial: fields.one_of("initial", &[("plan", Initial::Plan), ("execute", Initial::Execute)]),
            model_may_set: fields.flag("model_may_set", false),
        },
        "subagents" => Which::Subagents { agents: agents::read(entries, path, fields.faults()) },
        _ => Which::Background {
            agents: agents::read(entries, path, fields.faults()),
            most_running: fields.whole("most_running", 1, 32),
            keep: keep(&mut fields),
        },
    };
    Some(Builtin { target: target.to_owned(), which })
}

const ROOT: &str = "write the folder that the tools may see";

fn keep(fields: &mut Fields<'_, '_, '_>) -> Keep {
    fields.one_of("keep", &[("run", Keep::Run), ("thread", Keep::Thread)])
}

fn shell(fields: &mut Fields<'_, '_, '_>, target: &str) -> Option<Shell> {
    const FORM: &str = "write the commands that may run, such as `[git status, ls]`, or `any` for all";
    let any = fields.get("allow").and_then(Node::as_text);
    let policy = match any {
        Some("any") => ShellPolicy::any(),
        Some(other) => {
            fields.fault("allow", format!("expected a list of commands, found the text `{other}`"), FORM);
            return None;
        }
        None if fields.get("allow").is_none() => {
            fields.missing("allow", FORM);
            return None;
        }
        None => {
            let rules = fields.texts("allow");
            fields.rules("allow", &rules, |rules| ShellPolicy::allowing(rules))?
        }
    };
    let options = fields.texts("allow_options");
    let policy = fields.rules("allow_options", &options, |options| policy.allowing_options(options))?;
    let denied = fields.texts("deny");
    let policy = fields.rules("deny", &denied, |rules| policy.denying(rules))?;
    Some(Shell {
        policy,
        name: if fields.get("name").is_some() { fields.name(target) } else { "shell".to_owned() },
        description: fields.text("description"),
        cwd: fields.text("cwd").unwrap_or_default(),
        timeout: fields.timeout(),
        max_output: fields.max_output(),
        env: fields.env(),
        env_pass: fields.texts("env_pass"),
        approval: fields.flag("requires_approval", true),
        sandbox: sandbox::read(fields).unwrap_or(SandboxEntry::USUAL),
    })
}

/// A tool of an entry, ready to be bound.
pub(crate) struct Made {
    pub(crate) target: String,
    pub(crate) tool: Arc<dyn DynTool>,
    /// The tool once more, if it has to be told a clock.
    pub(crate) shell: Option<Arc<ShellTool>>,
}

/// What an entry needs from the machine and does not find: the key, what is missing, what to do.
pub(crate) type Missing = (&'static str, String, &'static str);

/// What all entries of a file share while they are made.
pub(crate) struct Workshop<'e> {
    /// Makes a path of the file absolute.
    pub(crate) rooted: &'e dyn Fn(&str) -> PathBuf,
    pub(crate) environment: &'e Environment,
    /// What tools have read, by folder: those that change a folder know what those that read it saw.
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

    /// Makes the tools, and tells what they miss on this machine.
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

    /// The tool that runs commands, which misses its folder where there is none.
    fn shell(&self, tool: ShellTool) -> (Vec<Made>, Option<Missing>) {
        let missing = (!tool.folder().is_dir()).then(|| {
            let problem = format!("its folder {} does not exist", tool.folder().display());
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

    /// A folder as a workspace; one that cannot be opened answers every call with why.
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
        let share = workshop.environment.share(self.env_pass.iter().map(String::as_str));
        let folder = (workshop.rooted)(&self.cwd);
        let sandbox = self.sandbox.of(&folder, workshop.rooted);
        let tool = ShellTool::new(self.policy.clone(), folder).env_from(workshop.environment);
        let mut tool = match sandbox {
            Some(sandbox) => tool.sandbox(sandbox),
            None => tool.without_sandbox(),
        };
        for (name, value) in share.iter() {
            tool = tool.env(name, value);
        }
        for (name, value) in &self.env {
            tool = tool.env(name, value);
        }
        tool = tool.named(&self.name, self.description.as_deref());
        if let Some(timeout) = self.timeout {
            tool = tool.timeout(timeout);
        }
        if let Some(bytes) = self.max_output {
            tool = tool.max_output(bytes);
        }
        if self.approval { tool } else { tool.without_approval() }
    }
}

/// A folder that could not be opened.
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

/// A path below the folder of a registry file.
pub(crate) fn below(folder: &Path, path: &str) -> PathBuf {
    let path = folder.join(path);
    std::path::absolute(&path).unwrap_or(path)
}
