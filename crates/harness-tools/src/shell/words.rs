//! Splitting a command line into words, without a shell.

use std::fmt;

/// Unsupported syntax in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotPlain {
    /// Name of the syntax.
    what: &'static str,
    /// The character it begins with, from 1.
    column: usize,
}

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.what, self.column)
    }
}

/// Reserved words of a shell at the start of a command.
const RESERVED: [&str; 26] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}", ".", "eval", "exec", "source", "alias",
];

/// The words of one plain command: a program and its arguments, as a POSIX shell would pass them on.
///
/// Words, blanks, single and double quotes, and the backslash are supported. All other syntax of a shell is
/// rejected: pipes, lists, redirections, substitutions, variables, patterns, braces, the tilde, comments,
/// assignments, line breaks, reserved words; in quotes only what a shell expands there. An accepted line
/// therefore means the same to a shell.
///
/// # Errors
/// The unsupported syntax and its position, or an empty line.
pub(crate) fn words(line: &str) -> Result<Vec<String>, NotPlain> {
    let mut reader = Reader { rest: line.chars().enumerate().peekable(), words: Vec::new(), word: None };
    while let Some((at, c)) = reader.rest.next() {
        let refused = |what| NotPlain { what, column: at + 1 };
        match c {
            ' ' | '\t' => reader.end_word(),
            '\'' => reader.single_quoted(at)?,
            '"' => reader.double_quoted(at)?,
            '\\' => reader.escaped(at)?,
            '=' if reader.words.is_empty() => return Err(refused("an assignment of a variable")),
            '~' if reader.word.is_none() => return Err(refused("a tilde")),
            '#' if reader.word.is_none() => return Err(refused("a comment")),
            c => match special(c) {
                Some(what) => return Err(refused(what)),
                None => reader.word.get_or_insert_default().push(c),
            },
        }
    }
    reader.end_word();
    match reader.words.first() {
        None => Err(NotPlain { what: "no command", column: 1 }),
        Some(first) if first.is_empty() => Err(NotPlain { what: "an empty name of a program", column: 1 }),
        Some(first) if RESERVED.contains(&&**first) => {
            Err(NotPlain { what: "a word that only a shell knows", column: 1 })
        }
        Some(_) => Ok(reader.words),
    }
}

struct Reader<'l> {
    rest: std::iter::Peekable<std::iter::Enumerate<std::str::Chars<'l>>>,
    words: Vec<String>,
    /// The word that is being read; quotes begin one even if nothing is in them.
    word: Option<String>,
}

impl Reader<'_> {
    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn single_quoted(&mut self, from: usize) -> Result<(), NotPlain> {
        let word = self.word.get_or_insert_default();
        for (at, c) in self.rest.by_ref() {
            match c {
                '\'' => return Ok(()),
                c if unprintable(c) => return Err(NotPlain { what: "a control character", column: at + 1 }),
                c => word.push(c),
            }
        }
        Err(NotPlain { what: "an open single quote", column: from + 1 })
    }

    fn double_quoted(&mut self, from: usize) -> Result<(), NotPlain> {
        let word = self.word.get_or_insert_default();
        while let Some((at, c)) = self.rest.next() {
            let refused = |what| Err(NotPlain { what, column: at + 1 });
            match c {
                '"' => return Ok(()),
                '\\' => match self.rest.next_if(|(_, next)| matches!(next, '"' | '\\' | '$' | '`')) {
                    Some((_, next)) => word.push(next),
                    None => word.push('\\'),
                },
                '$' | '`' => return refused("a substitution"),
                // An interactive shell would look into its history.
                '!' => return refused("an exclamation mark in double quotes"),
                c if unprintable(c) => return refused("a control character"),
                c => word.push(c),
            }
        }
        Err(NotPlain { what: "an open double quote", column: from + 1 })
    }

    fn escaped(&mut self, from: usize) -> Result<(), NotPlain> {
        match self.rest.next() {
            Some((_, c)) if !unprintable(c) => {
                self.word.get_or_insert_default().push(c);
                Ok(())
            }
            _ => Err(NotPlain { what: "a backslash before nothing that can be escaped", column: from + 1 }),
        }
    }
}

