//! Files that hold one vector.

use std::path::Path;

use serde_json::Value;

use super::Verdict;
use super::turn::convert::{Done, text};
use xtask::repo;

/// Judges the one vector of a file, under its id.
pub(super) fn judged(path: &Path, check: impl Fn(&Value) -> Done<()>) -> Vec<(String, Verdict)> {
    match read(path) {
        Ok(vector) => vec![(text(&vector, "id").to_owned(), check(&vector).into())],
        Err(fault) => vec![(path.display().to_string(), Verdict::Failed(fault))],
    }
}

fn read(path: &Path) -> Done<Value> {
    let text = repo::read(path).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}
