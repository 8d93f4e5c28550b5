//! What can be wrong with a registry, its file, or a schema.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::near;

/// A place in a file; both counts start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One fault of a registry file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryFault {
    /// Where it is.
    pub place: Option<Place>,
    /// The key it concerns, as a path (`tools."orders.lookup".timeout`); empty for the whole file.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Something that a registry needs and this machine does not have.
///
/// The file itself is in order, so loading it works; a call of the tool would fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The registry file.
    pub file: PathBuf,
    /// Where the file asks for it.
    pub place: Option<Place>,
    /// The target whose tool needs it.
    pub target: String,
    /// What is missing.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(place) = self.place {
            write!(f, ":{place}")?;
        }
        write!(f, ": tool target `{}`: {}; {}", self.target, self.problem, self.hint)
    }
}

/// Why there is no registry, no tool or no schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// The file cannot be read.
    #[error("cannot read the registry file {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is longer than [`MAX_FILE`](crate::MAX_FILE).
    #[error("the registry file {} is longer than {limit} bytes", file.display())]
    TooLong {
        /// The file.
        file: PathBuf,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("the registry file {} is not UTF-8 text: the first wrong byte is byte {offset}", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// The offset of the first wrong byte, from 0.
        offset: usize,
    },
    /// The file is not YAML.
    #[error("{}: not valid YAML: {problem}", at(file, *place))]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Where it stops being YAML.
        place: Option<Place>,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The file was written for a later version of this crate.
    #[error("{}: the registry file has version {found}, and this program reads version {supported}", at(file, *place))]
    NewerVersion {
        /// The file.
        file: PathBuf,
        /// Where it says so.
        place: Option<Place>,
        /// The file's version.
        found: u64,
        /// The latest version that is understood.
        supported: u64,
    },
    /// The file is YAML, but not a registry. All faults, in the file's order.
    #[error("{}", faults_text(file, faults, *more))]
    Faulty {
        /// The file.
        file: PathBuf,
        /// The faults, in the order of their places.
        faults: Vec<RegistryFault>,
        /// How many faults there are beyond those.
        more: usize,
    },
    /// No tool stands behind a target.
    #[error("tool target `{target}` is not bound in the registry file {}", file.display())]
    Unbound {
        /// The file.
        file: PathBuf,
        /// The target that was asked for.
        target: String,
        /// The bound targets that are nearly that, nearest first.
        near: Vec<String>,
        /// All bound targets, by name.
        bound: Vec<String>,
    },
    /// A rule of a [`ShellPolicy`](crate::ShellPolicy) is no plain command.
    #[error("the shell rule `{rule}` has {problem}")]
    ShellRule {
        /// The rule.
        rule: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no mode of that name.
    #[error("there is no mode `{mode}`")]
    UnknownMode {
        /// The name that was asked for.
        mode: String,
        /// The modes that there are.
        known: Vec<String>,
    },
    /// The folder of a workspace cannot be opened.
    #[error("cannot open the folder {} of a workspace: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// An MCP server cannot be used.
    #[cfg(feature = "mcp")]
    #[error("the MCP server `{server}` cannot be used: {fault}")]
    Mcp {
        /// The server's id.
        server: String,
        /// Why.
        fault: crate::mcp::McpFault,
    },
    /// A JSON Schema cannot be used.
    #[error("the argument schema of tool `{tool}` is wrong{}: {problem}", in_path(path))]
    Schema {
        /// The tool, by the name that the model calls.
        tool: String,
        /// The wrong part as a JSON pointer; empty for the whole.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl ToolsError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "tools.registry_unreadable",
            Self::TooLong { .. } => "tools.registry_too_long",
            Self::NotText { .. } => "tools.registry_not_text",
            Self::Syntax { .. } => "tools.registry_syntax",
            Self::NewerVersion { .. } => "tools.registry_newer_version",
            Self::Faulty { .. } => "tools.registry_faulty",
            Self::Unbound { .. } => "tools.target_unbound",
            Self::ShellRule { .. } => "tools.shell_rule_wrong",
            Self::UnknownMode { .. } => "tools.mode_unknown",
            Self::Folder { .. } => "tools.folder_unusable",
            #[cfg(feature = "mcp")]
            Self::Mcp { fault, .. } => fault.kind(),
            Self::Schema { .. } => "tools.schema_wrong",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path of the registry file".to_owned())
            }
            Self::Unreadable { .. } => Some("check that it is a file and that you may read it".to_owned()),
            Self::TooLong { .. } => Some("split it, or move long schemas into the programs".to_owned()),
            Self::NotText { .. } => Some("save it as UTF-8".to_owned()),
            Self::Syntax { hint, .. } => Some((*hint).to_owned()),
            Self::NewerVersion { supported, .. } => {
                Some(format!("update this program, or write the file as version {supported}"))
            }
            Self::Faulty { .. } => None,
            Self::Unbound { target, near, bound, .. } => Some(unbound_hint(target, near, bound)),
            Self::ShellRule { .. } => Some(
                "write the first words of a command, such as `git log`; quote what is no plain word"
                    .to_owned(),
            ),
            Self::UnknownMode { known, .. } => Some(format!("there are {}", near::list(known, "and"))),
            Self::Folder { .. } => Some("check that it is a folder and that you may read it".to_owned()),
            #[cfg(feature = "mcp")]
            Self::Mcp { fault, .. } => fault.hint().map(str::to_owned),
            Self::Schema { .. } => Some("correct the schema; references must stay inside it".to_owned()),
        }
    }
}

fn unbound_hint(target: &str, near: &[String], bound: &[String]) -> String {
    const SHOWN: usize = 20;
    if !near.is_empty() {
        return format!("did you mean {}?", near::list(near, "or"));
    }
    if bound.is_empty() {
        return format!("the file binds no target; add `{target}` under `tools`");
    }
    let shown: Vec<&String> = bound.iter().take(SHOWN).collect();
    let rest = bound.len() - shown.len();
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    let names: Vec<String> = shown.iter().map(|name| format!("`{name}`")).collect();
    format!("add it under `tools`; bound are {}{rest}", names.join(", "))
}

fn at(file: &std::path::Path, place: Option<Place>) -> String {
    match place {
        Some(place) => format!("{}:{place}", file.display()),
        None => file.display().to_string(),
    }
}

fn in_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at `{path}`") }
}

/// One fault a line, each complete in itself.
fn faults_text(file: &std::path::Path, faults: &[RegistryFault], more: usize) -> String {
    let mut lines: Vec<String> = faults.iter().map(|fault| fault_line(file, fault)).collect();
    if more > 0 {
        lines.push(format!("{}: {more} more faults", file.display()));
    }
    lines.join("\n")
}

fn fault_line(file: &std::path::Path, fault: &RegistryFault) -> String {
    let mut line = format!("{}: ", at(file, fault.place));
    if !fault.path.is_empty() {
        line.push_str(&fault.path);
        line.push_str(": ");
    }
    line.push_str(&fault.problem);
    if let Some(hint) = &fault.hint {
        line.push_str("; ");
        line.push_str(hint);
    }
    line
}
