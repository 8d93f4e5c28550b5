//! Memory settings as data.

use std::path::PathBuf;

use harness_core::Json;

/// Memory of a registry file: its layers and what they share. `harness::Builder::configured_memory` builds it.
///
/// `None` in a setting is the default of the layer.
///
/// ```
/// use std::path::Path;
///
/// use harness_host::process::Environment;
/// use harness_tools::{LayerKind, Registry};
///
/// let text = "
/// version: 1
/// tools: {}
/// memory:
///   storage: memory
///   layers:
///     scratchpad: { scope: user, budget: 800 }
///     history: { max_items: 60 }
/// ";
/// let registry = Registry::parse(text, Path::new("registry.yaml"), &Environment::default())?;
/// let memory = registry.memory().unwrap();
/// assert_eq!(memory.layers[1].kind, LayerKind::History { max_items: Some(60) });
/// # Ok::<(), harness_tools::ToolsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemorySetting {
    /// Directory for the state of layers, or the URL of a PostgreSQL database. `None`: no layer may keep state beyond a run.
    pub storage: Option<PathBuf>,
    /// SQLite file of facts. With it, every agent can remember, recall and forget.
    pub facts: Option<PathBuf>,
    /// User whose memory it is. Default `owner`.
    pub user: Option<String>,
    /// Workspace that its users share. Default: the name of the facts file.
    pub workspace: Option<String>,
    /// Model that layers call. Default: the model of the agent.
    pub model: Option<String>,
    /// Tokens of a request, including those reserved for the answer.
    pub tokens: Option<u64>,
    /// Tokens of a request that are reserved for the answer.
    pub reserve: Option<u64>,
    /// Maximum messages of the history in a request.
    pub messages: Option<usize>,
    /// Whether the part before the history stays identical for prompt caches. Default true.
    pub prompt_cache: Option<bool>,
    /// Layers in the order of the file.
    pub layers: Vec<LayerSetting>,
}

impl MemorySetting {
    /// Facts in a file, and a layer that shows those that fit.
    pub fn of_facts(file: impl Into<PathBuf>) -> Self {
        let layers = vec![LayerSetting::new(LayerKind::Facts { limit: None, min_score: None })];
        Self { facts: Some(file.into()), layers, ..Self::default() }
    }

    /// Replaces the facts file with that of `other`, and adds a layer that shows them if there is none.
    #[must_use]
    pub fn with_facts(mut self, other: Self) -> Self {
        self.facts = other.facts.or(self.facts);
        if !self.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Facts { .. })) {
            self.layers.extend(other.layers);
        }
        self
    }
}

/// One layer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LayerSetting {
    /// Kind of the layer, with its own settings.
    pub kind: LayerKind,
    /// Lifetime of its state.
    pub scope: Option<LayerScope>,
    /// Position among the layers: smaller slots come first.
    pub slot: Option<i32>,
    /// Tokens of its part of a request.
    pub budget: Option<BudgetSetting>,
    /// Whether it is shown before the history (`true`), after it (`false`), or by how often it changes.
    pub anchored: Option<bool>,
    /// Whether a run continues without the layer when it cannot start. Default false.
    pub optional: bool,
}

impl LayerSetting {
    /// A layer with the defaults of its kind.
    pub fn new(kind: LayerKind) -> Self {
        Self { kind, scope: None, slot: None, budget: None, anchored: None, optional: false }
    }
}

/// Lifetime of the state of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerScope {
    /// One run.
    #[default]
    Run,
    /// One thread.
    Thread,
    /// One user, in all threads.
    User,
    /// All users.
    Global,
}

/// Tokens of a layer's part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSetting {
    /// An equal share of what the other layers leave.
    Auto,
    /// At least `min`, which is reserved, and at most `max`.
    Range {
        /// Reserved tokens.
        min: u32,
        /// Maximum tokens.
        max: u32,
    },
}

