//! The assistant of a chat without a descriptor: an agent with tools in the current directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::Builder;
use harness::core::ThreadId;
use harness::core::outcome::StopMode;
use harness::core::port::{ApprovalAsk, Clock};
use harness::core::tool::DynTool;
use harness::host::process::Sandbox;
use harness::tools::{
    FileEdits, FolderWorkspace, Keep, Mode, ModeCalls, Modes, ShellPolicy, ShellTool, StandingApprovals,
    ThreadMode, WorkTools, WorkspaceOptions, WorkspaceTools,
};

use crate::error::CliError;
use crate::{env, secrets};

/// Instructions of the assistant.
const INSTRUCTIONS: &str = "\
You are a careful software engineer who works with a user at a terminal, in the user's directory.

Work like this:
- Look before you act: search, list and read files instead of guessing what they contain. Searches skip what \
`.gitignore` excludes; such files can be listed and read.
- Do what the user asks, in the style of the surrounding code, and nothing beyond it.
- Prefer `file_edit` to `file_write` for existing files. Read a file before you change it.
- Run the project's own checks after a change if it has any, and say what you ran and what came of it.
- For work of several steps, keep a to-do list with the `work_item` tools.
- If a call is denied, read the reason and ask the user; do not try another way to the same effect.
- If something is unclear and a wrong guess would cost the user work, ask first.

`shell` runs one program without a shell; for pipes and lists use `sh -c '...'`. File tools and commands work in \
the user's directory only; commands have no network. If you need more, ask the user to run the command: a line \
that starts with `!` runs in the user's own shell and you see its output.

Answer in Markdown, briefly: what you did or found, with paths and line numbers, and what is still open.";

const PLAN: &str = "plan";
const ASK: &str = "ask";
const ACCEPT: &str = "accept edits";

/// Directories that a search skips: they hold what tools generate.
pub(super) const SKIPPED: [&str; 5] = [".git", "node_modules", "target", ".venv", "__pycache__"];

/// Directories below the home directory with toolchains and downloaded packages, which commands may read.
const TOOLCHAINS: [&str; 8] =
    [".rustup", ".cargo/registry", ".cargo/git", ".nvm", ".pyenv", ".rbenv", "go/pkg/mod", ".m2/repository"];

/// Tools of the assistant, and what the chat needs of them.
#[derive(Clone)]
pub(super) struct Assistant {
    folder: PathBuf,
    tools: Vec<Arc<dyn DynTool>>,
    pub(super) edits: FileEdits,
    work: WorkTools,
    pub(super) modes: Modes,
    /// Reason why commands run without a sandbox, if they do.
    pub(super) unsandboxed: Option<String>,
}

impl Assistant {
    /// Opens the tools in a directory.
    pub(super) fn open(folder: &Path, clock: &Arc<dyn Clock>) -> Result<Self, CliError> {
        let read = |source| CliError::Io { action: "read the current directory", source };
        let folder = folder.canonicalize().map_err(read)?;
        let files = FolderWorkspace::open(&folder)?.writable().protecting(secrets::files());
        let files = Arc::new(files.skipping(SKIPPED).skipping_ignored());
        let looks = WorkspaceTools::new(Arc::clone(&files) as _, WorkspaceOptions::default());
        let edits = FileEdits::new(files, looks.seen());
        let work = WorkTools::new(Keep::Thread, Arc::clone(clock));
        let unsandboxed = Sandbox::available().err().map(|fault| fault.to_string());
        let sets = [looks.into_set(), edits.clone().into_set(), work.clone().into_list()];
        let mut tools: Vec<_> = sets.iter().flat_map(|set| set.tools().iter().cloned()).collect();
        tools.push(Arc::new(shell(&folder, unsandboxed.is_none(), clock)));
        Ok(Self { folder, tools, edits, work, modes: modes(), unsandboxed })
    }

    /// Directory of the tools.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds the assistant to a builder.
    pub(super) fn give(&self, builder: Builder) -> Builder {
        let builder = self.tools.iter().cloned().fold(builder, Builder::shared_tool);
        builder
            .instructions(INSTRUCTIONS)
            .surroundings(&self.folder)
            .work_tools(self.work.clone())
            .modes(self.modes.clone())
    }

