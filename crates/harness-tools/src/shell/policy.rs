//! Which commands may run.

use harness_core::display::shortened;

use super::hazards::{self, Named};
use super::words::{NotPlain, words};

/// Commands that a shell tool may run.
///
/// A rule of the allow list is the start of a command, word by word: `git` allows git, `git log` only that
/// subcommand, with any further words. A command line is split into words as by a shell, and run without a
/// shell. Anything but a plain command (a pipe, a list, a redirection, a substitution, a variable, a
/// pattern, …) is not allowed.
///
/// Names are compared as written: the rule `ls` does not allow `/bin/ls`.
///
/// # Options that write files or start programs
///
/// For well-known programs (`git`, `find`, `sort`, `tar`, `sed`, `awk`, `curl`, `python`, `xargs`, …), options
/// and arguments that write files or start programs are rejected: `git log --output=FILE`, `find -exec`,
/// `sort -o`, `sed -i`, `env PROGRAM`. They are allowed if the rule itself has them (`python -m pytest`) or
/// [`ShellPolicy::allowing_options`] names them. Abbreviated (`--outp`) and joined (`-io`) options are
/// recognized. [`ShellPolicy::any`] rejects none of them.
///
/// The list covers common cases, not every program: allow only commands that you would let a stranger run,
/// and keep the sandbox. The main purpose of a program is not rejected: `cp` copies, and `cargo` builds and
/// therefore runs the code of the project.
///
/// # Denied commands
///
/// A rule of [`ShellPolicy::denying`] is the start of a command, too. Its options match at any position:
/// `git log -p` denies `git log --stat -p`. This prevents mistakes but is not a security boundary, because
/// most commands have other spellings.
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
    /// Programs, and those of their options that are permitted although they write or start something.
    options: Vec<Vec<String>>,
}

/// Reason why a command is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShellRefusal {
    /// The line is more than a plain command, or none.
    #[error(
        "the command has {found}; only a plain command can be run: a program and its arguments, without pipes, \
         lists, redirections, substitutions, variables and patterns (quote them to mean them literally)"
    )]
    NotPlain {
        /// Unsupported syntax and its position.
        found: String,
    },
    /// No rule allows it.
    #[error("`{command}` is not allowed; allowed are {allowed}")]
    NotAllowed {
        /// The beginning of the command.
        command: String,
        /// Allowed commands.
        allowed: String,
    },
    /// It has an option or an argument that writes files or starts programs, and no rule names that.
    #[error(
        "`{option}` lets `{program}` write files or start programs, and no rule names it; \
         leave it out, or use another command"
    )]
    Hazard {
        /// Name of the program.
        program: String,
        /// The option, subcommand or argument.
        option: String,
    },
    /// A rule forbids it.
    #[error("`{rule}` is forbidden")]
    Denied {
        /// Matching rule.
        rule: String,
    },
}

/// Maximum number of rules in a message.
const SHOWN: usize = 30;

impl ShellPolicy {
    /// Every plain command.
    pub fn any() -> Self {
        Self { allowed: None, denied: Vec::new(), options: Vec::new() }
    }

