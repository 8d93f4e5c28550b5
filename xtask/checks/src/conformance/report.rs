//! Counting verdicts and saying what came out.

use std::collections::BTreeMap;
use std::fmt;

use super::Verdict;
use super::skips::Skips;

/// Three numbers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Vectors that passed.
    pub(crate) passed: usize,
    /// Vectors that failed.
    pub(crate) failed: usize,
    /// Vectors that were not judged.
    pub(crate) skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The counts of all kinds, and why vectors were skipped.
#[derive(Debug, Default)]
pub(super) struct Report {
    kinds: BTreeMap<String, Kind>,
    verbose: bool,
}

#[derive(Debug, Default)]
struct Kind {
    counts: Counts,
    reasons: BTreeMap<String, usize>,
    unsupported: bool,
}

impl Report {
    /// An empty report; a verbose one has a line for every vector, not only for failures.
    pub(super) fn new(verbose: bool) -> Self {
        Self { kinds: BTreeMap::new(), verbose }
    }

    /// Counts vectors of a kind that nothing can judge.
    pub(super) fn unsupported(&mut self, kind: &str, vectors: usize) {
        let entry = self.kinds.entry(kind.to_owned()).or_default();
        entry.unsupported = true;
        entry.counts.skipped += vectors;
    }

    /// Counts one verdict and returns the line to print for it, if any.
    pub(super) fn add(&mut self, kind: &str, id: &str, verdict: Verdict) -> Option<String> {
        let entry = self.kinds.entry(kind.to_owned()).or_default();
        match verdict {
            Verdict::Passed => {
                entry.counts.passed += 1;
                self.verbose.then(|| format!("ok   {kind}/{id}"))
            }
            Verdict::Failed(difference) => {
                entry.counts.failed += 1;
                Some(format!("FAIL {kind}/{id}: {}", one_line(&difference)))
            }
            Verdict::Skipped(key) => {
                entry.counts.skipped += 1;
                let line = self.verbose.then(|| format!("skip {kind}/{id}: {key}"));
                *entry.reasons.entry(key).or_default() += 1;
                line
            }
        }
    }

    /// All kinds together.
    pub(super) fn total(&self) -> Counts {
        self.kinds.values().fold(Counts::default(), |sum, kind| Counts {
            passed: sum.passed + kind.counts.passed,
            failed: sum.failed + kind.counts.failed,
            skipped: sum.skipped + kind.counts.skipped,
        })
    }

    /// A line per kind with its counts, and below it why vectors were skipped.
    pub(super) fn summary(&self, skips: &Skips) -> String {
        let mut lines = Vec::new();
        for (name, kind) in &self.kinds {
            let note = if kind.unsupported { " (kind not supported yet)" } else { "" };
            lines.push(format!("{name}: {}{note}", kind.counts));
            for (key, count) in &kind.reasons {
                let reason = skips.reason(key).unwrap_or("no written reason");
                lines.push(format!("    {count} skipped for `{key}`: {reason}"));
            }
        }
        lines.join("\n")
    }
}

/// A difference may quote texts with line breaks; a failure is one line all the same.
fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_kind_and_names_reasons() {
        let mut report = Report::new(false);
        assert_eq!(report.add("turn", "a", Verdict::Passed), None);
        assert_eq!(report.add("turn", "b", Verdict::Skipped("hooks".into())), None);
        let failure = report.add("turn", "c", Verdict::Failed("expected x\ngot y".into()));
        assert_eq!(failure.unwrap(), "FAIL turn/c: expected x\\ngot y");
        report.unsupported("stall", 4);
        insta::assert_snapshot!(report.summary(&Skips::default()), @r"
        stall: 0 passed, 0 failed, 4 skipped (kind not supported yet)
        turn: 1 passed, 1 failed, 1 skipped
            1 skipped for `hooks`: no written reason
        ");
        assert_eq!(report.total().to_string(), "1 passed, 1 failed, 5 skipped");
    }

    #[test]
    fn a_verbose_report_has_a_line_for_every_vector() {
        let mut report = Report::new(true);
        assert_eq!(report.add("turn", "a", Verdict::Passed).unwrap(), "ok   turn/a");
        assert_eq!(report.add("turn", "b", Verdict::Skipped("hooks".into())).unwrap(), "skip turn/b: hooks");
    }
}
