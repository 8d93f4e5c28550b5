//! The files that are referred to, and how they are read.

use harness_core::canonical::sha256_hex;
use harness_host::{DynWorkspace, WorkspaceFault, WorkspaceFaultCode};
use serde::{Deserialize, Serialize};

use super::reference::{extension, resolved};

/// Bounds of references.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Directory that references start at and stay below.
    pub(super) base: String,
    /// Bytes of a file.
    pub(super) max_size: usize,
    /// Extensions, lower-case and without the dot.
    pub(super) extensions: Vec<String>,
}

/// A file that is referred to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tracked {
    /// The reference as it was written.
    pub(super) reference: String,
    /// The path that it means.
    pub(super) path: String,
    /// Whether there is no such file.
    pub(super) deleted: bool,
    /// Reason why it cannot be shown.
    pub(super) error: Option<String>,
    /// How much it matters, 0 to 100.
    pub(super) priority: u8,
    /// The hash of its content; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<String>,
}

/// Current content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text of the file.
    Text(String),
    /// There is none.
    Missing,
    /// Reason why it cannot be shown.
    Failed(String),
}

impl Tracked {
    /// A file that was not read yet.
    pub(super) fn new(reference: &str, rules: &Rules) -> Self {
        let (path, _) = resolved(&rules.base, reference);
        Self { reference: reference.to_owned(), path, deleted: false, error: None, priority: 0, hash: None }
    }

    /// Takes over what the file is now; whether that is something else than before.
    pub(super) fn observe(&mut self, content: &Content) -> bool {
        let before = (self.deleted, self.error.clone(), self.hash.clone());
        (self.deleted, self.error, self.hash) = match content {
            Content::Text(text) => (false, None, Some(sha256_hex(text))),
            Content::Missing => (true, None, None),
            Content::Failed(error) => (false, Some(error.clone()), None),
        };
        before != (self.deleted, self.error.clone(), self.hash.clone())
    }
}

/// Reads a file by its rules.
pub(super) async fn read(file: &Tracked, rules: &Rules, workspace: &dyn DynWorkspace) -> Content {
    if !resolved(&rules.base, &file.reference).1 {
        return Content::Failed("PATH_TRAVERSAL: File outside allowed directory".to_owned());
    }
    let extension = extension(&file.reference);
    if !rules.extensions.contains(&extension) {
        return Content::Failed(format!("DISALLOWED_EXTENSION: .{extension}"));
    }
    match workspace.read_boxed(&file.path).await {
        Ok(None) => Content::Missing,
        Ok(Some(found)) if found.base64 => Content::Failed("NOT_TEXT: File is not text".to_owned()),
        Ok(Some(found)) if found.content.len() > rules.max_size => Content::Failed(format!(
            "FILE_TOO_LARGE: {} bytes, at most {} are allowed",
            found.content.len(),
            rules.max_size,
        )),
        Ok(Some(found)) => Content::Text(found.content),
        Err(fault) => failed(&fault),
    }
}

fn failed(fault: &WorkspaceFault) -> Content {
    Content::Failed(match fault.code {
        WorkspaceFaultCode::NotFound => return Content::Missing,
        // The way itself stays below the base, so only a link can lead out.
        WorkspaceFaultCode::OutsideWorkspace => "SYMLINK: Symlinks not allowed".to_owned(),
        WorkspaceFaultCode::TooLarge => format!("FILE_TOO_LARGE: {}", fault.message),
        WorkspaceFaultCode::NotText => "NOT_TEXT: File is not text".to_owned(),
        WorkspaceFaultCode::WrongKind => "NOT_A_FILE: Not a regular file".to_owned(),
        WorkspaceFaultCode::Unavailable if fault.message.to_lowercase().contains("permission denied") => {
            "PERMISSION_DENIED: Cannot read file".to_owned()
        }
        WorkspaceFaultCode::Timeout => format!("TIMEOUT: {}", fault.message),
        WorkspaceFaultCode::Unavailable | WorkspaceFaultCode::Changed | WorkspaceFaultCode::ReadOnly | _ => {
            format!("UNAVAILABLE: {}", fault.message)
        }
    })
}