    /// Allows only commands that start with one of these rules.
    ///
    /// # Errors
    /// [`ToolsError::ShellRule`](crate::ToolsError::ShellRule) if a rule is not a plain command.
    pub fn allowing(
        rules: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, crate::error::ToolsError> {
        Ok(Self { allowed: Some(read(rules)?), denied: Vec::new(), options: Vec::new() })
    }

    /// Denies commands that start with one of these rules. Options of a rule match at any position.
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

    /// Allows options that write files or start programs, such as `find -exec` or `git log --output`. A
    /// program without options allows all of its options.
    ///
    /// # Errors
    /// As [`ShellPolicy::allowing`].
    pub fn allowing_options(
        mut self,
        options: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, crate::error::ToolsError> {
        self.options.extend(read(options)?);
        Ok(self)
    }

    /// The words of a command line that may run.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self, line: &str) -> Result<Vec<String>, ShellRefusal> {
        let words = words(line).map_err(|found| ShellRefusal::NotPlain { found: found.to_string() })?;
        if let Some(rule) = self.denied.iter().find(|rule| denies(rule, &words)) {
            return Err(ShellRefusal::Denied { rule: rule.join(" ") });
        }
        let Some(allowed) = &self.allowed else { return Ok(words) };
        let rules: Vec<&Vec<String>> = allowed.iter().filter(|rule| words.starts_with(rule)).collect();
        if rules.is_empty() {
            let longest = allowed.iter().map(Vec::len).max().unwrap_or(1).max(1);
            let command =
                words.iter().take(longest).map(|word| shortened(word, 60)).collect::<Vec<_>>().join(" ");
            return Err(ShellRefusal::NotAllowed { command, allowed: describe(allowed) });
        }
        match hazards::hazard(&words, Named { rules: &rules, options: &self.options }) {
            Some((program, option)) => Err(ShellRefusal::Hazard { program, option: shortened(&option, 60) }),
            None => Ok(words),
        }
    }
}

/// Whether a rule refuses a command: by its first words, or by its program, subcommand and options.
fn denies(rule: &[String], words: &[String]) -> bool {
    let plain = rule.iter().take_while(|word| !word.starts_with('-')).count();
    let Some(((program, before), options)) =
        rule.split_at_checked(plain).and_then(|(before, options)| Some((before.split_first()?, options)))
    else {
        return false;
    };
    let Some((command, arguments)) = words.split_first() else { return false };
    let named = command == program || hazards::name_of(command) == program;
    named
        && arguments.starts_with(before)
        && options.iter().all(|option| hazards::has_option(arguments, option))
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

fn describe(rules: &[Vec<String>]) -> String {
    let shown: Vec<String> = rules.iter().take(SHOWN).map(|rule| rule.join(" ")).collect();
    match rules.len() - shown.len() {
        0 if shown.is_empty() => "no commands".to_owned(),
        0 => harness_diagnostics::suggest::list(&shown, "and"),
        more => format!("{} and {more} more", harness_diagnostics::suggest::list(&shown, "and")),
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

    #[track_caller]
    fn refused(rules: &str, options: &str, line: &str, expected: Option<&str>) {
        let policy = ShellPolicy::allowing(rules.split(", ")).unwrap();
        let policy = policy.allowing_options(options.split(", ").filter(|o| !o.is_empty())).unwrap();
        let found = match policy.check(line) {
            Ok(_) => None,
            Err(ShellRefusal::Hazard { option, .. }) => Some(option),
            Err(other) => panic!("{line}: {other}"),
        };
        assert_eq!(found.as_deref(), expected, "{line}");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one case after another")]
    fn fault_09_options_that_write_or_start_programs_are_refused() {
        const RULES: &str = "git, find, sort, tar, sed, awk, rg, uniq, tee, dd, curl, wget, ssh, python3, perl, \
                             bash, make, less, env, xargs, timeout, man, /usr/bin/git";
        for (line, option) in [
            ("git log -1 --format=x --output=/tmp/f", "--output"),
            ("git log --outp=/tmp/f", "--output"),
            ("git log -- --output=/tmp/f", "--output"),
            ("git -c core.pager=x log", "-c"),
            ("git -C /tmp/evil status", "-C"),
            ("git --git-dir=/tmp/evil status", "--git-dir"),
            ("git diff --ext-diff", "--ext-diff"),
            ("git fetch --upload-pa=x y", "--upload-pack"),
            ("git grep -nOvi x", "-O"),
            ("git grep --open-files=vi x", "--open-files-in-pager"),
            ("git rebase -x 'rm x' main", "-x"),
            ("git archive -o /tmp/x HEAD", "-o"),
            ("git difftool", "difftool"),
            ("git config core.fsmonitor x", "config"),
            ("/usr/bin/git log --output=x", "--output"),
            ("find . -name x -exec rm '{}' '+'", "-exec"),
            ("find . -delete", "-delete"),
            ("find . -fprint x", "-fprint"),
            ("find . -okdir x", "-okdir"),
            ("sort -o x y", "-o"),
            ("sort -rio x y", "-o"),
            ("sort -uox y", "-o"),
            ("sort --out=x y", "--output"),
            ("sort --compress-prog=x y", "--compress-program"),
            ("tar -xf a --to-command=sh", "--to-command"),
            ("tar -cIzstd -f a b", "-I"),
            ("tar cIf zstd a b", "cIf"),
            ("tar xf a --checkpoint-action=exec=sh", "--checkpoint-action"),
            ("sed -i s/a/b/ f", "-i"),
            ("sed -ni.bak p f", "-i"),
            ("sed --in-pl s/a/b/ f", "--in-place"),
            ("sed -n '1w /tmp/x' f", "-n"),
            ("sed s/a/b/e f", "s/a/b/e"),
            ("sed -f script f", "-f"),
            ("awk 'BEGIN { system(\"id\") }'", "BEGIN { system(\"id\") }"),
            ("awk '{ print > \"x\" }' f", "{ print > \"x\" }"),
            ("awk -f x", "-f"),
            ("rg --pre=sh x", "--pre"),
            ("uniq a b", "b"),
            ("tee notes.txt", "notes.txt"),
            ("dd if=a of=b", "of="),
            ("curl -sSo x http://h", "-o"),
            ("curl -O http://h/x", "-O"),
            ("curl -K x", "-K"),
            ("wget -qO x http://h", "-O"),
            ("ssh -oProxyCommand=sh host", "-o"),
            ("python3 -c 'import os'", "-c"),
            ("perl -ne 'x'", "-e"),
            ("perl -pi x", "-i"),
            ("bash -c ls", "-c"),
            ("make SHELL=sh", "="),
            ("less +x f", "+"),
            ("man -P sh ls", "-P"),
            ("env ls", "ls"),
            ("xargs rm", "rm"),
            ("timeout 5 git log --output=x", "5"),
        ] {
            refused(RULES, "", line, Some(option));
        }
        for line in [
            "git log -1 --format=x --stat -p -- src",
            "git log --oneline --text -C",
            "git diff --exit-code",
            "git commit -m x",
            "git status -sb",
            "find . -name x -newer y -print0",
            "sort -k2,2n -to -u y",
            "tar -tf a.tar",
            "tar xzf a.tar",
            "sed -n 1,20p f",
            "sed -ne 's/a/b/gp' -e '$d' f",
            "awk -F: '{ print $1 }' f",
            "rg -n --pretty x",
            "uniq -c a",
            "curl -sS -H 'a: o' http://h",
            "python3 tool.py -x",
            "make -j4 test",
            "env",
            "bash script.sh",
        ] {
            refused(RULES, "", line, None);
        }
    }

    #[test]
    fn fault_09_rules_name_what_they_permit() {
        refused("python3 -m pytest", "", "python3 -m pytest -q", None);
        refused("python3 -m pytest", "", "python3 -m pytest -c x", Some("-c"));
        refused("sed -i, sed", "", "sed -i s/a/b/ f", None);
        refused("sed -i, sed", "", "sed -n -i s/a/b/ f", Some("-i"));
        refused("git log", "git --output", "git log --outp=x", None);
        refused("git log", "git --output", "git log --ext-diff", Some("--ext-diff"));
        refused("find", "find", "find . -exec rm", None);
        refused("tee notes.txt", "", "tee notes.txt", None);
        refused("tee notes.txt", "", "tee notes.txt b", Some("b"));
        refused("timeout 5 git log", "", "timeout 5 git log -p", None);
        refused("timeout 5 git log", "", "timeout 5 git log --output=x", Some("--output"));
        assert!(ShellPolicy::any().check("find . -delete").is_ok());
    }

    #[test]
    fn fault_09_a_rule_refuses_options_wherever_they_are() {
        let policy =
            ShellPolicy::any().denying(["ls -R", "git log --patch", "find -delete", "git push"]).unwrap();
        for line in ["ls -lR /", "ls / -R", "git log --stat --pat", "find . -delete", "/usr/bin/git push x"] {
            assert!(matches!(policy.check(line), Err(ShellRefusal::Denied { .. })), "{line}");
        }
        for line in ["ls -l", "git log --stat", "find . -name x", "git pull"] {
            assert!(policy.check(line).is_ok(), "{line}");
        }
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
