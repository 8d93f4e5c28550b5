//! Markdown files of skills and templates: front matter, and directories that hold them.

use std::collections::BTreeMap;

use harness_diagnostics::{Diagnostic, Fields, Findings, YamlLimits, read};
use harness_host::{DynWorkspace, EntryKind, WorkspaceFault, WorkspaceFaultCode};

use crate::skill::SkillWarning;

/// The longest file that is read, in bytes.
const MAX_FILE: usize = 256 * 1024;
/// The longest front matter that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum entries of a directory.
const ENTRIES: u32 = 10_000;

/// Error of a file that is not a skill or a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MarkdownFault {
    /// The front matter is invalid.
    #[error("{}{problem}", place(*.line, *.column))]
    FrontMatter {
        /// Line in the file, from 1, if known.
        line: Option<usize>,
        /// Column, from 1.
        column: Option<usize>,
        /// Message of the parser.
        problem: String,
    },
    /// A skill has no description, so no model knows when to use it.
    #[error("missing `description`: state in the front matter when to use it")]
    NoDescription,
    /// A skill has no name, and no directory to take it from.
    #[error("missing `name`: set it in the front matter")]
    NoName,
    /// The file is too long.
    #[error("the file has {bytes} bytes; the limit is {most}")]
    TooLong {
        /// Length in bytes.
        bytes: usize,
        /// The limit in bytes.
        most: usize,
    },
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        _ => String::new(),
    }
}

impl MarkdownFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FrontMatter { .. } => "markdown.front_matter",
            Self::NoDescription => "markdown.no_description",
            Self::NoName => "markdown.no_name",
            Self::TooLong { .. } => "markdown.too_long",
        }
    }

    fn front_matter(problem: String) -> Self {
        Self::FrontMatter { line: None, column: None, problem }
    }
}

/// Problem of one file in a directory of skills or templates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
#[non_exhaustive]
pub struct FileProblem {
    /// Path of the file or directory.
    pub path: String,
    /// Problem with the file.
    pub problem: FileProblemKind,
}

/// Kinds of [`FileProblem`]. Files are skipped, except for warnings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblemKind {
    /// The file or directory cannot be read.
    #[error("{0}")]
    Unreadable(WorkspaceFault),
    /// The file is not a skill or a template.
    #[error("{0}")]
    Invalid(MarkdownFault),
    /// A skill is used despite a deviation from the format.
    #[error("{0}")]
    Warning(SkillWarning),
    /// An earlier file has the same name.
    #[error("skipped: `{name}` is already the name of {first}")]
    NameTaken {
        /// Name of both.
        name: String,
        /// Path of the earlier file.
        first: String,
    },
    /// More files than the limit.
    #[error("skipped: the limit of {0} files is reached")]
    TooMany(usize),
}

/// Reads the files of several directories; the first of a name is used.
pub(crate) struct Reader<'w> {
    workspace: &'w dyn DynWorkspace,
    most: usize,
    /// Path of each name.
    names: BTreeMap<String, String>,
    pub(crate) problems: Vec<FileProblem>,
}

impl<'w> Reader<'w> {
    /// A reader of at most `most` files.
    pub(crate) fn new(workspace: &'w dyn DynWorkspace, most: usize) -> Self {
        Self { workspace, most, names: BTreeMap::new(), problems: Vec::new() }
    }

    pub(crate) fn report(&mut self, path: &str, problem: FileProblemKind) {
        self.problems.push(FileProblem { path: path.to_owned(), problem });
    }

    /// Paths of the files below `root`; a missing one has none.
    pub(crate) async fn files(&mut self, root: &str, depth: u32) -> Vec<String> {
        match self.workspace.list_boxed(root, depth, ENTRIES).await {
            Ok(entries) => {
                let files = entries.into_iter().filter(|entry| entry.kind != EntryKind::Dir);
                files.map(|entry| entry.path).collect()
            }
            Err(fault) => {
                self.report(root, FileProblemKind::Unreadable(fault));
                Vec::new()
            }
        }
    }

    /// The text of a file; `None` if a problem was reported, or the file was removed since it was listed.
    pub(crate) async fn text(&mut self, path: &str) -> Option<String> {
        if self.names.len() == self.most {
            self.report(path, FileProblemKind::TooMany(self.most));
            return None;
        }
        let fault = match self.workspace.read_boxed(path).await {
            Ok(Some(file)) if file.base64 => {
                WorkspaceFault::new(WorkspaceFaultCode::NotText, "not UTF-8 text")
            }
            Ok(file) => return file.map(|file| file.content),
            Err(fault) => fault,
        };
        self.report(path, FileProblemKind::Unreadable(fault));
        None
    }

