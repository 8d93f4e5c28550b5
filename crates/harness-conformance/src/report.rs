//! Counts and reports of verdicts.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use crate::Done;
use crate::runner::Suite;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Selection and verbosity: the command line of `cargo xtask conformance`.
#[derive(Clone, Debug, Default, clap::Parser)]
#[command(name = "cargo xtask conformance", about = "Run every golden vector below the given directories")]
#[non_exhaustive]
pub struct Selection {
    /// Directories with vectors; the project's own when absent.
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Only vectors of this kind.
    #[arg(long)]
    pub kind: Option<String>,
    /// Only the vector with this id.
    #[arg(long = "only", value_name = "ID")]
    pub id: Option<String>,
    /// A line for every vector, not only for failures.
    #[arg(long)]
    pub verbose: bool,
}

impl Selection {
    fn selects(&self, Vector { kind, id, .. }: &Vector) -> bool {
        self.kind.as_ref().is_none_or(|only| only == kind) && self.id.as_ref().is_none_or(|only| only == id)
    }
}

/// Runs the selection and writes the results: a line for every failure, the counts of each kind, and the
/// counts of all in the last line. Whether nothing failed.
///
/// # Errors
/// A file that cannot be read, a selection without vectors, output that cannot be written.
pub fn run(selection: &Selection, out: &mut impl Write) -> Done<bool> {
    let own = [crate::own_directory()];
    let directories =
        if selection.directories.is_empty() { &own[..] } else { selection.directories.as_slice() };
    let unwritten = |error: std::io::Error| format!("output: {error}");
    let mut report = Report::default();
    for directory in directories {
        let suite = Suite::below(directory)?;
        for stray in suite.strays() {
            report.strays += 1;
            writeln!(out, "FAIL {stray}").map_err(unwritten)?;
        }
        for vector in suite.vectors().iter().filter(|vector| selection.selects(vector)) {
            let verdict = suite.judge(vector);
            if let Some(line) = line(vector, &verdict, selection.verbose) {
                writeln!(out, "{line}").map_err(unwritten)?;
            }
            report.add(&suite, vector, &verdict);
        }
    }
    let total = report.total();
    if total == Counts::default() {
        return Err("no vector is selected".to_owned());
    }
    writeln!(out, "{}{total}", report.summary()).map_err(unwritten)?;
    Ok(total.failed == 0)
}

/// The report line of one vector. `None` if it is not listed.
fn line(Vector { kind, id, .. }: &Vector, verdict: &Verdict, verbose: bool) -> Option<String> {
    match verdict {
        Verdict::Failed(difference) => Some(format!("FAIL {kind}/{id}: {}", one_line(difference))),
        Verdict::Passed => verbose.then(|| format!("ok   {kind}/{id}")),
        Verdict::Skipped(difference) => {
            verbose.then(|| format!("skip {kind}/{id}: {}", one_line(difference)))
        }
    }
}

/// A difference may quote texts with line breaks; a failure is one line all the same.
fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', "\\n").replace('\r', "\\r")
}

/// Three numbers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The counts of all kinds, why vectors were skipped, and by which rules they differ.
#[derive(Debug, Default)]
struct Report {
    kinds: BTreeMap<String, Kind>,
    strays: usize,
}

#[derive(Debug, Default)]
struct Kind {
    counts: Counts,
    /// How many, by what is said of them.
    notes: BTreeMap<String, usize>,
}

impl Report {
    fn add(&mut self, suite: &Suite, vector: &Vector, verdict: &Verdict) {
        let Kind { counts, notes } = self.kinds.entry(vector.kind.clone()).or_default();
        match verdict {
            Verdict::Passed => counts.passed += 1,
            Verdict::Failed(_) => counts.failed += 1,
            Verdict::Skipped(_) => counts.skipped += 1,
        }
        if let Some(rule) = suite.rule(vector) {
            let sentence = suite.overlays.rule(&vector.kind, rule).unwrap_or_default();
            *notes.entry(format!("differ by rule `{rule}`: {sentence}")).or_default() += 1;
        }
    }

    fn total(&self) -> Counts {
        let of_strays = Counts { failed: self.strays, ..Counts::default() };
        self.kinds.values().fold(of_strays, |sum, kind| Counts {
            passed: sum.passed + kind.counts.passed,
            failed: sum.failed + kind.counts.failed,
            skipped: sum.skipped + kind.counts.skipped,
        })
    }

    /// A line per kind with its counts, and below it what is said of its vectors.
    fn summary(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (name, kind) in &self.kinds {
            let _ = writeln!(text, "{name}: {}", kind.counts);
            for (note, count) in &kind.notes {
                let _ = writeln!(text, "    {count} {note}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn template(id: &str, expected: &str) -> Value {
        let input = json!({ "content": "say $1", "args": ["hello"] });
        json!({ "kind": "prompt-template", "id": id, "input": input, "expect": { "text": expected } })
    }

    /// The report on two vectors, one with an overlay and one that fails, and on a stray overlay.
    fn written(verbose: bool, id: Option<&str>) -> Done<String> {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, value: Value| {
            std::fs::write(directory.path().join(name), value.to_string()).unwrap();
        };
        std::fs::create_dir(directory.path().join("overlays")).unwrap();
        write("a.json", template("a", "say hallo"));
        write("b.json", template("b", "say\nbye"));
        let one = |id: &str| json!({ "id": id, "rule": "hello", "reason": "so", "ours": { "/expect/text": "say hello" } });
        let rules = json!({ "hello": "We say hello." });
        let vectors = [one("a"), one("c")];
        write(
            "overlays/templates.json",
            json!({ "version": 1, "kind": "prompt-template", "rules": rules, "vectors": vectors }),
        );
        let directories = vec![directory.path().to_owned()];
        let selection = Selection { directories, kind: None, id: id.map(str::to_owned), verbose };
        let mut out = Vec::new();
        run(&selection, &mut out).map(|_| String::from_utf8(out).unwrap())
    }

    #[test]
    fn failures_have_a_line_and_rules_are_counted() {
        insta::assert_snapshot!(written(false, None).unwrap(), @r#"
        FAIL an overlay of kind `prompt-template` names no vector: `c`
        FAIL prompt-template/b: expect.text: expected "say\nbye", got "say hello"
        prompt-template: 1 passed, 1 failed, 0 skipped
            1 differ by rule `hello`: We say hello.
        1 passed, 2 failed, 0 skipped
        "#);
    }

    #[test]
    fn a_selection_without_vectors_is_a_fault() {
        let nothing = Selection { kind: Some("mood".to_owned()), ..Selection::default() };
        assert_eq!(run(&nothing, &mut Vec::new()), Err("no vector is selected".to_owned()));
    }

    #[test]
    fn a_verbose_report_has_a_line_for_every_vector() {
        insta::assert_snapshot!(written(true, Some("a")).unwrap(), @"
        FAIL an overlay of kind `prompt-template` names no vector: `c`
        ok   prompt-template/a
        prompt-template: 1 passed, 0 failed, 0 skipped
            1 differ by rule `hello`: We say hello.
        1 passed, 1 failed, 0 skipped
        ");
    }
}
