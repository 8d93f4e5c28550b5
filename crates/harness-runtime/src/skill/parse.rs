//! `SKILL.md`: YAML front matter and instructions, as the Agent Skills format has it.

use std::collections::BTreeMap;

use harness_core::Json;
use serde::Deserialize;

use super::Skill;
use crate::front_matter::{self, FrontMatterFault};

/// The longest `SKILL.md` that is read, in bytes.
pub(super) const MAX_BYTES: usize = 256 * 1024;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;

/// A skill, and what is odd about its file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedSkill {
    /// The skill.
    pub skill: Skill,
    /// What does not follow the format, and does no harm.
    pub warnings: Vec<SkillWarning>,
}

/// Why a text is no skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFault {
    /// The front matter cannot be read.
    #[error("{0}")]
    FrontMatter(#[from] FrontMatterFault),
    /// A model could not know when to use it.
    #[error("it has no `description`: say in the front matter when to use it")]
    NoDescription,
    /// It has no name, and no folder to be named after.
    #[error("it has no `name`: give it one in the front matter")]
    NoName,
    /// The text is too long.
    #[error("it has {bytes} bytes; at most {most} are read: move parts into files beside it")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
}

impl SkillFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FrontMatter(_) => "skill.front_matter",
            Self::NoDescription => "skill.no_description",
            Self::NoName => "skill.no_name",
            Self::TooLong { .. } => "skill.too_long",
        }
    }
}

/// What does not follow the format of skills, and does no harm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillWarning {
    /// The name has other characters than it should.
    #[error("the name `{0}` should be of `a-z`, `0-9` and single hyphens between them")]
    NameForm(String),
    /// The name is long.
    #[error("the name has {0} characters; the format allows 64")]
    NameLength(usize),
    /// The name is not that of its folder.
    #[error("the name `{name}` is not that of its folder `{folder}`")]
    NameIsNotFolder {
        /// The name.
        name: String,
        /// The folder.
        folder: String,
    },
    /// The description is long.
    #[error("the description has {0} characters; the format allows 1024")]
    DescriptionLength(usize),
    /// The note on compatibility is long.
    #[error("the note on compatibility has {0} characters; the format allows 500")]
    CompatibilityLength(usize),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    metadata: Option<BTreeMap<String, serde_json::Value>>,
    allowed_tools: Option<Words>,
    disable_model_invocation: bool,
}

/// Words in one text or in a list.
struct Words(String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Words;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("names of tools, as a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.to_owned()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Vec::<String>::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(Words(words.join(" ")))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Skill {
    /// Reads the text of a `SKILL.md`. `location` is its path, where it has one: a skill without a name is
    /// called after its folder, and another name than the folder's is a warning. The body is trimmed; unknown
    /// keys of the front matter are ignored.
    ///
    /// # Errors
    /// A [`SkillFault`] when it cannot be used as a skill.
    pub fn parse(text: &str, location: Option<&str>) -> Result<ParsedSkill, SkillFault> {
        if text.len() > MAX_BYTES {
            return Err(SkillFault::TooLong { bytes: text.len(), most: MAX_BYTES });
        }
        let (front, body) = front_matter::parse::<Front>(text)?;
        let folder = location.and_then(folder_of);
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let name = given(front.name).or_else(|| folder.map(str::to_owned)).ok_or(SkillFault::NoName)?;
        let description = given(front.description).ok_or(SkillFault::NoDescription)?;
        let skill = Skill {
            name,
            description,
            content: body.trim().to_owned(),
            hidden: front.disable_model_invocation,
            location: location.map(str::to_owned),
            license: front.license,
            compatibility: front.compatibility,
            allowed_tools: front.allowed_tools.map(|Words(words)| words),
            metadata: front.metadata.and_then(|data| Json::of(&data).ok()),
        };
        let warnings = warnings(&skill, folder);
        Ok(ParsedSkill { skill, warnings })
    }
}

/// The name of the folder in which a file lies.
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
        let (name, folder) = (skill.name.clone(), folder.to_owned());
        found.push(SkillWarning::NameIsNotFolder { name, folder });
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