/// Kinds of layers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LayerKind {
    /// Facts that fit the newest message of the user.
    Facts {
        /// Maximum facts per request.
        limit: Option<usize>,
        /// Minimum score, from 0 to 1.
        min_score: Option<f64>,
    },
    /// Outcomes of earlier runs of the user.
    Episodes {
        /// Episodes per request.
        shown: Option<usize>,
        /// Stored episodes per user.
        kept: Option<usize>,
        /// Whether a model summarizes each episode.
        summarized: bool,
    },
    /// Content that the agent keeps in view and updates, and its notes.
    Scratchpad {
        /// JSON Schema of its content.
        schema: Option<Json>,
        /// Whether the agent can keep notes by path.
        notes: bool,
        /// Maximum bytes of one note.
        max_note: Option<u64>,
        /// Maximum bytes of all notes.
        max_notes: Option<u64>,
    },
    /// Files, data and outcome of the work.
    TaskState {
        /// Whether the data of a sub-agent is stored under its execution id instead of merged.
        by_child: bool,
    },
    /// Observations that a model distills from the conversation.
    Observations {
        /// Tokens of text after which the model is called.
        threshold: Option<u64>,
        /// Stored observations.
        kept: Option<usize>,
    },
    /// Date and time, and facts by the time they belong to.
    Timeline {
        /// Minutes of local time ahead of UTC.
        utc_offset: i32,
        /// Whether date and time are shown. Default true.
        clock: bool,
        /// Whether a model extracts facts from the conversation.
        learn: bool,
        /// Whether facts are shown; the agent can search them in any case.
        shown: bool,
        /// Tokens of text after which the model is called.
        threshold: Option<u64>,
        /// Stored facts.
        kept: Option<usize>,
    },
    /// A fixed text, as a named layer.
    Text {
        /// Name and tag of the layer.
        name: String,
        /// The text; empty when it is in a file.
        text: String,
        /// File that holds the text.
        file: Option<PathBuf>,
    },
    /// `AGENTS.md` and similar files, with their imports.
    ContextFiles {
        /// Root directory.
        root: PathBuf,
        /// Directory below the root down to which files are read.
        directory: String,
    },
    /// Files that a user names with `#`.
    FileReferences {
        /// Directory of the files.
        root: PathBuf,
        /// Maximum bytes of a file.
        max_file: Option<u64>,
        /// Permitted extensions, without dots.
        extensions: Option<Vec<String>>,
        /// Whether a model weighs the files.
        weighed: bool,
    },
    /// The date, and facts about the surroundings.
    Environment {
        /// Names and values.
        facts: Vec<(String, String)>,
        /// Minutes of local time ahead of UTC.
        utc_offset: i32,
    },
    /// Texts that are repeated now and then.
    Reminders(Vec<ReminderSetting>),
    /// The newest part of the history.
    History {
        /// Maximum messages.
        max_items: Option<usize>,
    },
    /// A plan, and plan mode until it is approved.
    Plan {
        /// Whether the agent asks the user question by question.
        interview: bool,
        /// Tools that may change something and are allowed while planning.
        allow: Vec<String>,
        /// Instructions for planning.
        instructions: Option<String>,
        /// Whether a person approves the plan. Default true.
        requires_approval: bool,
    },
    /// Rules about tool calls and answers, judged by a model.
    Steering {
        /// Rules in order.
        rules: Vec<RuleSetting>,
        /// Whether an unclear verdict denies.
        strict: bool,
    },
    /// Latest results of some tools.
    ToolResults {
        /// Tools.
        tools: Vec<String>,
        /// Results per tool.
        kept: Option<usize>,
    },
}

/// Text for the model that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReminderSetting {
    /// Name of the reminder.
    pub name: String,
    /// Text for the model.
    pub text: String,
    /// Event that triggers it. `None`: every request.
    pub after: Option<ReminderTrigger>,
    /// Requests from one time to the next.
    pub every: Option<u32>,
    /// Maximum times per run.
    pub at_most: Option<u32>,
}

/// Event that triggers a reminder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReminderTrigger {
    /// A message of the user.
    #[default]
    Prompt,
    /// A result of a tool.
    ToolResult,
}

/// A rule for a judging model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleSetting {
    /// Name of the rule.
    pub name: String,
    /// The rule in words.
    pub rule: String,
    /// Subject of the rule. `None`: tool calls and answers.
    pub judges: Option<RuleTarget>,
    /// Whether the agent continues before the verdict; an objection is shown later.
    pub background: bool,
}

/// Subject of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleTarget {
    /// Tool calls.
    #[default]
    Tools,
    /// Answers.
    Answers,
}
