//! Rules for paths (reference section 4).

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Fault, PathRule};
use crate::field::{Expected, Field};
use crate::number::is_blank;

/// Directories against which paths are resolved and checked.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// Base of prompt paths.
    pub(crate) base: PathBuf,
    /// Directory outside of which nothing is read.
    pub(crate) root: PathBuf,
    /// The absolute path of the descriptor itself, if it has one.
    pub(crate) descriptor: Option<PathBuf>,
}

impl Folders {
    /// Resolves the directories of a descriptor at `path` with the given root, each of which may be
    /// missing.
    pub(crate) fn new(path: Option<&Path>, root: Option<&Path>) -> io::Result<Self> {
        let absolute = |path: &Path| std::path::absolute(path).map(|path| normalize(&path));
        let descriptor = path.map(absolute).transpose()?;
        let given_root = root.map(absolute).transpose()?;
        let base = match (&descriptor, &given_root) {
            (Some(descriptor), _) => descriptor.parent().unwrap_or(descriptor).to_owned(),
            (None, Some(root)) => root.clone(),
            (None, None) => normalize(&std::env::current_dir()?),
        };
        let root = given_root.unwrap_or_else(|| base.clone());
        Ok(Self { base, root, descriptor })
    }

    /// Resolves a prompt path lexically; it must lie strictly inside the root.
    pub(crate) fn resolve(&self, field: Field, path: &str) -> Result<PathBuf, Fault> {
        let written = Path::new(path);
        let is_normal = written.components().all(|part| matches!(part, Component::Normal(_)));
        // The base is normal already.
        let resolved = self.base.join(written);
        let resolved = if is_normal { resolved } else { normalize(&resolved) };
        if is_inside(&resolved, &self.root) {
            Ok(resolved)
        } else {
            Err(Fault::OutsideRoot { field, path: path.to_owned(), root: self.root.display().to_string() })
        }
    }
}

/// Whether `path` is inside `root` and is not `root` itself.
pub(crate) fn is_inside(path: &Path, root: &Path) -> bool {
    path != root && path.starts_with(root)
}

/// Removes `.` and `..` lexically; `..` at the top is kept.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    normal
}

/// Whether a prompt path may be absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absolute {
    Allowed,
    Refused,
}

/// Checks the form of a prompt path, the rules in order.
pub(crate) fn check_form(field: &Field, path: Option<&str>, absolute: Absolute) -> Result<(), Fault> {
    let Some(path) = path.filter(|path| !is_blank(path)) else {
        return Err(Fault::WrongType { field: field.clone(), expected: Expected::NonEmptyString });
    };
    let broken = [
        (path.contains('\0'), PathRule::Nul),
        (is_url(path), PathRule::Remote),
        (absolute == Absolute::Refused && Path::new(path).has_root(), PathRule::Absolute),
        (path.contains(['*', '?', '[', ']', '{', '}']), PathRule::Glob),
    ];
    match broken.into_iter().find(|(broken, _)| *broken) {
        Some((_, rule)) => Err(Fault::PathRule { field: field.clone(), path: path.to_owned(), rule }),
        None => Ok(()),
    }
}

/// A scheme and `://`.
fn is_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
    })
}
