//! Skills in folders, read through the workspace port.

use std::collections::BTreeMap;

use harness_host::{DynWorkspace, EntryKind, WorkspaceFault, WorkspaceFaultCode};

use super::{Skill, SkillFault, SkillSet, SkillWarning};

/// How deep below a root skills are looked for.
const DEPTH: u32 = 8;
/// How many entries of a root are looked at.
const ENTRIES: u32 = 10_000;
/// How many skills are read from all roots together.
const SKILLS: usize = 512;

/// What was found in folders of skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundSkills {
    /// The skills, by root and then by path. Of several with one name only the first is there.
    pub skills: SkillSet,
    /// What was left out, and what is odd.
    pub problems: Vec<SkillProblem>,
}

/// What is wrong with a file of skills, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillProblem {
    /// A folder or file could not be read.
    #[error("{path}: {fault}")]
    Unreadable {
        /// What.
        path: String,
        /// Why.
        fault: WorkspaceFault,
    },
    /// A file is no skill and is left out.
    #[error("{path}: {fault}")]
    NoSkill {
        /// The file.
        path: String,
        /// Why.
        fault: SkillFault,
    },
    /// A skill is used, though its file is odd.
    #[error("{path}: {warning}")]
    Odd {
        /// The file.
        path: String,
        /// How.
        warning: SkillWarning,
    },
    /// A skill has the name of an earlier one and is left out.
    #[error("{path}: left out, as `{name}` is the name of {first} already")]
    NameTaken {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The earlier one's file.
        first: String,
    },
    /// There are more than are read.
    #[error("{path}: left out, as {most} skills were read before it")]
    TooMany {
        /// The file.
        path: String,
        /// The bound.
        most: usize,
    },
}

/// Reads every `SKILL.md` below the roots, at most 8 levels deep and 512 in all, of earlier roots first. Put
/// the project's folder before the user's, so that the project's skill of a name counts. A root that does not
/// exist has no skills. Nothing here fails: what cannot be used is told as a problem.
pub async fn read_skills(workspace: &dyn DynWorkspace, roots: &[&str]) -> FoundSkills {
    let mut found = Finder::default();
    for root in roots {
        match workspace.list_boxed(root, DEPTH, ENTRIES).await {
            Ok(entries) => {
                let files = entries.into_iter().filter(|entry| entry.kind != EntryKind::Dir);
                for path in files.map(|entry| entry.path).filter(|path| is_skill(path)) {
                    found.read(workspace, path).await;
                }
            }
            Err(fault) => found.problems.push(SkillProblem::Unreadable { path: (*root).to_owned(), fault }),
        }
    }
    FoundSkills { skills: SkillSet::new(found.skills), problems: found.problems }
}

fn is_skill(path: &str) -> bool {
    path.rsplit('/').next() == Some("SKILL.md")
}

#[derive(Debug, Default)]
struct Finder {
    skills: Vec<Skill>,
    /// Where each name was found first.
    names: BTreeMap<String, String>,
    problems: Vec<SkillProblem>,
}

impl Finder {
    async fn read(&mut self, workspace: &dyn DynWorkspace, path: String) {
        if self.skills.len() == SKILLS {
            return self.problems.push(SkillProblem::TooMany { path, most: SKILLS });
        }
        let text = match workspace.read_boxed(&path).await {
            Ok(Some(file)) if file.base64 => {
                let fault = WorkspaceFault::new(WorkspaceFaultCode::NotText, "it is no UTF-8 text");
                return self.problems.push(SkillProblem::Unreadable { path, fault });
            }
            Ok(Some(file)) => file.content,
            // It went away since it was listed.
            Ok(None) => return,
            Err(fault) => return self.problems.push(SkillProblem::Unreadable { path, fault }),
        };
        let parsed = match Skill::parse(&text, Some(&path)) {
            Ok(parsed) => parsed,
            Err(fault) => return self.problems.push(SkillProblem::NoSkill { path, fault }),
        };
        let name = parsed.skill.name.clone();
        if let Some(first) = self.names.get(&name) {
            let first = first.clone();
            return self.problems.push(SkillProblem::NameTaken { path, name, first });
        }
        let odd = |warning| SkillProblem::Odd { path: path.clone(), warning };
        self.problems.extend(parsed.warnings.into_iter().map(odd));
        self.names.insert(name, path);
        self.skills.push(parsed.skill);
    }
}
