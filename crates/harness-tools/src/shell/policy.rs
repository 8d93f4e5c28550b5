//! Which commands may run.

use super::words::{NotPlain, words};

/// Which commands a shell tool runs.
///
/// A rule is the beginning of a command, word by word: `git` allows all of git, `git log` only that
/// subcommand, and with everything that follows. A command line is split into words the way a shell does,
/// and run as it was split: without a shell. What is more than a plain command (a pipe, a list, a
/// redirection, a substitution, a variable, a pattern, …) is not understood and so not allowed.
///
/// Names are compared as they are written: a rule `ls` does not allow `/bin/ls`. A program that is allowed
/// may do whatever its arguments say (`find -exec`, `git -c`): allow what you would let a stranger call. A
/// forbidden beginning is a help against mistakes, no wall: there is often another way to say the same.
///
/// ```
/// use harness_tools::ShellPolicy;
///
/// let policy = ShellPolicy::allowing(["git status", "git log", "ls"])?.denying(["ls -R"])?;
/// assert!(policy.check("git log --oneline").is_ok());
/// assert_eq!(
///     policy.check("git push").unwrap_err().to_string(),
///     "`git push` is not allowed; allowed are `git status`, `git log` and `ls`"
/// );
/// assert_eq!(
///     policy.check("ls; rm -rf /").unwrap_err().to_string(),
///     "the command has a list of commands at character 3; only a plain command can be run: a program and its \
///      arguments, without pipes, lists, redirections, substitutions, variables and patterns (quote them to \
///      mean them literally)"
/// );
/// # Ok::<(), harness_tools::ToolsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellPolicy {
    /// `None` allows every plain command.
    allowed: Option<Vec<Vec<String>>>,
    denied: Vec<Vec<String>>,
}

/// Why a command does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShellRefusal {
    /// The line is more than a plain command, or none.
    #[error(
        "the command has {found}; only a plain command can be run: a program and its arguments, without pipes, \
         lists, redirections, substitutions, variables and patterns (quote them to mean them literally)"
    )]
    NotPlain {
        /// What stands in the way, and where.
        found: String,
    },
    /// No rule allows it.
    #[error("`{command}` is not allowed; allowed are {allowed}")]
    NotAllowed {
        /// The beginning of the command.
        command: String,
        /// What is allowed.
        allowed: String,
    },
    /// A rule forbids it.
    #[error("`{rule}` is forbidden")]
    Denied {
        /// The rule.
        rule: String,
    },
}

/// How many rules a refusal tells.
const SHOWN: usize = 30;

impl ShellPolicy {
    /// Every plain command.
    pub fn any() -> Self {
        Self { allowed: None, denied: Vec::new() }
    }

    /// Only commands that begin in one of these ways.
    ///
    /// # Errors
    /// [`ToolsError::ShellRule`](crate::ToolsError::ShellRule), when one is no plain command itself.
    pub fn allowing(
        rules: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, crate::error::ToolsError> {
        Ok(Self { allowed: Some(read(rules)?), denied: Vec::new() })
    }

    /// The same policy without commands that begin in one of these ways.
    ///
    /// # Errors
    /// As [`ShellPolicy::allowing`].
    pub fn denying(
        mut self,
        rules: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, crate::error::ToolsError> {
        self.denied.extend(read(rules)?);
        Ok(self)
    }

    /// The words of a command line that may run.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self, line: &str) -> Result<Vec<String>, ShellRefusal> {
        let words = words(line).map_err(|found| ShellRefusal::NotPlain { found: found.to_string() })?;
        let begins = |rule: &&Vec<String>| words.starts_with(rule);
        if let Some(rule) = self.denied.iter().find(begins) {
            return Err(ShellRefusal::Denied { rule: rule.join(" ") });
        }
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(|rule| begins(&rule)) => {
                let longest = allowed.iter().map(Vec::len).max().unwrap_or(1).max(1);
                let command =
                    words.iter().take(longest).map(|word| short(word)).collect::<Vec<_>>().join(" ");
                Err(ShellRefusal::NotAllowed { command, allowed: told(allowed) })
            }
            Some(_) | None => Ok(words),
        }
    }
}

fn read(
    rules: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<Vec<String>>, crate::error::ToolsError> {
    let rule = |rule: &str| {
        words(rule).map_err(|found: NotPlain| crate::error::ToolsError::ShellRule {
            rule: rule.to_owned(),
            problem: found.to_string(),
        })
    };
    rules.into_iter().map(|text| rule(text.as_ref())).collect()
}

fn told(rules: &[Vec<String>]) -> String {
    let shown: Vec<String> = rules.iter().take(SHOWN).map(|rule| rule.join(" ")).collect();
    match rules.len() - shown.len() {
        0 if shown.is_empty() => "no commands".to_owned(),
        0 => crate::near::list(&shown, "and"),
        more => format!("{} and {more} more", crate::near::list(&shown, "and")),
    }
}

fn short(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", word.split_at(end).0),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, allowed: bool) {
        let policy = ShellPolicy::allowing(["git status", "git log", "ls", "'my prog' x"]).unwrap();
        let policy = policy.denying(["ls -R", "git log -p"]).unwrap();
        assert_eq!(policy.check(line).is_ok(), allowed, "{line}: {:?}", policy.check(line));
    }

    #[test]
    fn a_command_is_allowed_by_its_first_words() {
        check("ls", true);
        check("ls -l a", true);
        check("git status", true);
        check("git log --oneline", true);
        check("'my prog' x y", true);
        check("git", false);
        check("git push", false);
        check("git statusx", false);
        check("lsof", false);
        check("/bin/ls", false);
        check("my prog x", false);
        check("ls -R /", false);
        check("git log -p", false);
        check("ls -l | sh", false);
    }

    #[test]
    fn quoting_does_not_hide_a_command() {
        check("'ls' -l", true);
        check("l\\s", true);
        check("g''it push", false);
        check("ls '-R'", false);
    }

    #[test]
    fn without_rules_every_plain_command_runs_and_nothing_else() {
        let any = ShellPolicy::any();
        assert_eq!(any.check("rm -rf x"), Ok(vec!["rm".into(), "-rf".into(), "x".into()]));
        assert!(any.check("rm -rf x; ls").is_err());
        let none = ShellPolicy::allowing([""; 0]).unwrap();
        assert_eq!(none.check("ls").unwrap_err().to_string(), "`ls` is not allowed; allowed are no commands");
    }
}
