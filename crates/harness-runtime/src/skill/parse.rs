//! `SKILL.md`: YAML front matter and instructions, as the Agent Skills format has it.

use harness_core::Json;
use harness_diagnostics::document::Kind;
use harness_diagnostics::{Fields, Item};
use harness_host::DynWorkspace;

use super::{Skill, SkillSet};
use crate::markdown::{self, FileProblem, FileProblemKind, MarkdownFault, Reader};

/// Levels below a root in which skills are found.
const DEPTH: u32 = 8;
/// Maximum skills of all roots.
const SKILLS: usize = 512;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;

/// Skill of a file, with warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedSkill {
    /// Skill of the file.
    pub skill: Skill,
    /// Deviations from the format.
    pub warnings: Vec<SkillWarning>,
}

/// Harmless deviation from the format of skills.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillWarning {
    /// The name has invalid characters.
    #[error("the name `{0}` should be of `a-z`, `0-9` and single hyphens between them")]
    NameForm(String),
    /// The name is long.
    #[error("the name has {0} characters; the format allows 64")]
    NameLength(usize),
    /// The name differs from the directory.
    #[error("the name `{name}` differs from its directory `{directory}`")]
    NameDiffers {
        /// Name of the skill.
        name: String,
        /// Name of the directory.
        directory: String,
    },
    /// The description is long.
    #[error("the description has {0} characters; the format allows 1024")]
    DescriptionLength(usize),
    /// The note on compatibility is long.
    #[error("the note on compatibility has {0} characters; the format allows 500")]
    CompatibilityLength(usize),
}

/// Skills of several directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundSkills {
    /// Skills by root and then by path; of several with one name, the first.
    pub skills: SkillSet,
    /// Skipped files, and warnings.
    pub problems: Vec<FileProblem>,
}

/// Reads every `SKILL.md` below the roots, at most 8 levels deep and 512 in all, in the order of the roots. Put the
/// directory of the project before that of the user, so that the project's skill of a name is used. A missing root has
/// no skills. Errors are reported as problems.
pub async fn read_skills(workspace: &dyn DynWorkspace, roots: &[&str]) -> FoundSkills {
    let mut reader = Reader::new(workspace, SKILLS);
    let mut skills = Vec::new();
    for root in roots {
        for path in reader.files(root, DEPTH).await {
            if path.rsplit('/').next() != Some("SKILL.md") {
                continue;
            }
            let Some(text) = reader.text(&path).await else { continue };
            let parsed = Skill::parse(&text, Some(&path));
            if let Some(parsed) = reader.keep(path.clone(), parsed, |parsed| &parsed.skill.name) {
                let warnings = parsed.warnings.into_iter().map(FileProblemKind::Warning);
                warnings.for_each(|warning| reader.report(&path, warning));
                skills.push(parsed.skill);
            }
        }
    }
    FoundSkills { skills: SkillSet::new(skills), problems: reader.problems }
}

#[derive(Default)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    metadata: Option<Json>,
    allowed_tools: Option<String>,
    disable_model_invocation: bool,
}

impl Front {
    fn read(fields: &Fields<'_>) -> Self {
        let metadata = fields.section("metadata", "write `NAME: VALUE` for each");
        Self {
            name: fields.text("name"),
            description: fields.text("description"),
            license: fields.text("license"),
            compatibility: fields.text("compatibility"),
            metadata: metadata.and_then(|_| fields.document().json(fields.node("metadata")?)),
            allowed_tools: fields.item("allowed-tools").and_then(|item| words(&item)),
            disable_model_invocation: fields.flag("disable-model-invocation").unwrap_or(false),
        }
    }
}

/// Names in one text or in a list.
fn words(item: &Item<'_>) -> Option<String> {
    if let Kind::Text(_) = item.kind() {
        return item.text();
    }
    let items = item.items("names of tools, as a text or a list of texts", "");
    Some(items.iter().filter_map(Item::text).collect::<Vec<_>>().join(" "))
}

impl Skill {
    /// Reads the text of a `SKILL.md`. `location` is its path, if any: its directory is the default name, and a different
    /// name is a warning. The body is trimmed; unknown keys of the front matter are ignored.
    ///
    /// # Errors
    /// When it has no name or description, its front matter is invalid, or it is too long.
    pub fn parse(text: &str, location: Option<&str>) -> Result<ParsedSkill, MarkdownFault> {
        let (front, body) = markdown::parse(text, Front::read)?;
        let folder = location.and_then(folder_of);
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let name = given(front.name).or_else(|| folder.map(str::to_owned)).ok_or(MarkdownFault::NoName)?;
        let description = given(front.description).ok_or(MarkdownFault::NoDescription)?;
        let skill = Skill {
            name,
            description,
            content: body.trim().to_owned(),
            hidden: front.disable_model_invocation,
            location: location.map(str::to_owned),
            license: front.license,
            compatibility: front.compatibility,
            allowed_tools: front.allowed_tools,
            metadata: front.metadata,
        };
        let warnings = warnings(&skill, folder);
        Ok(ParsedSkill { skill, warnings })
    }
}

/// Name of the directory of a file.
fn folder_of(location: &str) -> Option<&str> {
    let (folder, _) = location.rsplit_once('/')?;
    folder.rsplit('/').next().filter(|name| !name.is_empty())
}

fn warnings(skill: &Skill, folder: Option<&str>) -> Vec<SkillWarning> {
    let long = |text: &str, most: usize| Some(text.chars().count()).filter(|count| *count > most);
    let mut found = Vec::new();
    if !has_good_form(&skill.name) {
        found.push(SkillWarning::NameForm(skill.name.clone()));
    }
    found.extend(long(&skill.name, MAX_NAME).map(SkillWarning::NameLength));
    if let Some(folder) = folder.filter(|folder| *folder != skill.name) {
        let (name, directory) = (skill.name.clone(), folder.to_owned());
        found.push(SkillWarning::NameDiffers { name, directory });
    }
    found.extend(long(&skill.description, MAX_DESCRIPTION).map(SkillWarning::DescriptionLength));
    let compatibility = skill.compatibility.as_deref().unwrap_or_default();
    found.extend(long(compatibility, MAX_COMPATIBILITY).map(SkillWarning::CompatibilityLength));
    found
}

fn has_good_form(name: &str) -> bool {
    name.split('-').all(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}
