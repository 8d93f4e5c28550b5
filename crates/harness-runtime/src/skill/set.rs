//! The skills that an agent has.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LOAD_SKILL, Skill, render};

/// The skills that an agent has, in their order. Of two with one name the first counts. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSet(Arc<[Skill]>);

impl SkillSet {
    /// These skills.
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Self {
        Self(skills.into_iter().collect())
    }

    /// All skills, including hidden ones and later ones of a name.
    pub fn skills(&self) -> &[Skill] {
        &self.0
    }

    /// The first skill of that name, hidden or not.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.0.iter().find(|skill| skill.name == name)
    }

    /// The names of the skills that a model may load, in their order, each once.
    pub fn visible_names(&self) -> Vec<&str> {
        let (mut seen, mut visible) = (BTreeSet::new(), Vec::new());
        for skill in &*self.0 {
            if seen.insert(&*skill.name) && !skill.hidden {
                visible.push(&*skill.name);
            }
        }
        visible
    }

    /// The list of visible skills as models read it; empty when there are none. It does not say
    /// how to load one: see [`SkillSet::instructions`].
    pub fn listing(&self) -> String {
        render::listing(&self.0)
    }

    /// A part of an agent's instructions: the list of visible skills, and that the tool of
    /// [`SkillSet::tool`] loads one. Empty when there are none.
    pub fn instructions(&self) -> String {
        let listing = self.listing();
        if listing.is_empty() {
            return listing;
        }
        format!("{listing}\n\nRead a skill with the tool `{LOAD_SKILL}` before you use it.")
    }

    /// The user message by which a person invokes a skill: its instructions, then what else they say, joined
    /// by blank lines. Hidden skills can be invoked. `None` when there is no such skill.
    pub fn invoke(&self, name: &str, additional: &[&str]) -> Option<String> {
        let mut message = render::body(self.get(name)?);
        let additional = additional.join("\n\n");
        if !additional.is_empty() {
            message.push_str("\n\n");
            message.push_str(&additional);
        }
        Some(message)
    }
}

impl FromIterator<Skill> for SkillSet {
    fn from_iter<I: IntoIterator<Item = Skill>>(skills: I) -> Self {
        Self::new(skills)
    }
}
