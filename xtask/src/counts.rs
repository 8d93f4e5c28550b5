//! Summing what test programs say about themselves.

use std::fmt;

/// Tests that passed and failed, over all test programs seen so far. Shows itself with the names of those that failed,
/// as the last lines of a long output are those that are read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TestCounts {
    passed: u64,
    failed: u64,
    names: Vec<String>,
}

impl TestCounts {
    /// Looks at one line of output.
    pub(crate) fn see(&mut self, line: &str) {
        let test = line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"));
        self.names.extend(test.map(|name| name.trim_end().to_owned()));
        if let Some((_, result)) = line.split_once("test result: ") {
            self.passed += number_before("passed", result);
            self.failed += number_before("failed", result);
        }
    }
}

fn number_before(word: &str, text: &str) -> u64 {
    let words: Vec<_> = text.split([' ', ';']).filter(|w| !w.is_empty()).collect();
    let found = words.iter().zip(words.iter().skip(1)).find(|(_, next)| **next == word);
    found.and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.names {
            writeln!(f, "failed: {name}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: &str) {
        let mut counts = TestCounts::default();
        for line in lines {
            counts.see(line);
        }
        assert_eq!(counts.to_string(), expected);
    }

    #[test]
    fn only_result_lines_count() {
        check(&["running 3 tests", "test 7 passed ... ok"], "0 passed, 0 failed");
    }

    #[test]
    fn tests_that_failed_are_named_before_the_sum() {
        let end = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        check(&["test a::b ... ok", "test a::c ... FAILED", end], "failed: a::c\n1 passed, 1 failed");
    }

    #[test]
    fn programs_add_up_with_and_without_colour() {
        check(
            &[
                "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
                "test result: \u{1b}[31mFAILED\u{1b}[m. 3 passed; 2 failed; 1 ignored; 0 measured; 5 filtered out",
            ],
            "15 passed, 2 failed",
        );
    }
}
