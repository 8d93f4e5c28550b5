//! Commands that a person types: `/skill:name …` and `/name …`.

use super::{TemplateSet, split_arguments};
use crate::skill::SkillSet;

/// The prompt that a typed command stands for: `/skill:NAME what else` invokes a skill, `/NAME arguments`
/// expands a template. `None` for other texts and unknown names, which are ordinary
/// prompt.
///
/// ```
/// use harness_runtime::skill::SkillSet;
/// use harness_runtime::template::{PromptTemplate, TemplateSet, expand_command};
///
/// let templates = TemplateSet::new([PromptTemplate::new("fix", "Fix issue $1.")]);
/// let expand = |text| expand_command(text, &templates, &SkillSet::default());
/// assert_eq!(expand("/fix 7").as_deref(), Some("Fix issue 7."));
/// assert_eq!(expand("/unknown 7"), None);
/// ```
pub fn expand_command(text: &str, templates: &TemplateSet, skills: &SkillSet) -> Option<String> {
    let command = text.trim_end().strip_prefix('/')?;
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match name.strip_prefix("skill:") {
        Some(name) => skills.invoke(name, &[rest.trim()]),
        None => templates.expand(name, &split_arguments(rest)),
    }
}
