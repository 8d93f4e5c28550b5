//! The commands that a worker runs for each request.

use harness_host::process::{Ended, Ending, Environment, MAX_PRINTED};

use super::adapter::in_ms;
use super::agent::LocalAgent;
use super::program::{Invocation, LocalProgram};
use super::secret::secrets_of;
use crate::runner::{CliInput, CliOutcome, CliRunner};

/// Maximum UTF-16 units of the end of stderr in an error.
const TAIL: usize = 2000;

/// Runs prompts through a [`LocalAgent`]'s program, and gives what it prints as plain text.
///
/// The prompt goes over stdin: as an argument every user of the machine could read it, it could have 128 KiB at
/// most, and one that begins with a dash could be taken for an option.
///
/// At the timeout of the input, and when its `cancel` fires, the program ends with all that it started.
///
/// ```
/// use std::time::Duration;
///
/// use harness_adapters::local::{LocalAgent, LocalRunner};
/// use harness_host::process::Environment;
/// use harness_adapters::{CliInput, CliOutcome, CliRunner};
///
/// # let surroundings = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let runner = LocalRunner::new(LocalAgent::Bash, &surroundings).script("tr a-z A-Z");
/// let outcome = runner.run(CliInput::new("hello", Duration::from_secs(10))).await;
/// assert_eq!(outcome, CliOutcome::Completed { text: "HELLO".to_owned(), metadata: None });
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalRunner {
    agent: LocalAgent,
    /// How its program is run: its path, directory, environment and limits. The time limit is that of each input.
    pub program: LocalProgram,
    script: String,
}

impl LocalRunner {
    /// The agent's program with its share of `surroundings`.
    pub fn new(agent: LocalAgent, surroundings: &Environment) -> Self {
        let mut program = agent.program(surroundings);
        program.limits.stdout = 8 * 1024 * 1024;
        Self { agent, program, script: "cat".to_owned() }
    }

    /// The script of [`LocalAgent::Bash`]; it reads the prompt from stdin. Default `cat`.
    #[must_use]
    pub fn script(mut self, script: impl Into<String>) -> Self {
        self.script = script.into();
        self
    }

    /// Invocation of the program for a prompt. Pure.
    pub fn invocation(&self, input: &CliInput) -> Invocation {
        let prompt = input.prompt.clone();
        if self.agent == LocalAgent::Bash {
            return Invocation::new(["-c", &self.script]).stdin(prompt);
        }
        let model = input.model.as_deref().filter(|model| !model.is_empty());
        let mut args: Vec<&str> = match self.agent {
            LocalAgent::ClaudeCode => vec!["-p", "--output-format", "text"],
            LocalAgent::Codex => vec!["exec", "--skip-git-repo-check"],
            LocalAgent::OpenCode => vec!["run"],
            LocalAgent::Gemini => vec!["--skip-trust"],
            LocalAgent::Bash => Vec::new(),
        };
        let model = model.map(|model| format!("--model={model}"));
        args.extend(model.as_deref());
        if self.agent == LocalAgent::Codex {
            args.push("-");
        }
        Invocation::new(args).stdin(prompt)
    }

    fn outcome(&self, input: &CliInput, ended: &Ended) -> CliOutcome {
        let id = self.agent.id();
        let secrets = secrets_of(&self.program.spec.environment());
        let (error, exit_code) = match ended.ending {
            Ending::Exited(status) if status.success() => {
                let text = secrets.text(&ended.stdout.lossy()).into_owned();
                let end = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
                return CliOutcome::Completed { text: text.trim_end_matches(end).to_owned(), metadata: None };
            }
            Ending::Exited(status) => {
                let code = status.code().map_or_else(|| "null".to_owned(), |code| code.to_string());
                (format!("CLI '{id}' exited with code {code}"), status.code())
            }
            Ending::TimedOut => (format!("CLI '{id}' timed out after {}", in_ms(input.timeout)), None),
            Ending::Cancelled => (format!("CLI '{id}' was stopped: the run was cancelled"), None),
            Ending::Flooded => {
                let most = MAX_PRINTED / (1024 * 1024);
                (format!("CLI '{id}' printed more than {most} MiB and was stopped"), None)
            }
        };
        let stderr = tail(&secrets.text(&ended.stderr.lossy())).to_owned();
        CliOutcome::Failed { error, stderr: Some(stderr), exit_code }
    }
}

impl CliRunner for LocalRunner {
    fn id(&self) -> &str {
        self.agent.id()
    }

    async fn run(&self, input: CliInput) -> CliOutcome {
        let mut program = self.program.clone();
        program.spec.cwd = input.cwd.clone().or(program.spec.cwd);
        let invocation = self.invocation(&input);
        let ran = program.run(&invocation, input.timeout, input.cancel.cancelled(), |_: &[u8]| {}).await;
        match ran {
            Ok(ended) => self.outcome(&input, &ended),
            Err(error) => {
                let why = harness_host::process::why_not_started(&program.spec, &error);
                let told = format!("Failed to spawn '{}': {why}", program.spec.name());
                CliOutcome::Failed { error: told, stderr: None, exit_code: None }
            }
        }
    }
}

/// The last [`TAIL`] UTF-16 units.
fn tail(text: &str) -> &str {
    let mut units = 0;
    let kept = text.char_indices().rev().take_while(|(_, c)| {
        units += c.len_utf16();
        units <= TAIL
    });
    text.split_at(kept.last().map_or(text.len(), |(at, _)| at)).1
}
