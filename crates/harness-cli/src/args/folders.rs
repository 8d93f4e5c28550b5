//! Folders with skills, templates and context files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

/// What agents are told beside their descriptor.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Skills and context")]
pub(crate) struct SkillArgs {
    /// Offer agents the skills (SKILL.md files) below this folder; may be repeated [default: .harness/skills beside
    /// the descriptor; without one that of the working folder, and ~/.config/harness/skills]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) skills: Vec<PathBuf>,

    /// Tell agents what the AGENTS.md or CLAUDE.md files say of ~/.config/harness and of the folders from the
    /// repository's down to the working folder [default: only without a descriptor]
    #[arg(long, overrides_with = "no_context_files")]
    context_files: bool,

    /// Tell agents nothing of such files
    #[arg(long, overrides_with = "context_files")]
    no_context_files: bool,
}

impl SkillArgs {
    /// Whether agents are told what context files say.
    pub(crate) fn context_files(&self, descriptor: Option<&Path>) -> bool {
        self.context_files || descriptor.is_none() && !self.no_context_files
    }
}

/// Texts that a person uses by name.
#[derive(Clone, Debug, Args)]
pub(crate) struct TemplateArgs {
    /// Let /NAME stand for the prompt template NAME.md of this folder; may be repeated [default: .harness/templates
    /// beside the descriptor, without one that of the working folder, and ~/.config/harness/templates]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) templates: Vec<PathBuf>,
}
