//! The written reasons for which a vector may be skipped.
//!
//! `[reasons]` holds each reason once under a short key. A runner skips with a key (for a feature
//! that many vectors use); a `[[vector]]` line skips one vector by kind and id with a key.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::Done;
use crate::verdict::Verdict;

/// The content of `skips.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skips {
    #[serde(default)]
    reasons: BTreeMap<String, String>,
    #[serde(default)]
    vector: Vec<Excused>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Excused {
    kind: String,
    id: String,
    reason: String,
}

impl Skips {
    /// Reads the file.
    pub(crate) fn load(path: &Path) -> Done<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        text.and_then(|text| Self::parse(&text)).map_err(|fault| format!("{}: {fault}", path.display()))
    }

    fn parse(text: &str) -> Done<Self> {
        let skips: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        match skips.vector.iter().find(|v| !skips.reasons.contains_key(&v.reason)) {
            Some(v) => Err(format!("[[vector]] `{}`: no `{}` in [reasons]", v.id, v.reason)),
            None => Ok(skips),
        }
    }

    /// The sentence behind a key.
    pub(crate) fn reason(&self, key: &str) -> Option<&str> {
        self.reasons.get(key).map(String::as_str)
    }

    /// The verdict that counts: an excused failure is a skip, an excuse that is no longer needed
    /// is a failure, and so is a skip for which no reason is written.
    pub(crate) fn settle(&self, kind: &str, id: &str, verdict: Verdict) -> Verdict {
        let excuse = self.vector.iter().find(|v| v.kind == kind && v.id == id).map(|v| &v.reason);
        match (verdict, excuse) {
            (Verdict::Passed, Some(key)) => Verdict::Failed(format!(
                "passes, but is still excused with `{key}`: remove it from skips.toml"
            )),
            (Verdict::Failed(_), Some(key)) => Verdict::Skipped(key.clone()),
            (Verdict::Skipped(key), _) if self.reason(&key).is_none() => {
                Verdict::Failed(format!("skipped for `{key}`, which has no line in [reasons] of skips.toml"))
            }
            (verdict, _) => verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [reasons]
        hooks = "hooks are not built yet"
        [[vector]]
        kind = "turn"
        id = "late"
        reason = "hooks"
    "#;

    #[track_caller]
    fn check(id: &str, verdict: Verdict, expected: Verdict) {
        assert_eq!(Skips::parse(FILE).unwrap().settle("turn", id, verdict), expected);
    }

    #[test]
    fn verdicts_without_an_excuse_stay() {
        check("x", Verdict::Passed, Verdict::Passed);
        check("x", Verdict::Failed("no".into()), Verdict::Failed("no".into()));
        check("x", Verdict::Skipped("hooks".into()), Verdict::Skipped("hooks".into()));
    }

    #[test]
    fn an_excuse_covers_a_failure_and_only_that() {
        check("late", Verdict::Failed("no".into()), Verdict::Skipped("hooks".into()));
        let stale = "passes, but is still excused with `hooks`: remove it from skips.toml";
        check("late", Verdict::Passed, Verdict::Failed(stale.into()));
    }

    #[test]
    fn a_skip_needs_a_written_reason() {
        let missing = "skipped for `mood`, which has no line in [reasons] of skips.toml";
        check("x", Verdict::Skipped("mood".into()), Verdict::Failed(missing.into()));
    }

    #[test]
    fn an_excuse_needs_a_written_reason() {
        let fault = Skips::parse("[[vector]]\nkind = 'k'\nid = 'i'\nreason = 'none'").unwrap_err();
        assert_eq!(fault, "[[vector]] `i`: no `none` in [reasons]");
    }

    #[test]
    fn the_shipped_file_is_valid() {
        Skips::load(&crate::own_directory().join("skips.toml")).unwrap();
    }
}
