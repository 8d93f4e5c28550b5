//! Real local agents as backends of the release program: each runs a turn with a tool, against the
//! loopback model server, and goes on with its session in a second turn.
//!
//! Each has a home of its own, so that no settings and no keys of the person at the terminal take part.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model_server::{self, NOTE};
use crate::support::{Project, harness, until};
use crate::{installed, ran};

/// Makes the text of a settings file, with the server's address.
type Settings = fn(&str) -> String;

/// An agent, and what makes it ask the model server.
struct Agent {
    /// What `--backend` calls it.
    id: &'static str,
    /// Variables with the server's address or a key for it.
    variables: fn(&str) -> Vec<(&'static str, String)>,
    /// A settings file below its home.
    settings: Option<(&'static str, Settings)>,
}

#[test]
fn claude_uses_a_tool_and_goes_on_with_its_session() {
    check(&Agent {
        id: "claude",
        variables: |url| {
            vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", "none".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ]
        },
        settings: None,
    });
}

#[test]
fn codex_uses_a_tool_and_goes_on_with_its_session() {
    check(&Agent {
        id: "codex",
        variables: |_| vec![("OPENAI_API_KEY", "none".to_owned())],
        settings: Some((".codex/config.toml", codex_settings)),
    });
}

#[test]
fn opencode_uses_a_tool_and_goes_on_with_its_session() {
    check(&Agent {
        id: "opencode",
        variables: |_| Vec::new(),
        settings: Some((".config/opencode/opencode.json", opencode_settings)),
    });
}

#[test]
fn gemini_uses_a_tool_and_goes_on_with_its_session() {
    check(&Agent {
        id: "gemini",
        variables: |url| {
            vec![("GOOGLE_GEMINI_BASE_URL", url.to_owned()), ("GEMINI_API_KEY", "none".to_owned())]
        },
        settings: Some((".gemini/settings.json", gemini_settings)),
    });
}

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

/// How long what an agent left may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// What only the file says, so that only who has read it can answer.
const WORD: &str = "kingfisher-4821";

/// A turn with a tool, and one that goes on.
#[track_caller]
fn check(agent: &Agent) {
    let (url, _serving) = model_server::start();
    let desk = Desk::set_up(agent, &url);
    let first = desk.turn(agent, "Read note.txt and tell me what it says.");
    assert!(first.activity > 0, "the tool that it used is told");
    // Who remembers the first turn has read the note already; the server asks everybody else to.
    let second = desk.turn(agent, "What did it say?");
    assert_eq!(second.activity, 0, "its session did not go on: it used the tool again");
    println!("{}: {} tokens", agent.id, first.tokens);
}

/// What was told of a turn.
struct Turn {
    /// Pieces about tools of the agent's own.
    activity: usize,
    tokens: u64,
}

/// A home, and a folder to work in.
struct Desk {
    project: Project,
    variables: Vec<(&'static str, String)>,
    path: String,
}

impl Desk {
    fn set_up(agent: &Agent, url: &str) -> Self {
        let bin = installed(&format!("agents/{}", agent.id)).join("node_modules/.bin");
        let note = format!("{NOTE}: {WORD}\n");
        let files = [("work/harness.yaml", DESCRIPTOR), ("work/note.txt", &note), ("home/.keep", "")];
        let project = Project::of(&files);
        if let Some((file, settings)) = agent.settings {
            project.write(&format!("home/{file}"), &settings(url));
        }
        Self { project, variables: (agent.variables)(url), path: format!("{}:{}", bin.display(), path()) }
    }

    fn home(&self) -> PathBuf {
        self.project.path().join("home")
    }

    fn command(&self, agent: &Agent, question: &str) -> Command {
        let mut command = harness(&self.project.path().join("work"), &["run", "harness.yaml", question]);
        // Nobody is there to be asked, and only the command of the model server is ever run.
        command.args(["--backend", agent.id, "--backend-may", "everything", "--backend-timeout", "2m"]);
        command.args(["--json", "--session", "session.jsonl"]);
        command.env("HOME", self.home()).env("PATH", &self.path).env("NO_PROXY", "127.0.0.1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Asks; the answer quotes the note, and nothing is left running.
    #[track_caller]
    fn turn(&self, agent: &Agent, question: &str) -> Turn {
        let output = ran(self.command(agent, question));
        // What was just told to end may take a moment.
        let home = self.home().display().to_string();
        until(ENDING, "the end of every process of the agent", || !is_in_an_environment(&home));
        let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let activity = lines.iter().filter(|line| line["part"].get("backendToolStarted").is_some()).count();
        let last = lines.last().unwrap();
        let tokens = ["inputTokens", "outputTokens"].map(|key| last["usage"][key].as_u64().unwrap_or(0));
        let answered = last["answer"].as_str().is_some_and(|answer| answer.contains(WORD));
        assert!(last["outcome"] == "completed" && answered && !tokens.contains(&0), "{question}: {last}");
        Turn { activity, tokens: tokens.iter().sum() }
    }
}

#[expect(clippy::disallowed_methods, reason = "an agent finds the same programs as whoever runs the checks")]
fn path() -> String {
    std::env::var("PATH").unwrap()
}

/// Whether the environment of a process holds this text; no where the system does not tell.
fn is_in_an_environment(text: &str) -> bool {
    let holds = |bytes: Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.any(|process| fs::read(process.path().join("environ")).is_ok_and(holds))
}
