//! Deliverables as files.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use harness::control::work::Deliverable;

use crate::error::CliError;

/// Maximum length in characters of a name made from a title.
const LONGEST: usize = 80;

/// Maximum number of names that are tried for one deliverable.
const TRIES: u32 = 1_000;

/// A deliverable and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Path of the written file.
    pub(crate) path: PathBuf,
    /// Note for the user.
    pub(crate) note: Option<String>,
}

/// Writes each deliverable into a file in `folder`, which is created if necessary.
///
/// The name is made from the item's title and never leads out of the directory. Existing files with different content
/// are kept: the new file gets another name, and the note reports it.
pub(crate) fn write(folder: &Path, deliverables: &[Deliverable]) -> Result<Vec<Written>, CliError> {
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::NotWritten { path, source }
    };
    if !deliverables.is_empty() {
        fs::create_dir_all(folder).map_err(fault(folder))?;
    }
    let mut taken = HashSet::new();
    let mut written = Vec::with_capacity(deliverables.len());
    for deliverable in deliverables {
        let name = file_name(deliverable);
        let one =
            write_one(folder, &name, &deliverable.content, &taken).map_err(fault(&folder.join(&name)))?;
        taken.insert(one.path.clone());
        written.push(one);
    }
    Ok(written)
}

fn write_one(folder: &Path, name: &str, content: &str, taken: &HashSet<PathBuf>) -> io::Result<Written> {
    for number in 1..=TRIES {
        let path = folder.join(numbered(name, number));
        let moved = || {
            let shown = path.file_name().unwrap_or_default().to_string_lossy();
            (number > 1).then(|| format!("{name} already exists and was not changed; written to {shown}"))
        };
        // Exclusive creation does not follow a link, so nothing outside of the folder is touched.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(content.as_bytes())?;
                return Ok(Written { note: moved(), path });
            }
            Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
            Err(_) if !taken.contains(&path) && holds(&path, content) => {
                return Ok(Written { note: Some("already exists with this content".to_owned()), path });
            }
            Err(_) => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files with that name"))
}

/// Whether a regular file has this content.
fn holds(path: &Path, content: &str) -> bool {
    let same_size =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    same_size && fs::read(path).is_ok_and(|found| found == content.as_bytes())
}

/// `a.md`, `a-2.md`, `a-3.md`.
fn numbered(name: &str, number: u32) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, extension))) => format!("{stem}-{number}.{extension}"),
        (_, None) => format!("{name}-{number}"),
    }
}

/// File name: the title as far as it is valid, with an extension.
fn file_name(deliverable: &Deliverable) -> String {
    let mut name = String::new();
    for c in deliverable.title.chars().take(LONGEST) {
        if c.is_alphanumeric() || matches!(c, '_' | '.') {
            name.push(c);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_matches(['-', '.']);
    let name = if name.is_empty() { deliverable.item_id.as_str() } else { name };
    let has_extension = name.rsplit_once('.').is_some_and(|(_, extension)| {
        (1..=5).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    if has_extension {
        return name.to_owned();
    }
    let is_json = serde_json::from_str::<serde_json::Value>(&deliverable.content)
        .is_ok_and(|value| value.is_object() || value.is_array());
    format!("{name}.{}", if is_json { "json" } else { "md" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliverable(title: &str, content: &str) -> Deliverable {
        let json = serde_json::json!({ "item_id": "00000001", "title": title, "content": content });
        serde_json::from_value(json).unwrap()
    }

    #[track_caller]
    fn check_name(title: &str, content: &str, expected: &str) {
        assert_eq!(file_name(&deliverable(title, content)), expected);
    }

    #[test]
    fn names_are_made_from_titles() {
        check_name("summary.md", "# a", "summary.md");
        check_name("What was found (2026)", "# a", "What-was-found-2026.md");
        check_name("Numbers", "{\"a\": 1}", "Numbers.json");
        check_name("  ", "a", "00000001.md");
        check_name("Übersicht", "a", "Übersicht.md");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        check_name("../../etc/passwd", "a", "etc-passwd.md");
        check_name("/tmp/x.sh", "a", "tmp-x.sh");
        check_name("..", "a", "00000001.md");
        check_name("a\0b", "a", "a-b.md");
        check_name(&"x".repeat(500), "a", &format!("{}.md", "x".repeat(LONGEST)));
    }

    /// Names of the written files, each with its note.
    #[track_caller]
    fn check(folder: &Path, deliverables: &[(&str, &str)], expected: &[(&str, &str)]) {
        let deliverables: Vec<_> =
            deliverables.iter().map(|(title, content)| deliverable(title, content)).collect();
        let written = write(folder, &deliverables).unwrap();
        let told: Vec<(String, String)> = written
            .iter()
            .map(|one| {
                let name = one.path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                (name, one.note.clone().unwrap_or_default())
            })
            .collect();
        let told: Vec<(&str, &str)> = told.iter().map(|(name, note)| (&**name, &**note)).collect();
        assert_eq!(told, expected);
        for (one, deliverable) in written.iter().zip(&deliverables) {
            assert_eq!(fs::read_to_string(&one.path).unwrap(), deliverable.content);
        }
    }

    #[test]
    fn what_is_there_is_never_overwritten() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("out/of");
        check(
            &folder,
            &[("a", "one"), ("a", "two")],
            &[("a.md", ""), ("a-2.md", "a.md already exists and was not changed; written to a-2.md")],
        );
        check(&folder, &[("a", "one")], &[("a.md", "already exists with this content")]);
        check(
            &folder,
            &[("a", "three")],
            &[("a-3.md", "a.md already exists and was not changed; written to a-3.md")],
        );
        assert_eq!(fs::read_to_string(folder.join("a.md")).unwrap(), "one");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("new"), folder.path().join("a.md")).unwrap();
        let note = "a.md already exists and was not changed; written to a-2.md";
        check(folder.path(), &[("a", "one")], &[("a-2.md", note)]);
        assert!(!elsewhere.path().join("new").exists());
    }
}
