//! Finding vectors below a folder.
//!
//! Three forms: a JSON file with one vector (`kind`, and its name in `id` or the file's own); a
//! JSON file with many (`kind`, and a list `vectors` or `cases` of objects with `id` or `name`); a
//! folder with `case.json` (named after the folder, whose other files belong to the case).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use xtask::fault::{Fault, Result};
use xtask::repo::{read, shown};

/// A file or case folder, with the vectors it holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The file, or the case folder.
    pub(super) path: PathBuf,
    /// The kind of all its vectors.
    pub(super) kind: String,
    /// The names of its vectors, in order.
    pub(super) ids: Vec<String>,
}

/// All vectors below `folder`, sorted by path, which is absolute; none at all is a fault.
pub(super) fn below(folder: &Path) -> Result<Vec<Found>> {
    if !folder.is_dir() {
        return Err(Fault::new(format!("no such folder: {}", shown(folder))));
    }
    let absolute = folder.canonicalize().map_err(|e| Fault::because(shown(folder), e))?;
    let mut found = Vec::new();
    walk(&absolute, &mut found)?;
    if found.is_empty() {
        return Err(Fault::new(format!("no vectors below {}", shown(folder))));
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<Found>) -> Result<()> {
    let case = folder.join("case.json");
    if case.is_file() {
        found.push(read_vectors(&case, folder)?);
        return Ok(());
    }
    let unreadable = |e| Fault::because(shown(folder), e);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(read_vectors(&path, &path)?);
        }
    }
    Ok(())
}

/// The parts of a vector file that every kind has.
#[derive(Deserialize)]
struct Head {
    kind: String,
    id: Option<String>,
    vectors: Option<Vec<Name>>,
    cases: Option<Vec<Name>>,
}

#[derive(Deserialize)]
struct Name {
    id: Option<String>,
    name: Option<String>,
}

fn read_vectors(file: &Path, path: &Path) -> Result<Found> {
    let head: Head = serde_json::from_str(&read(file)?)
        .map_err(|e| Fault::because(format!("{} is not a vector", shown(file)), e))?;
    let name = if path == file { path.file_stem() } else { path.file_name() };
    let own = || name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ids = match head.vectors.or(head.cases) {
        None => vec![head.id.unwrap_or_else(own)],
        Some(names) => {
            let numbered = names.into_iter().zip(1..);
            numbered.map(|(n, at)| n.id.or(n.name).unwrap_or_else(|| format!("{}#{at}", own()))).collect()
        }
    };
    Ok(Found { path: path.to_path_buf(), kind: head.kind, ids })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the files into an empty folder and lists what is found as `path kind id,id`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let folder = folder.path().canonicalize().unwrap();
        let lines = match below(&folder) {
            Ok(found) => found.iter().map(|f| line(f, &folder)).collect(),
            Err(fault) => vec![fault.to_string().replace(&folder.display().to_string(), "DIR")],
        };
        assert_eq!(lines, expected);
    }

    fn line(found: &Found, folder: &Path) -> String {
        let path = found.path.strip_prefix(folder).unwrap().display();
        format!("{path} {} {}", found.kind, found.ids.join(","))
    }

    #[test]
    fn finds_single_files_lists_and_case_folders() {
        check(
            &[
                ("b/two.json", r#"{"kind":"turn","id":"2nd"}"#),
                ("b/one.json", r#"{"kind":"turn"}"#),
                ("a/fn.json", r#"{"kind":"turn-fn","cases":[{"id":"x"},{"id":"y"}]}"#),
                ("c/list.json", r#"{"kind":"relay","source":"s","vectors":[{"name":"n"},{}]}"#),
                ("d/v1.5/case.json", r#"{"kind":"descriptor"}"#),
                ("d/v1.5/prompts/p.json", "not json"),
                ("README.md", "no vector"),
            ],
            &[
                "a/fn.json turn-fn x,y",
                "b/one.json turn one",
                "b/two.json turn 2nd",
                "c/list.json relay n,list#2",
                "d/v1.5 descriptor v1.5",
            ],
        );
    }

    #[test]
    fn nothing_to_run_is_a_fault() {
        check(&[("notes.txt", "")], &["no vectors below DIR"]);
        assert!(below(Path::new("/nowhere/at/all")).unwrap_err().to_string().starts_with("no such folder"));
    }

    #[test]
    fn a_file_that_names_no_kind_is_a_fault() {
        check(
            &[("x.json", r#"{"id":"x"}"#)],
            &["DIR/x.json is not a vector: missing field `kind` at line 1 column 10"],
        );
    }
}