    /// Keeps a parsed file, unless it is invalid or its name is taken.
    pub(crate) fn keep<T>(
        &mut self,
        path: String,
        parsed: Result<T, MarkdownFault>,
        name: impl Fn(&T) -> &str,
    ) -> Option<T> {
        let problem = match parsed {
            Ok(parsed) => {
                let name = name(&parsed).to_owned();
                let Some(first) = self.names.get(&name).cloned() else {
                    self.names.insert(name, path);
                    return Some(parsed);
                };
                FileProblemKind::NameTaken { name, first }
            }
            Err(fault) => FileProblemKind::Invalid(fault),
        };
        self.report(&path, problem);
        None
    }
}

/// Front matter, read by `front`, and body of a text. Without front matter, the default and the whole text.
pub(crate) fn parse<T: Default>(
    text: &str,
    front: impl FnOnce(&Fields<'_>) -> T,
) -> Result<(T, &str), MarkdownFault> {
    if text.len() > MAX_FILE {
        return Err(MarkdownFault::TooLong { bytes: text.len(), most: MAX_FILE });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((yaml, body)) = split(text) else { return Ok((T::default(), text)) };
    if yaml.len() > MAX_BYTES {
        let (bytes, most) = (yaml.len(), MAX_BYTES);
        return Err(MarkdownFault::front_matter(format!(
            "the front matter has {bytes} bytes; the limit is {most}"
        )));
    }
    if yaml.trim().is_empty() {
        return Ok((T::default(), body));
    }
    let value = read_front(yaml, front).map_err(|error| {
        let Diagnostic { message, hint, place, .. } = *error;
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        MarkdownFault::FrontMatter {
            // The fence is the first line of the file.
            line: place.as_ref().map(|place| place.line as usize + 1),
            column: place.as_ref().map(|place| place.column as usize),
            problem: format!("{message}{hint}"),
        }
    })?;
    Ok((value, body))
}

fn read_front<T: Default>(yaml: &str, front: impl FnOnce(&Fields<'_>) -> T) -> Result<T, Box<Diagnostic>> {
    let limits = YamlLimits::for_text(MAX_BYTES as u64);
    let document = read(yaml, "front matter", &limits, None).map_err(|error| Box::new(error.into()))?;
    let findings = Findings::new(&document, "markdown.front_matter");
    let fields = Fields::root(&findings, "the front matter");
    let value = fields.map(|fields| front(&fields.with_nulls_absent()));
    findings.finish(value.unwrap_or_default())
}

fn split(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut from = 0;
    for line in inner.split_inclusive('\n') {
        let end = from + line.len();
        if line.trim_end() == "---" {
            return Some((inner.get(..from)?, inner.get(end..)?));
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(fields: &Fields<'_>) -> Vec<(String, String)> {
        fields.keys().filter_map(|key| Some((key.to_owned(), fields.text(key)?))).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[track_caller]
    fn check(text: &str, front: &[(&str, &str)], body: &str) {
        assert_eq!(parse(text, pairs), Ok((owned(front), body)));
    }

    #[test]
    fn front_matter_is_between_two_fences_at_the_start() {
        check("---\na: b\n---\nbody\n", &[("a", "b")], "body\n");
        check("\u{feff}---\r\na: b\r\n---\r\nbody", &[("a", "b")], "body");
        check("---\n---\nbody", &[], "body");
        check("---\na: b\n---", &[("a", "b")], "");
        check("body\n---\na: b\n---\n", &[], "body\n---\na: b\n---\n");
        check("---\na: b\n", &[], "---\na: b\n");
    }

    #[test]
    fn error_names_its_place_in_the_file() {
        let fault = parse("---\na: b\nc: [\n---\n", pairs).unwrap_err();
        assert!(fault.to_string().starts_with("line 3, column 4: "), "{fault}");
    }

    #[test]
    fn long_front_matter_is_rejected() {
        let text = format!("---\na: {}\n---\n", "b".repeat(MAX_BYTES));
        let fault = parse(&text, pairs).unwrap_err();
        assert_eq!(fault.to_string(), "the front matter has 65540 bytes; the limit is 65536");
    }
}
