//! Files that users provide for agents and chats: skills, prompt templates, context files.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use harness::Builder;
use harness::memory::builtin::{ContextFileLimits, ContextFileSet, directories_down_to};
use harness::runtime::skill::{Skill, SkillSet, read_skills};
use harness::runtime::template::{PromptTemplate, TemplateSet, read_templates};

use super::disk::Disk;
use crate::args::{SkillArgs, TemplateArgs};
use crate::env;
use crate::error::CliError;
use crate::paths::Paths;
use crate::render::{NOTE, harmless};
use crate::terminal;

/// Project directory of skills and prompt templates.
const OWN: &str = ".harness";

/// Maximum bytes of one context file, and of all.
const MAX_CONTEXT_FILE: usize = 128 * 1024;
const MAX_CONTEXT: usize = 512 * 1024;

/// Skills and context files for agents, in addition to the descriptor.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) skills: SkillSet,
    context: ContextFileSet,
    /// Messages about skipped and suspicious files.
    pub(crate) problems: Vec<String>,
}

impl Found {
    /// Reads the named skills, or else those of the default directories, and the context files. A named directory must
    /// exist. An invalid file is skipped and reported as a problem.
    pub(crate) async fn read(args: &SkillArgs, descriptor: Option<&Path>) -> Result<Self, CliError> {
        let usual = match descriptor {
            Some(descriptor) => vec![own(descriptor, "skills")],
            None => [Some(Path::new(OWN).join("skills")), of_user("skills")].into_iter().flatten().collect(),
        };
        let paths = Paths::here();
        let mut roots = Roots::of("skills", &args.skills, usual)?;
        let mut found = Self { problems: std::mem::take(&mut roots.problems), ..Self::default() };
        let read = read_skills(&Disk::everywhere(), &roots.names()).await;
        found.skills = read.skills.skills().iter().map(|skill| with_short_place(skill, &paths)).collect();
        found.problems.extend(read.problems.iter().map(|problem| paths.short(&problem.to_string())));
        if args.context_files(descriptor) {
            found.read_context().await;
        }
        Ok(found)
    }

    /// The user's file, then the files from the repository root down to the working directory.
    async fn read_context(&mut self) {
        if let Some(folder) = env::settings().filter(|folder| folder.is_dir()) {
            self.add_context(&Disk::at(&folder), "", ("~/.config/harness", &folder)).await;
        }
        let Ok(here) = Path::new(".").canonicalize() else { return };
        let root = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
        let below = here.strip_prefix(root).ok().and_then(Path::to_str).unwrap_or_default();
        self.add_context(&Disk::inside(root), below, ("", root)).await;
    }

    /// Adds the files from a root down, whose paths are shown to agents behind `shown`.
    async fn add_context(&mut self, disk: &Disk, below: &str, (shown, root): (&str, &Path)) {
        let mut limits = ContextFileLimits::default();
        (limits.lines, limits.bytes, limits.total) = (usize::MAX, MAX_CONTEXT_FILE, MAX_CONTEXT);
        let read = ContextFileSet::read(disk, &directories_down_to(below), limits).await;
        self.context.is_cut |= read.is_cut;
        self.context.files.extend(read.files.into_iter().map(|mut file| {
            file.path.insert_str(0, shown);
            file
        }));
        let problems = read.problems.into_iter();
        self.problems.extend(problems.map(|(path, fault)| format!("{}{path}: {fault}", root.display())));
    }

    /// Hides the skills from agents: a backend in place of the model has no tool that loads them.
    pub(crate) fn keep_skills_to_people(&mut self) {
        self.skills = self.skills.skills().iter().map(|skill| skill.clone().hidden()).collect();
    }

    /// Adds the skills and context files to the agents of a builder.
    pub(crate) fn give(&self, builder: Builder) -> Builder {
        builder.more_instructions(self.context.instructions()).skills(self.skills.clone())
    }

    /// Prints the skills, context files and problems on standard error.
    pub(crate) fn tell(&self) {
        let skills: Vec<&str> = self.skills.skills().iter().map(|skill| skill.name.as_str()).collect();
        let files: Vec<&str> = self.context.files.iter().map(|file| file.path.as_str()).collect();
        tell("skills", &skills, &self.problems);
        tell("context files", &files, &[]);
    }
}

