//! Skills: instructions that a model loads when a task asks for them.
//!
//! A model sees only the name and the description of each skill. The body enters the conversation when the model calls
//! the tool [`LOAD_SKILL`], or when a user invokes the skill, so a hundred skills cost a hundred lines.
//!
//! ```
//! use harness_runtime::skill::{Skill, SkillSet};
//!
//! let text = "---\nname: release\ndescription: Cuts a release\n---\nRun the tests first.\n";
//! let parsed = Skill::parse(text, None)?;
//! assert!(parsed.warnings.is_empty());
//!
//! let skills = SkillSet::new([parsed.skill]);
//! assert!(skills.instructions().contains("<name>release</name>"));
//! let message = skills.invoke("release", &["Only a patch."]);
//! assert_eq!(
//!     message.as_deref(),
//!     Some("<skill name=\"release\">\nRun the tests first.\n</skill>\n\nOnly a patch."),
//! );
//! # Ok::<(), harness_runtime::MarkdownFault>(())
//! ```

mod parse;
mod render;
mod set;
mod tool;

pub use parse::{FoundSkills, ParsedSkill, SkillWarning, read_skills};
pub use set::SkillSet;
pub use tool::LOAD_SKILL;

use harness_core::Json;

/// Instructions for one kind of task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Name of the skill.
    pub name: String,
    /// When to use it; what the model decides by.
    pub description: String,
    /// Instructions of the skill.
    pub content: String,
    /// Whether the model neither sees nor loads it; a user can still invoke it. Default false.
    pub hidden: bool,
    /// File of the skill; paths in its instructions are relative to its directory.
    pub location: Option<String>,
    /// License, as written.
    pub license: Option<String>,
    /// Requirements, as written.
    pub compatibility: Option<String>,
    /// The tools that its author expects it to use, as written. For hosts; it grants nothing.
    pub allowed_tools: Option<String>,
    /// The author's own data, an object.
    pub metadata: Option<Json>,
}

impl Skill {
    /// A skill with its instructions.
    pub fn new(name: impl Into<String>, description: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            content: content.into(),
            ..Self::default()
        }
    }

    /// Hides the skill from the model.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Sets the file.
    #[must_use]
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }
}
