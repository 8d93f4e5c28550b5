//! Errors of registries, their files, and schemas.

use std::io;
use std::path::PathBuf;

use harness_diagnostics::{Diagnostic, Severity, suggest};

/// Error of a registry, a tool or a schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// The file cannot be read.
    #[error("cannot read registry file {}: {source}", file.display())]
    Unreadable {
        /// Registry file.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file exceeds [`MAX_FILE`](crate::MAX_FILE).
    #[error("registry file {} exceeds {limit} bytes", file.display())]
    TooLong {
        /// Registry file.
        file: PathBuf,
        /// Limit in bytes.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("registry file {} is not UTF-8: invalid byte at offset {offset}", file.display())]
    NotText {
        /// Registry file.
        file: PathBuf,
        /// Offset of the first invalid byte, from 0.
        offset: usize,
    },
    /// The file is not a registry. Displays as one line for each error.
    #[error("{}", lines(diagnostics))]
    Invalid {
        /// Registry file.
        file: PathBuf,
        /// Errors in the order of the text.
        diagnostics: Vec<Diagnostic>,
    },
    /// A target is not bound to a tool.
    #[error("tool target `{target}` is not bound in registry {}", file.display())]
    Unbound {
        /// Registry file.
        file: PathBuf,
        /// Target.
        target: String,
        /// Bound targets, sorted by name.
        bound: Vec<String>,
    },
    /// A rule of a [`ShellPolicy`](crate::ShellPolicy) is not a plain command.
    #[error("invalid shell rule `{rule}`: it has {problem}")]
    ShellRule {
        /// Rule as written.
        rule: String,
        /// Problem in the rule.
        problem: String,
    },
    /// A mode that does not exist.
    #[error("unknown mode `{mode}`")]
    UnknownMode {
        /// Name of the mode.
        mode: String,
        /// Names of all modes.
        known: Vec<String>,
    },
    /// The directory of a workspace cannot be opened.
    #[error("cannot open workspace directory {}: {source}", folder.display())]
    Folder {
        /// Directory of the workspace.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An MCP server cannot be used.
    #[cfg(feature = "mcp")]
    #[error("cannot use MCP server `{server}`: {fault}")]
    Mcp {
        /// Id of the server.
        server: String,
        /// Reason.
        fault: crate::mcp::McpFault,
    },
    /// A JSON Schema is invalid.
    #[error("invalid argument schema of tool `{tool}`{}: {problem}", in_path(path))]
    Schema {
        /// Name of the tool for the model.
        tool: String,
        /// Invalid part as a JSON pointer; empty for the whole schema.
        path: String,
        /// Problem in the schema.
        problem: String,
    },
}

impl ToolsError {
    /// Stable code of the error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "tools.registry_unreadable",
            Self::TooLong { .. } => "tools.registry_too_long",
            Self::NotText { .. } => "tools.registry_not_text",
            Self::Invalid { diagnostics, .. } => {
                diagnostics.first().map_or("tools.registry_faulty", |first| first.code)
            }
            Self::Unbound { .. } => "tools.target_unbound",
            Self::ShellRule { .. } => "tools.shell_rule_wrong",
            Self::UnknownMode { .. } => "tools.mode_unknown",
            Self::Folder { .. } => "tools.folder_unusable",
            #[cfg(feature = "mcp")]
            Self::Mcp { fault, .. } => fault.kind(),
            Self::Schema { .. } => "tools.schema_wrong",
        }
    }

    /// The error as diagnostics, for a renderer: those of an invalid file, or one without a place.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        if let Self::Invalid { diagnostics, .. } = self {
            return diagnostics.clone();
        }
        vec![Diagnostic::new(Severity::Error, self.kind(), self.to_string()).with_hint(self.hint())]
    }

    /// Suggested fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path of the registry file".to_owned())
            }
            Self::Unreadable { .. } => Some("check that it is a readable file".to_owned()),
            Self::TooLong { .. } => Some("split it, or move long schemas into the programs".to_owned()),
            Self::NotText { .. } => Some("save it as UTF-8".to_owned()),
            Self::Invalid { .. } => None,
            Self::Unbound { target, bound, .. } => Some(unbound_hint(target, bound)),
            Self::ShellRule { .. } => Some(
                "write the first words of a command, such as `git log`; quote words with special characters"
                    .to_owned(),
            ),
            Self::UnknownMode { known, .. } => Some(format!("available: {}", suggest::list(known, "and"))),
            Self::Folder { .. } => Some("check that it is a readable directory".to_owned()),
            #[cfg(feature = "mcp")]
            Self::Mcp { fault, .. } => fault.hint().map(str::to_owned),
            Self::Schema { .. } => Some("correct the schema; references must stay inside it".to_owned()),
        }
    }
}

fn unbound_hint(target: &str, bound: &[String]) -> String {
    const SHOWN: usize = 20;
    if let Some(all) = bound.iter().find(|known| known.strip_suffix(".*") == Some(target)) {
        return format!("did you mean `{all}`?");
    }
    if let Some(hint) = suggest::did_you_mean(target, bound.iter().map(String::as_str)) {
        return hint;
    }
    if bound.is_empty() {
        return format!("the file binds no targets; add `{target}` under `tools`");
    }
    let shown = suggest::list(bound.iter().take(SHOWN), "and");
    match bound.len().saturating_sub(SHOWN) {
        0 => format!("add it under `tools`; available: {shown}"),
        rest => format!("add it under `tools`; available: {shown} and {rest} more"),
    }
}

fn in_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at `{path}`") }
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
