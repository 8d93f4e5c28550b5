//! Arguments for the directories of skills, templates and context files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

/// Options for texts that agents receive in addition to the descriptor.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Skills and context")]
pub(crate) struct SkillArgs {
    /// Load skills (SKILL.md files) from this directory (repeatable) [default: .harness/skills next
    /// to the descriptor; without one, in the working directory, and ~/.config/harness/skills]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) skills: Vec<PathBuf>,

    /// Send agents the AGENTS.md or CLAUDE.md files in ~/.config/harness and from the repository
    /// root to the working directory [default: only without a descriptor]
    #[arg(long, overrides_with = "no_context_files")]
    context_files: bool,

    /// Do not send context files
    #[arg(long, overrides_with = "context_files")]
    no_context_files: bool,
}

impl SkillArgs {
    /// Whether agents receive context files.
    pub(crate) fn context_files(&self, descriptor: Option<&Path>) -> bool {
        self.context_files || descriptor.is_none() && !self.no_context_files
    }
}

/// Options for prompt templates.
#[derive(Clone, Debug, Args)]
pub(crate) struct TemplateArgs {
    /// Load prompt templates (/NAME sends NAME.md) from this directory (repeatable) [default:
    /// .harness/templates next to the descriptor; without one, in the working directory, and
    /// ~/.config/harness/templates]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) templates: Vec<PathBuf>,
}
