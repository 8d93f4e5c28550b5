//! Proposed calls for approval: everything that would run, with hidden characters made visible.

use std::borrow::Cow;

use harness::core::display::is_hidden;
use harness::core::port::ProposedCall;
use harness::tools::ShellCommand;
use unicode_width::UnicodeWidthChar as _;

use super::harmless::counted;
use super::line::{Line, Look, Text};
use super::style::BOLD;

/// Maximum indentation levels; deeper nesting would leave the screen.
const DEEPEST_INDENT: usize = 8;

/// Maximum combining marks on a letter; more could hide it.
const MOST_MARKS: usize = 3;

/// Remaining text of a call: `300 characters in 4 lines are not shown yet`.
pub(crate) fn not_shown(characters: usize, lines: usize) -> String {
    let are = if characters == 1 { "is" } else { "are" };
    format!("{} in {} {are} not shown yet", counted(characters, "character"), counted(lines, "line"))
}

/// The text with hidden characters and unusual spaces as escapes: `\u{202e}`. Line ends and tabs are kept.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t' | ' '..='~');
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut marks = 0;
    for c in text.chars() {
        let is_mark = !is_hidden(c) && c.width() == Some(0);
        marks = if is_mark { marks + 1 } else { 0 };
        if is_plain(c) || !is_unseen(c) && marks <= MOST_MARKS {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is invisible beyond those that [`is_hidden`] knows: other spaces, blank letters and
/// variation selectors.
fn is_unseen(c: char) -> bool {
    is_hidden(c)
        || c.is_whitespace()
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}')
}

/// Rows of a call that needs approval: the command of a shell tool, or else the arguments.
pub(crate) fn proposed_rows(proposed: &ProposedCall, width: usize) -> Vec<Line> {
    let name = proposed.call.name.as_str();
    let command = ShellCommand::of(proposed).and_then(|command| command_rows(name, &command, width));
    command.unwrap_or_else(|| call_rows(name, proposed.call.arguments.text(), width))
}

/// Rows of a command: the program and its arguments quoted for a shell, and the directory. `None` if a character is not
/// visible, since an escape in quotes could be read as text.
fn command_rows(name: &str, command: &ShellCommand, width: usize) -> Option<Vec<Line>> {
    let quoted = |words: &[&str]| {
        let text = shlex::try_join(words.iter().copied()).ok()?;
        (visible(&text) == text && !text.contains(char::is_control)).then_some(text)
    };
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let mut head = Text::default();
    head.push(&visible(name).replace('\n', "\\n"), &Look::of(BOLD));
    let line = format!("$ {}", quoted(&words)?);
    let mut whole = head.clone();
    whole.push(&format!(" {line}"), &Look::default());
    let mut rows = if whole.widest() <= width {
        whole.chop(width)
    } else {
        let mut below = Text::default();
        below.push(&line, &Look::default());
        head.chop(width).into_iter().chain(below.chop(width)).collect()
    };
    if let Some(cwd) = &command.cwd {
        let mut place = Text::default();
        place.push(&format!("in {}", quoted(&[cwd])?), &Look::default());
        rows.extend(place.chop(width));
    }
    Some(rows)
}

/// Rows of a call: the tool and its arguments on one row if they fit, otherwise with the arguments below. The
/// arguments are the exact text that would run, not a parsed form of it.
pub(crate) fn call_rows(name: &str, arguments: &str, width: usize) -> Vec<Line> {
    let mut head = Text::default();
    head.push(&visible(name).replace('\n', "\\n"), &Look::of(BOLD));
    let mut whole = head.clone();
    whole.push(&format!(" {}", visible(arguments)), &Look::default());
    if whole.widest() <= width && !arguments.contains(['\n', '\t']) {
        return whole.chop(width);
    }
    let arguments = laid_out(arguments);
    let mut below = Text::default();
    for (number, line) in arguments.lines().enumerate() {
        if number > 0 {
            below.break_line();
        }
        below.push(&visible(line), &Look::default());
    }
    let mut rows = head.chop(width);
    rows.extend(below.chop(width));
    rows
}

/// JSON with one member or element per line. All characters except white space are kept, including repeated names
/// and excess digits.
fn laid_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut inside, mut escaped, mut opened) = (false, false, false);
    for c in json.chars() {
        if inside {
            (inside, escaped) = (c != '"' || escaped, c == '\\' && !escaped);
            out.push(c);
            continue;
        }
        if matches!(c, ' ' | '\n' | '\r' | '\t') {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        if opened != closes {
            // What was opened has content, or what has content is closed.
            break_line(&mut out, depth);
        }
        opened = false;
        match c {
            '{' | '[' => {
                out.push(c);
                depth += 1;
                opened = true;
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                inside = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth.min(DEEPEST_INDENT)));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::core::Json;
    use harness::core::message::ToolCall;
    use harness::core::tool::Tool as _;
    use harness::tools::{ShellPolicy, ShellTool};

    use super::*;

    fn rows(arguments: &str, width: usize) -> String {
        call_rows("pay", arguments, width).iter().map(|row| row.plain() + "\n").collect()
    }

    #[test]
    fn fault_01_what_is_not_seen_is_an_escape() {
        for c in
            "\u{1b}\u{9b}\u{202e}\u{2066}\u{200e}\u{61c}\u{200b}\u{2060}\u{feff}\u{e0041}\u{a0}\u{3164}\r"
                .chars()
        {
            assert_eq!(visible(&format!("a{c}b")), format!("a{}b", c.escape_unicode()), "{c:?}");
        }
        assert_eq!(visible("é 🙂 日本\n\te\u{301}"), "é 🙂 日本\n\te\u{301}");
        assert_eq!(visible("e\u{301}\u{301}\u{301}\u{301}"), "e\u{301}\u{301}\u{301}\\u{301}");
    }

    /// The rows of a call of the shell tool.
    fn shell(arguments: &str, width: usize) -> String {
        let tool = ShellTool::new(ShellPolicy::any(), ".");
        let call = ToolCall::new("c", "shell", Json::parse(arguments).unwrap());
        let proposed = ProposedCall::new(Arc::new(call), tool.def().clone(), "main".into(), 1);
        proposed_rows(&proposed, width).iter().map(|row| row.plain() + "\n").collect()
    }

    #[test]
    fn fault_01_a_command_is_shown_as_its_words_are_passed_on() {
        let check = |arguments: &str, expected: &str| assert_eq!(shell(arguments, 40), expected);
        check(r#"{"command":"cargo  test -p 'a'"}"#, "shell $ cargo test -p a\n");
        check(r#"{"command":"sh -c 'ls | wc -l'","cwd":"a b"}"#, "shell $ sh -c 'ls | wc -l'\nin 'a b'\n");
        check(r#"{"command":"echo größe \"it's\" ''"}"#, "shell $ echo 'größe' \"it's\" ''\n");
        let long = format!(r#"{{"command":"rm {}"}}"#, "x".repeat(50));
        check(&long, &format!("shell\n$ rm {}\n{}\n", "x".repeat(35), "x".repeat(15)));
    }

    #[test]
    fn fault_01_a_command_that_could_be_misread_is_shown_as_arguments() {
        let check = |arguments: &str| assert!(shell(arguments, 60).contains('{'), "{arguments}");
        check("{\"command\":\"echo \u{202e}x\"}");
        check(r#"{"command":"ls","command":"rm x"}"#);
        check(r#"{"command":"ls","more":1}"#);
        check(r#"{"command":"ls","cwd":"a\nb"}"#);
    }

    #[test]
    fn fault_01_a_call_is_laid_out_as_it_is_executed() {
        assert_eq!(rows("{}", 40), "pay {}\n");
        assert_eq!(rows(r#"{"to": "a"}"#, 40), "pay {\"to\": \"a\"}\n");
        assert_eq!(
            rows("{\"to\":\n\"a\\\" {,\",\"n\":[1]}", 40),
            "pay\n{\n  \"to\": \"a\\\" {,\",\n  \"n\": [\n    1\n  ]\n}\n"
        );
        let twice = r#"{"to":"alice","to":"attacker","cents":10000000000000000000000001,"x":[]}"#;
        assert_eq!(
            rows(twice, 40),
            "pay\n{\n  \"to\": \"alice\",\n  \"to\": \"attacker\",\n  \"cents\": 10000000000000000000000001,\n  \
             \"x\": []\n}\n"
        );
    }

    #[test]
    fn fault_01_no_part_of_a_long_call_is_left_out() {
        let note = "x".repeat(500) + "\u{202e}tail";
        let shown = rows(&format!(r#"{{"note":"{note}"}}"#), 20);
        assert!(shown.lines().all(|row| row.chars().count() <= 20), "{shown}");
        assert!(shown.replace('\n', "").contains(&("x".repeat(500) + "\\u{202e}tail")), "{shown}");
        let deep = rows(&("[".repeat(50) + &"]".repeat(50)), 30);
        assert_eq!(deep.matches('[').count(), 50, "{deep}");
    }
}