/// Meaning of a character with a special meaning in a shell.
fn special(c: char) -> Option<&'static str> {
    Some(match c {
        '|' => "a pipe",
        '&' | ';' => "a list of commands",
        '<' | '>' => "a redirection",
        '$' | '`' => "a substitution",
        '(' | ')' => "a subshell",
        '{' | '}' => "a brace",
        '*' | '?' | '[' | ']' => "a pattern",
        '!' => "an exclamation mark",
        '\n' | '\r' => "a line break",
        c if unprintable(c) => "a control character",
        _ => return None,
    })
}

/// Line breaks and NUL among them: a quoted line break is legal in a shell, and still no plain command.
fn unprintable(c: char) -> bool {
    c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(words(line), Ok(expected.iter().map(|word| (*word).to_owned()).collect()));
    }

    #[track_caller]
    fn refused(line: &str, expected: &str) {
        assert_eq!(words(line).map_err(|e| e.to_string()), Err(expected.to_owned()), "{line}");
    }

    #[test]
    fn plain_commands_are_split_as_a_shell_does() {
        check("ls", &["ls"]);
        check("  git  status\t--short ", &["git", "status", "--short"]);
        check(
            r#"grep -n 'a b|c;$(d)' "x \"y\" \$z \q" e\ f"#,
            &["grep", "-n", "a b|c;$(d)", r#"x "y" $z \q"#, "e f"],
        );
        check("printf '' \"\" x''y", &["printf", "", "", "xy"]);
        check("a --b=c d=e x~y x#y", &["a", "--b=c", "d=e", "x~y", "x#y"]);
        check(r"echo \$HOME \; \'", &["echo", "$HOME", ";", "'"]);
        check("git show HEAD^", &["git", "show", "HEAD^"]);
        check("echo größe €", &["echo", "größe", "€"]);
    }

    #[test]
    fn whatever_a_shell_does_more_is_refused() {
        refused("", "no command at character 1");
        refused(" \t", "no command at character 1");
        refused("ls | sh", "a pipe at character 4");
        refused("ls; rm x", "a list of commands at character 3");
        refused("ls && rm x", "a list of commands at character 4");
        refused("ls & rm x", "a list of commands at character 4");
        refused("ls > x", "a redirection at character 4");
        refused("cat <<EOF", "a redirection at character 5");
        refused("ls $(rm x)", "a substitution at character 4");
        refused("ls `rm x`", "a substitution at character 4");
        refused("ls $HOME", "a substitution at character 4");
        refused(r#"ls "$(rm x)""#, "a substitution at character 5");
        refused(r#"ls "`rm x`""#, "a substitution at character 5");
        refused("(ls)", "a subshell at character 1");
        refused("{ ls", "a brace at character 1");
        refused("ls {a,b}", "a brace at character 4");
        refused("ls *.rs", "a pattern at character 4");
        refused("ls [ab]", "a pattern at character 4");
        refused("ls ~", "a tilde at character 4");
        refused("ls # x", "a comment at character 4");
        refused("A=b ls", "an assignment of a variable at character 2");
        refused("ls\nrm x", "a line break at character 3");
        refused("ls 'a\nb'", "a control character at character 6");
        refused("ls \0", "a control character at character 4");
        refused("! ls", "an exclamation mark at character 1");
        refused("ls !!", "an exclamation mark at character 4");
        refused("ls 'a", "an open single quote at character 4");
        refused("ls \"a", "an open double quote at character 4");
        refused("ls \\", "a backslash before nothing that can be escaped at character 4");
        refused("if true", "a word that only a shell knows at character 1");
        refused("eval ls", "a word that only a shell knows at character 1");
        refused("''", "an empty name of a program at character 1");
    }
}
