//! Text of skills for a model.

use std::fmt::Write as _;

use super::Skill;

/// The text before the list.
const INTRODUCTION: &str = "The following skills provide specialized instructions for specific tasks. Use one \
     when the task matches its description.";

/// The list of visible skills; empty when there are none.
pub(super) fn listing(skills: &[Skill]) -> String {
    if skills.iter().all(|skill| skill.hidden) {
        return String::new();
    }
    let mut out = format!("{INTRODUCTION}\n\n<available_skills>");
    for skill in skills.iter().filter(|skill| !skill.hidden) {
        let (name, description) = (escaped(&skill.name), escaped(&skill.description));
        let _ = write!(
            out,
            "\n  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n  </skill>",
        );
    }
    out.push_str("\n</available_skills>");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A skill with its instructions, for a message or a tool's result.
pub(super) fn body(skill: &Skill) -> String {
    let name = quoted(&skill.name);
    let content = &skill.content;
    match &skill.location {
        None => format!("<skill name={name}>\n{content}\n</skill>"),
        Some(location) => {
            let folder = location.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let folder = if folder.is_empty() { "/" } else { folder };
            let location = quoted(location);
            format!(
                "<skill name={name} location={location}>\nReferences are relative to {folder}.\n\n{content}\n\
                 </skill>",
            )
        }
    }
}

/// A text in quotes, with the escapes of Go.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\u{7}' => write!(out, "\\a"),
            '\u{8}' => write!(out, "\\b"),
            '\u{b}' => write!(out, "\\v"),
            '\u{c}' => write!(out, "\\f"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            '\0'..'\u{20}' | '\u{7f}' => write!(out, "\\x{:02x}", u32::from(c)),
            c if is_invisible(c) && u32::from(c) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(c)),
            c if is_invisible(c) => write!(out, "\\U{:08x}", u32::from(c)),
            c => write!(out, "{c}"),
        };
    }
    out.push('"');
    out
}

fn is_invisible(c: char) -> bool {
    let formats = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0001}'..='\u{e007f}');
    c.is_control() || (c != ' ' && c.is_whitespace()) || formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(quoted(text), expected);
    }

    #[test]
    fn names_are_quoted_with_escapes_of_go() {
        check("plain é 三", "\"plain é 三\"");
        check("a\"b\\c", r#""a\"b\\c""#);
        check("\n\t\r\0\u{1b}\u{7f}", r#""\n\t\r\x00\x1b\x7f""#);
        check("a\u{a0}\u{200b}\u{e0041}", r#""a\u00a0\u200b\U000e0041""#);
    }
}