/// Reads the named prompt templates, or else those of the default directories. `unusable` returns the reason why a name
/// cannot be used. Prints the templates and problems on standard error.
pub(crate) async fn templates(
    args: &TemplateArgs,
    descriptor: Option<&Path>,
    unusable: impl Fn(&str) -> Option<&'static str>,
) -> Result<TemplateSet, CliError> {
    let own = own(descriptor.unwrap_or(Path::new("")), "templates");
    let usual = [Some(own), of_user("templates")].into_iter().flatten().collect();
    let roots = Roots::of("templates", &args.templates, usual)?;
    let mut problems = roots.problems.clone();
    let read = read_templates(&Disk::everywhere(), &roots.names()).await;
    let paths = Paths::here();
    problems.extend(read.problems.iter().map(|problem| paths.short(&problem.to_string())));
    let mut usable = Vec::new();
    for template in read.templates.templates() {
        match unusable(&template.name) {
            Some(why) => problems.push(format!("template `{}` skipped: {why}", template.name)),
            None => usable.push(without_line_end(template)),
        }
    }
    let names: Vec<String> = usable.iter().map(|template| format!("/{}", template.name)).collect();
    tell("templates", &names, &problems);
    Ok(TemplateSet::new(usable))
}

/// Reason why a template of that name cannot be typed as a command; `None` if it can.
pub(crate) fn untypable(template: &str) -> Option<&'static str> {
    let typed = !template.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '.'));
    (!typed || template.starts_with("skill:"))
        .then_some("its name cannot be typed as a command; give the file one of letters, digits and hyphens")
}

/// Prints names and problems on standard error. Write errors are ignored.
fn tell(what: &str, names: &[impl AsRef<str>], problems: &[String]) {
    /// Maximum number of printed names.
    const MOST: usize = 12;
    let mut out = terminal::messages();
    for problem in problems {
        let _ = writeln!(out, "{NOTE}warning{NOTE:#}: {}", harmless(problem));
    }
    if !names.is_empty() {
        let told: Vec<&str> = names.iter().take(MOST).map(AsRef::as_ref).collect();
        let more = names.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(out, "{what}: {}{more}", harmless(&told.join(", ")));
    }
}

/// A copy of the template without trailing white space, such as the line end of its file.
fn without_line_end(template: &PromptTemplate) -> PromptTemplate {
    let mut template = template.clone();
    template.content.truncate(template.content.trim_end().len());
    template
}

/// The `.harness` subdirectory `what` next to a descriptor.
fn own(descriptor: &Path, what: &str) -> PathBuf {
    descriptor.parent().unwrap_or(Path::new("")).join(OWN).join(what)
}

/// The subdirectory `what` of the user's settings; `None` without a settings directory.
fn of_user(what: &str) -> Option<PathBuf> {
    env::settings().map(|settings| settings.join(what))
}

/// A copy of the skill with a short location, relative to the working directory.
fn with_short_place(skill: &Skill, paths: &Paths) -> Skill {
    let mut skill = skill.clone();
    skill.location = skill.location.map(|place| paths.short(&place));
    skill
}

/// Existing directories, by their real paths and without duplicates.
struct Roots {
    folders: Vec<String>,
    problems: Vec<String>,
}

impl Roots {
    /// The named directories, or else the default ones.
    fn of(what: &'static str, named: &[PathBuf], usual: Vec<PathBuf>) -> Result<Self, CliError> {
        let mut roots = Self { folders: Vec::new(), problems: Vec::new() };
        for folder in named {
            let real = real(folder);
            roots.add(real.map_err(|source| CliError::NoFolder { what, folder: folder.clone(), source })?);
        }
        for folder in if named.is_empty() { usual } else { Vec::new() } {
            match real(&folder) {
                Ok(real) => roots.add(real),
                Err(fault) if fault.kind() == ErrorKind::NotFound => {}
                Err(fault) => roots.problems.push(format!("{}: {fault}", folder.display())),
            }
        }
        Ok(roots)
    }

    fn add(&mut self, folder: String) {
        if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }

    fn names(&self) -> Vec<&str> {
        self.folders.iter().map(String::as_str).collect()
    }
}

/// The real path of a directory, with links resolved.
fn real(folder: &Path) -> std::io::Result<String> {
    let real = folder.canonicalize()?;
    if !real.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    real.into_os_string()
        .into_string()
        .map_err(|_| std::io::Error::new(ErrorKind::InvalidFilename, "the path is not UTF-8"))
}
