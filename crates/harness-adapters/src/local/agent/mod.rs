//! Agents that are programs of this machine: how each is started, and what its events mean.

mod arguments;
mod backend;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod output;
mod session;

pub use backend::{AgentBackend, Permission};

use std::fmt;
use std::time::Duration;

use harness_host::process::{Environment, ProgramSpec};

use super::program::LocalProgram;
use super::version::Version;

/// An agent that runs on this machine as a program, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LocalAgent {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// OpenAI's Codex.
    Codex,
    /// opencode.
    OpenCode,
    /// Google's Gemini CLI.
    Gemini,
    /// A script for `bash` that reads the prompt from stdin.
    Bash,
}

/// Variables that every agent is given besides [`PASSED`](harness_host::process::PASSED): the way to its provider
/// and where its files are.
const COMMON: [&str; 12] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
];

const CLAUDE: [&str; 12] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "API_TIMEOUT_MS",
];

const CODEX: [&str; 4] = ["CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"];

const OPENCODE: [&str; 8] = [
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_CONFIG_CONTENT",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
];

const GEMINI: [&str; 8] = [
    "GEMINI_API_KEY",
    "GEMINI_MODEL",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

impl LocalAgent {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::Codex, Self::OpenCode, Self::Gemini, Self::Bash];

    /// The word for it on command lines and in results: `claude`, `codex`, `opencode`, `gemini`, `bash`.
    /// It is the program's name, too.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Bash => "bash",
        }
    }

    /// The agent of a word.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.id() == id)
    }

    /// The backend's name in results.
    pub fn backend_id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex | Self::OpenCode | Self::Gemini | Self::Bash => self.id(),
        }
    }

    /// Human-readable name.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "Gemini CLI",
            Self::Bash => "bash",
        }
    }

    /// The oldest version whose arguments and events are known.
    pub fn minimum(self) -> Version {
        match self {
            Self::ClaudeCode => Version::new(2, 0, 0),
            Self::Codex => Version::new(0, 60, 0),
            Self::OpenCode => Version::new(1, 0, 0),
            Self::Gemini => Version::new(0, 20, 0),
            Self::Bash => Version::new(3, 2, 0),
        }
    }

    /// Instruction for a missing or old agent.
    pub fn install_hint(self) -> &'static str {
        match self {
            Self::ClaudeCode => "install it with `npm install -g @anthropic-ai/claude-code`",
            Self::Codex => "install it with `npm install -g @openai/codex`",
            Self::OpenCode => "install it with `npm install -g opencode-ai`",
            Self::Gemini => "install it with `npm install -g @google/gemini-cli`",
            Self::Bash => "install it from the system's packages",
        }
    }

    /// The names of the variables that it is given where they are set, besides
    /// [`PASSED`](harness_host::process::PASSED): its keys, its settings, and the way to its provider.
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        let own: &[&str] = match self {
            Self::ClaudeCode => &CLAUDE,
            Self::Codex => &CODEX,
            Self::OpenCode => &OPENCODE,
            Self::Gemini => &GEMINI,
            Self::Bash => &[],
        };
        let common: &[&str] = if self == Self::Bash { &[] } else { &COMMON };
        common.iter().chain(own).copied()
    }

    /// Its program with its share of `surroundings`, ten minutes of time, and 64 KiB of its output kept
    /// besides what is understood of it while it runs.
    pub fn program(self, surroundings: &Environment) -> LocalProgram {
        let mut program = LocalProgram::new(ProgramSpec::new(self.id()).pass(surroundings, self.variables()));
        (program.limits.time, program.limits.grace) = (Duration::from_mins(10), Duration::from_secs(1));
        if self != Self::Bash {
            program.limits.stdout = 64 * 1024;
        }
        program
    }
}

impl fmt::Display for LocalAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
