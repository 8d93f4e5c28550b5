//! Real local agents as backends of the release program: each runs a turn with a tool, against the
//! loopback model server, and goes on with its session in a second turn.
//!
//! The agents come from the package registry of Node and are kept below the target folder. Each has a home
//! of its own, so that no settings and no keys of the person at the terminal take part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::model_server::{self, NOTE};
use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::Workspace;
use xtask::stopwatch::Stopwatch;

/// Makes the text of a settings file, with the server's address.
type Settings = fn(&str) -> String;

/// An agent, and what makes it ask the model server.
struct Agent {
    /// What `--backend` calls it.
    id: &'static str,
    package: &'static str,
    version: &'static str,
    /// Variables with the server's address or a key for it.
    variables: fn(&str) -> Vec<(&'static str, String)>,
    /// A settings file below its home.
    settings: Option<(&'static str, Settings)>,
}

const AGENTS: &[Agent] = &[
    Agent {
        id: "claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.197",
        variables: |url| {
            vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", "none".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ]
        },
        settings: None,
    },
    Agent {
        id: "codex",
        package: "@openai/codex",
        version: "0.169.0",
        variables: |_| vec![("OPENAI_API_KEY", "none".to_owned())],
        settings: Some((".codex/config.toml", codex_settings)),
    },
    Agent {
        id: "opencode",
        package: "opencode-ai",
        version: "1.18.33",
        variables: |_| Vec::new(),
        settings: Some((".config/opencode/opencode.json", opencode_settings)),
    },
    Agent {
        id: "gemini",
        package: "@google/gemini-cli",
        version: "0.61.0",
        variables: |url| {
            vec![("GOOGLE_GEMINI_BASE_URL", url.to_owned()), ("GEMINI_API_KEY", "none".to_owned())]
        },
        settings: Some((".gemini/settings.json", gemini_settings)),
    },
];

fn codex_settings(url: &str) -> String {
    format!(
        "model = \"loopback\"\nmodel_provider = \"loopback\"\n[model_providers.loopback]\nname = \"loopback\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
    )
}

fn opencode_settings(url: &str) -> String {
    let loopback = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "loopback", "models": { "small": { "name": "small" } },
        "options": { "baseURL": format!("{url}/v1"), "apiKey": "none" },
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "model": "loopback/small", "small_model": "loopback/small",
        "provider": { "loopback": loopback },
    });
    settings.to_string()
}

fn gemini_settings(_: &str) -> String {
    json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } }).to_string()
}

const DESCRIPTOR: &str = "\
metadata: { name: agents }
runtime: { entry_agent: clerk }
agents:
  clerk:
    name: Clerk
    instructions: Look things up before you answer.
    model: any
";

/// What only the file says, so that only who has read it can answer.
const WORD: &str = "kingfisher-4821";

pub(super) fn run(program: &Program) -> Result<String> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("agents");
    let url = model_server::start()?;
    let mut found = Vec::new();
    for agent in AGENTS {
        let watch = Stopwatch::start();
        let tested = format!("{}@{}", agent.package, agent.version);
        let packages = folder.join(agent.id);
        let wrap = |e| Fault::because(&tested, e);
        npm::install(&packages, &[&tested]).map_err(wrap)?;
        let tokens = two_turns(program, agent, &packages, &url).map_err(wrap)?;
        let newer = npm::newest(agent.package).filter(|newest| newest != agent.version);
        let newer = newer.map(|newest| format!(", {newest} is there")).unwrap_or_default();
        let took = xtask::stopwatch::Took(watch.elapsed());
        found.push(format!("{} {}{newer} ({tokens} tokens, {took})", agent.id, agent.version));
    }
    Ok(found.join("; "))
}

/// A turn with a tool, and one that goes on; gives the tokens of the first.
fn two_turns(program: &Program, agent: &Agent, packages: &Path, url: &str) -> Result<u64> {
    let desk = Desk::set_up(agent, packages, url)?;
    let first = desk.turn(program, agent, "Read note.txt and tell me what it says.")?;
    if first.activity == 0 {
        return Err(Fault::new("nothing was told of the tool that it used"));
    }
    // Who remembers the first turn has read the note already; the server asks everybody else to.
    let second = desk.turn(program, agent, "What did it say?")?;
    if second.activity > 0 {
        return Err(Fault::new("its session did not go on: it used the tool again"));
    }
    Ok(first.tokens)
}

/// What was told of a turn.
struct Turn {
    /// Pieces about tools of the agent's own.
    activity: usize,
    tokens: u64,
}

/// A temporary folder with a home, and with a folder to work in.
struct Desk {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    path: String,
}

impl Desk {
    fn set_up(agent: &Agent, packages: &Path, url: &str) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        let bin = packages.join("node_modules/.bin");
        let path = process::surrounding("PATH").unwrap_or_default();
        let path = format!("{}:{path}", bin.display());
        let desk = Self { folder, variables: (agent.variables)(url), path };
        desk.write("work/harness.yaml", DESCRIPTOR)?;
        desk.write("work/note.txt", &format!("{NOTE}: {WORD}\n"))?;
        desk.write("home/.keep", "")?;
        if let Some((file, settings)) = agent.settings {
            desk.write(&format!("home/{file}"), &settings(url))?;
        }
        Ok(desk)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.path().join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).map_err(|e| Fault::because(name, e))
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn command(&self, program: &Program, agent: &Agent, question: &str) -> Command {
        let mut command = program.command(["run", "harness.yaml", question, "--json"]);
        // Nobody is there to be asked, and only the command of the model server is ever run.
        command.args(["--backend", agent.id, "--backend-may", "everything", "--backend-timeout", "2m"]);
        command.args(["--session", "session.jsonl"]);
        command.env_clear().current_dir(self.folder.path().join("work"));
        command.env("HOME", self.home()).env("PATH", &self.path).env("NO_PROXY", "127.0.0.1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Asks; the answer quotes the note, and nothing is left running.
    fn turn(&self, program: &Program, agent: &Agent, question: &str) -> Result<Turn> {
        let output = process::capture(&mut self.command(program, agent, question))?;
        self.nothing_is_left()?;
        let mut activity = 0;
        let mut last = Value::Null;
        for line in output.lines() {
            last = serde_json::from_str(line)
                .map_err(|e| Fault::because(format!("line of --json: {line}"), e))?;
            let part = last.get("part");
            activity += usize::from(part.is_some_and(|part| part.get("backendToolStarted").is_some()));
        }
        let tokens = |key: &str| last.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or(0);
        let (input, output) = (tokens("inputTokens"), tokens("outputTokens"));
        let answer = last.get("answer").and_then(Value::as_str).unwrap_or_default();
        let completed = last.get("outcome").is_some_and(|outcome| outcome == "completed");
        if !completed || !answer.contains(WORD) || input == 0 || output == 0 {
            return Err(Fault::new(format!("asked {question:?}, the last line is {last}")));
        }
        Ok(Turn { activity, tokens: input.saturating_add(output) })
    }

    /// No process of this home is left. What was just told to end may take a moment.
    fn nothing_is_left(&self) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let left = process::with_in_environment(&self.home().display().to_string());
            if left.is_empty() {
                return Ok(());
            }
            if watch.elapsed() > Duration::from_secs(2) {
                return Err(Fault::new(format!("left running: {}", left.join("; "))));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
