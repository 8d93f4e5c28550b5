//! Looking into the program texts that `sed`, `awk` and `tar` take as arguments.

/// Whether the words of an `awk` call hold nothing that writes or starts a program. `>` compares, too: what
/// could be either is refused.
pub(super) fn awk(arguments: &[String]) -> bool {
    const MARKS: [&str; 6] = ["system", "getline", "|", ">", "@", "extension"];
    !arguments.iter().any(|word| MARKS.iter().any(|mark| word.contains(mark)))
}

/// Whether the first word of a `tar` call, which may be options without a dash, starts no program.
pub(super) fn tar(arguments: &[String]) -> bool {
    arguments.first().is_none_or(|word| word.starts_with('-') || !word.contains(['I', 'F', 'P']))
}

/// Whether the scripts of a `sed` call are of commands that only print.
pub(super) fn sed(arguments: &[String]) -> bool {
    let mut scripts: Vec<&str> = Vec::new();
    let mut words = arguments.iter();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if !name.is_empty() && "expression".starts_with(name) {
                scripts.extend(value.or_else(|| words.next().map(String::as_str)));
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            if let Some((_, joined)) = letters.split_once('e') {
                let joined = Some(joined).filter(|joined| !joined.is_empty());
                scripts.extend(joined.or_else(|| words.next().map(String::as_str)));
            }
        } else {
            operands.push(word.as_str());
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    scripts.iter().all(|script| only_prints(script))
}

/// Whether a script of `sed` is understood as a whole, and holds no command that writes or starts anything.
fn only_prints(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '{', '}']);
        if rest.is_empty() {
            return true;
        }
        let Some(next) = command(rest) else { return false };
        rest = next;
    }
}

/// Rest of a script behind one command with its addresses.
fn command(script: &str) -> Option<&str> {
    let mut rest = address(script)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = address(second.trim_start().trim_start_matches(['+', '~']))?;
    }
    rest = rest.trim_start_matches([' ', '!']);
    let mut chars = rest.chars();
    let name = chars.next()?;
    let rest = chars.as_str();
    match name {
        '{' => Some(rest),
        'p' | 'd' | 'D' | 'P' | '=' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'x' | 'z' | 'F' => end(rest),
        'q' | 'Q' | 'l' => end(rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())),
        's' => end(parts(rest)?.trim_start_matches(|c: char| "gpiIMm".contains(c) || c.is_ascii_digit())),
        'y' => end(parts(rest)?),
        _ => None,
    }
}

/// Rest behind the end of a command.
fn end(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(' ');
    (rest.is_empty() || rest.starts_with([';', '}'])).then_some(rest)
}

/// Rest behind an optional address.
fn address(script: &str) -> Option<&str> {
    let script = script.trim_start();
    if let Some(rest) = script.strip_prefix('/') {
        return Some(piece(rest, '/')?.trim_start_matches(['I', 'M']));
    }
    let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$' || c == '~');
    Some(rest.trim_start_matches(' '))
}

/// Rest behind the two parts of a substitution.
fn parts(rest: &str) -> Option<&str> {
    let delimiter =
        rest.chars().next().filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | ' ' | ';' | '[' | ']'))?;
    piece(piece(rest.get(delimiter.len_utf8()..)?, delimiter)?, delimiter)
}

/// Rest behind a part and its delimiter. A bracket that is open at the delimiter is rejected, because
/// versions of `sed` interpret it differently.
fn piece(rest: &str, delimiter: char) -> Option<&str> {
    let (mut escaped, mut brackets) = (false, 0_usize);
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == delimiter => return (brackets == 0).then(|| rest.get(at + c.len_utf8()..)).flatten(),
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, prints: bool) {
        assert_eq!(only_prints(script), prints, "{script}");
    }

    #[test]
    fn scripts_that_only_print_are_understood() {
        for script in
            ["p", "1,20p", "/fn main/,/^}/p", "$d", "s/a/b/g", "s|a|b|2p; $!d", "1!G;h;$!d", "2q", "/a/{p;d}"]
        {
            check(script, true);
        }
    }

    #[test]
    fn scripts_that_write_or_start_programs_are_not() {
        for script in [
            "w /tmp/x",
            "1w x",
            "s/a/b/w x",
            "s/a/b/e",
            "s/a/b/ge",
            "e rm x",
            "1e",
            "W x",
            "p;w x",
            "/a/{w x",
            "r x",
            "s/[/]/w x/",
            "sxaxbxw y",
            "/a/I,/b/w x",
            "1~2w x",
            "$!w x",
            "a\\",
            "b",
            ":w",
            "s/a/b/;e id",
        ] {
            check(script, false);
        }
    }
}
