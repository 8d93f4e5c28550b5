//! Vectors and where they are found.
//!
//! Three forms: a JSON file with one vector (`kind`, and its name in `id` or the file's own); a
//! JSON file with many (`kind`, and a list `vectors` or `cases` of objects with `id` or `name`); a
//! directory with `case.json` (named after the directory, whose other files belong to the case).

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Done;

/// The directory that holds overlays instead of vectors.
pub(crate) const OVERLAYS: &str = "overlays";

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The kind, which selects the drivers.
    pub(crate) kind: String,
    /// Its name among those of its kind.
    pub(crate) id: String,
    /// Its file, or the directory of its case.
    pub(crate) path: PathBuf,
    /// The content: inputs and expected values.
    pub(crate) value: Value,
    /// The content as JSON text, with key order and exact numbers.
    text: String,
    /// Whether its file calls it a case.
    is_case: bool,
    /// The fields beside the list in a file with many vectors.
    pub(crate) file: Arc<Value>,
}

impl Vector {
    /// Returns the kind, which selects the drivers.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name among those of its kind.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The vector as a type that says more than [`Value`].
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Done<T> {
        serde_json::from_str(&self.text).map_err(|error| error.to_string())
    }

    /// The name under which an overlay is found: cases of a file have the file's name before them.
    pub(crate) fn overlay_id(&self) -> String {
        let stem = self.path.file_stem().filter(|_| self.is_case).map(|stem| stem.to_string_lossy());
        stem.map_or_else(|| self.id.clone(), |stem| format!("{stem}#{}", self.id))
    }

    /// The vector with another content.
    pub(crate) fn with(&self, value: Value) -> Self {
        Self { text: value.to_string(), value, ..self.clone() }
    }

    /// Builds a vector for a test, without a file.
    #[cfg(test)]
    pub(crate) fn made(kind: &str, value: Value) -> Self {
        let id = ["id", "name"].iter().find_map(|key| value[*key].as_str()).unwrap_or("made").to_owned();
        let text = value.to_string();
        Self {
            kind: kind.to_owned(),
            id,
            path: PathBuf::new(),
            value,
            text,
            is_case: false,
            file: Arc::default(),
        }
    }

    /// A vector of the project's own.
    #[cfg(test)]
    #[track_caller]
    pub(crate) fn own(kind: &str, id: &str) -> Self {
        let found = below(&crate::own_directory()).unwrap();
        found.into_iter().find(|vector| vector.kind == kind && vector.id == id).unwrap()
    }
}

/// All vectors below `directory`, by path.
///
/// # Errors
/// An invalid vector file, or a directory without vectors.
pub(crate) fn below(directory: &Path) -> Done<Vec<Vector>> {
    if !directory.is_dir() {
        return Err(format!("no such directory: {}", directory.display()));
    }
    let absolute = directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut found = Vec::new();
    walk(&absolute, &mut found)?;
    if found.is_empty() {
        return Err(format!("no vectors below {}", directory.display()));
    }
    Ok(found)
}

fn walk(directory: &Path, found: &mut Vec<Vector>) -> Done<()> {
    let case = directory.join("case.json");
    if case.is_file() {
        return read(&case, directory, found);
    }
    let unreadable = |error| format!("{}: {error}", directory.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name() != Some(OsStr::new(OVERLAYS)) {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            read(&path, &path, found)?;
        }
    }
    Ok(())
}

/// The parts of a file that every kind has.
#[derive(Deserialize)]
struct Head<'t> {
    kind: String,
    id: Option<String>,
    #[serde(borrow)]
    vectors: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    cases: Option<Vec<&'t RawValue>>,
}

#[derive(Deserialize)]
struct Name {
    id: Option<String>,
    name: Option<String>,
}

fn read(file: &Path, path: &Path, found: &mut Vec<Vector>) -> Done<()> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    vectors(&text, path, found).map_err(|error| format!("{} is not a vector: {error}", file.display()))
}

fn vectors(text: &str, path: &Path, found: &mut Vec<Vector>) -> serde_json::Result<()> {
    let head: Head<'_> = serde_json::from_str(text)?;
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let own = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let vector = |id, value, text: &str, file| Vector {
        kind: head.kind.clone(),
        id,
        path: path.to_owned(),
        value,
        text: text.to_owned(),
        is_case: head.cases.is_some(),
        file,
    };
    let mut value: Value = serde_json::from_str(text)?;
    let Some(list) = head.vectors.as_ref().or(head.cases.as_ref()) else {
        found.push(vector(head.id.unwrap_or(own), value, text, Arc::default()));
        return Ok(());
    };
    if let Some(file) = value.as_object_mut() {
        file.retain(|key, _| key != "vectors" && key != "cases");
    }
    let file = Arc::new(value);
    for (text, at) in list.iter().zip(1..) {
        let Name { id, name } = serde_json::from_str(text.get())?;
        let id = id.or(name).unwrap_or_else(|| format!("{own}#{at}"));
        found.push(vector(id, serde_json::from_str(text.get())?, text.get(), Arc::clone(&file)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the files into an empty directory and lists what is found as `path kind id`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let directory = directory.path().canonicalize().unwrap();
        let lines: Vec<String> = match below(&directory) {
            Ok(found) => found.iter().map(|vector| line(vector, &directory)).collect(),
            Err(fault) => vec![fault.replace(&directory.display().to_string(), "DIR")],
        };
        assert_eq!(lines, expected);
    }

    fn line(vector: &Vector, directory: &Path) -> String {
        let path = vector.path.strip_prefix(directory).unwrap().display();
        format!("{path} {} {}", vector.kind, vector.id)
    }

    #[test]
    fn single_files_lists_and_case_directories_are_found() {
        check(
            &[
                ("b/two.json", r#"{"kind":"turn","id":"2nd"}"#),
                ("b/one.json", r#"{"kind":"turn"}"#),
                ("a/fn.json", r#"{"kind":"turn-fn","cases":[{"id":"x"},{"id":"y"}]}"#),
                ("c/list.json", r#"{"kind":"relay","source":"s","vectors":[{"name":"n"},{}]}"#),
                ("d/v1.5/case.json", r#"{"kind":"descriptor"}"#),
                ("d/v1.5/prompts/p.json", "not json"),
                ("overlays/turn.json", "no vector"),
                ("README.md", "no vector"),
            ],
            &[
                "a/fn.json turn-fn x",
                "a/fn.json turn-fn y",
                "b/one.json turn one",
                "b/two.json turn 2nd",
                "c/list.json relay n",
                "c/list.json relay list#2",
                "d/v1.5 descriptor v1.5",
            ],
        );
    }

    #[test]
    fn nothing_to_run_is_a_fault() {
        check(&[("notes.txt", "")], &["no vectors below DIR"]);
        assert!(below(Path::new("/nowhere/at/all")).unwrap_err().starts_with("no such directory"));
    }

    #[test]
    fn a_file_that_names_no_kind_is_a_fault() {
        check(
            &[("x.json", r#"{"id":"x"}"#)],
            &["DIR/x.json is not a vector: missing field `kind` at line 1 column 10"],
        );
    }
}