    /// Approves edits without a prompt while the mode permits it.
    pub(super) fn accepting(&self, approvals: StandingApprovals) -> StandingApprovals {
        let modes = self.modes.clone();
        let is_edit =
            |ask: &ApprovalAsk| matches!(ask.proposed.call.name.as_str(), "file_edit" | "file_write");
        let mode = move |ask: &ApprovalAsk| modes.of(ask.proposed.origin.thread.as_ref()).current();
        approvals.always(move |ask| &*mode(ask).name == ACCEPT && is_edit(ask))
    }

    /// Edits prompt again in a stored conversation: they are accepted as long as the program runs.
    pub(super) fn ask_again(&self, thread: &ThreadId) {
        let mode = self.modes.of(thread);
        if &*mode.current().name == ACCEPT {
            // It is one of them.
            let _ = mode.set(ASK);
        }
    }
}

/// Changes to the next mode.
pub(super) fn next_mode(mode: &ThreadMode) {
    let (now, all) = (mode.current(), mode.all());
    let at = all.iter().position(|mode| mode.name == now.name).unwrap_or(0);
    if let Some(next) = all.get(at + 1).or_else(|| all.first()) {
        // It is one of them.
        let _ = mode.set(&next.name);
    }
}

fn shell(folder: &Path, sandboxed: bool, clock: &Arc<dyn Clock>) -> ShellTool {
    let tool = ShellTool::new(ShellPolicy::any(), folder).env_from(&env::surroundings());
    let tool = tool.with_clock(Arc::clone(clock)).timeout(Duration::from_mins(5));
    if !sandboxed {
        return tool.without_sandbox();
    }
    let toolchains = env::home().into_iter().flat_map(|home| TOOLCHAINS.map(|below| home.join(below)));
    let sandbox = Sandbox::new().reading(folder).writing(folder);
    tool.sandbox(toolchains.filter(|path| path.is_dir()).fold(sandbox, Sandbox::reading))
}

fn modes() -> Modes {
    let mut plan = Mode::new(
        PLAN,
        "Look around and ask the user what is unclear, change nothing, run no commands, and propose a plan. When the \
         user approves of it, ask for the mode `ask`.",
    );
    (plan.calls, plan.stop) = (ModeCalls::Looking, Some(StopMode::Interactive));
    let ask = Mode::new(ASK, "The user approves each change of a file and each command before it runs.");
    let accept = Mode::new(ACCEPT, "Changes of files run without a prompt; the user approves each command.");
    Modes::new(ask, [accept, plan])
}

#[cfg(test)]
mod tests {
    use harness::system::SystemClock;

    use super::*;

    #[test]
    fn modes_cycle_from_plan_over_ask_to_accept_edits() {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let assistant = Assistant::open(folder.path(), &clock).unwrap();
        let mode = assistant.modes.of(None);
        let mut seen = vec![mode.current().name.to_string()];
        for _ in 0..3 {
            next_mode(&mode);
            seen.push(mode.current().name.to_string());
        }
        assert_eq!(seen, [ASK, ACCEPT, PLAN, ASK]);
    }

    #[test]
    fn a_stored_conversation_prompts_again_before_edits() {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let assistant = Assistant::open(folder.path(), &clock).unwrap();
        for (stored, expected) in [(ASK, ASK), (ACCEPT, ASK), (PLAN, PLAN)] {
            let thread = ThreadId::from(stored);
            assistant.modes.of(&thread).set(stored).unwrap();
            assistant.ask_again(&thread);
            assert_eq!(&*assistant.modes.of(&thread).current().name, expected);
        }
    }

    #[test]
    fn plan_mode_allows_only_tools_that_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let assistant = Assistant::open(folder.path(), &clock).unwrap();
        let mode = assistant.modes.of(None);
        mode.set(PLAN).unwrap();
        let mode = mode.current();
        let denied = assistant.tools.iter().map(|tool| tool.tool_def()).filter(|def| !mode.allows(def));
        let denied: Vec<&str> = denied.map(|def| def.name.as_str()).collect();
        assert_eq!(denied, ["file_write", "file_edit", "shell"]);
    }
}
