//! Skills: instructions that a model loads when a task asks for them.
//!
//! A model is told only the name and the description of each skill; the body comes into the conversation when
//! the model calls the tool [`LOAD_SKILL`], or when a person invokes the skill. So a hundred skills cost a
//! hundred lines.
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
//! # Ok::<(), harness_runtime::skill::SkillFault>(())
//! ```

mod folder;
mod parse;
mod render;
mod set;
mod tool;

pub use folder::{FoundSkills, SkillProblem, read_skills};
pub use parse::{ParsedSkill, SkillFault, SkillWarning};
pub use set::SkillSet;
pub use tool::LOAD_SKILL;

use harness_core::Json;

/// Instructions for one kind of task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// When to use it; what the model decides by.
    pub description: String,
    /// The instructions.
    pub content: String,
    /// Whether the model is not told of it and cannot load it; a person still can. Default false.
    pub hidden: bool,
    /// Where it was read from; relative paths in its instructions count from the folder of this file.
    pub location: Option<String>,
    /// Its licence.
    pub license: Option<String>,
    /// What it needs to work.
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

    /// The same skill, of which the model is not told.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The same skill, read from a file.
    #[must_use]
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }
}
