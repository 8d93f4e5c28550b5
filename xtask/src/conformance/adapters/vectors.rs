//! Files with many vectors.

use std::path::Path;

use serde_json::Value;

use crate::conformance::Verdict;
use crate::conformance::turn::convert::{Done, list, text};
use crate::repo;

/// Judges every vector of a file, each under its name.
pub(super) fn each(path: &Path, check: impl Fn(&Value) -> Done<()>) -> Vec<(String, Verdict)> {
    match read(path) {
        Ok(file) => {
            let judged = |vector| (text(vector, "name").to_owned(), check(vector).into());
            list(&file, "vectors").iter().map(judged).collect()
        }
        Err(fault) => vec![(path.display().to_string(), Verdict::Failed(fault))],
    }
}

fn read(path: &Path) -> Done<Value> {
    let text = repo::read(path).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}
