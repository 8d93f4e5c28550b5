//! Versions of programs.

use std::fmt;

/// A version of three numbers. What follows them (`-beta.1`) does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version([u64; 3]);

impl Version {
    /// Creates a version.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self([major, minor, patch])
    }

    /// Finds the first version in a text: `codex-cli 0.169.0`, `2.1.197 (Claude Code)`.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
            let mut numbers = word.split('.').map(str::parse);
            let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return None;
            };
            Some(Self([major, minor, patch]))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(Version::find(text).map(|version| version.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        check("2.1.197 (Claude Code)\n", Some("2.1.197"));
        check("codex-cli 0.169.0", Some("0.169.0"));
        check("v1.18.33-beta.1", Some("1.18.33"));
        check("GNU bash, version 5.2.15(1)-release (x86_64)", Some("5.2.15"));
    }

    #[test]
    fn what_is_none_is_none() {
        check("", None);
        check("1.2", None);
        check("command not found", None);
        check("99999999999999999999.1.1", None);
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert!(Version::new(0, 9, 0) < Version::new(0, 60, 0));
        assert!(Version::new(2, 0, 0) > Version::new(1, 99, 99));
    }
}
