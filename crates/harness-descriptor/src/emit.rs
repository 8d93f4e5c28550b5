//! Values as YAML text that reads back as the same values.
//!
//! A string is plain only if no reader of YAML 1.1 or 1.2 would read it as something else. Texts of
//! several lines are literal blocks, and everything doubtful is quoted.

use std::fmt::Write as _;

use crate::canonical::for_each_json_piece;
use crate::number::push_number;
use crate::value::{Map, Value};

/// Maximum width of a list of plain words on one line.
const FLOW_WIDTH: usize = 76;
/// Longer keys need the explicit form: YAML ends an implicit key after 1024 characters.
const LONGEST_IMPLICIT_KEY: usize = 250;

impl Value {
    /// The value as YAML, in block form, with a line end at its end.
    ///
    /// Reading it with this crate gives an equal value: a descriptor that is written with it has
    /// the hash of the original. Dates have become strings, as in
    /// [`Descriptor::to_value`](crate::Descriptor::to_value).
    ///
    /// ```
    /// use harness_descriptor::load_text;
    ///
    /// let descriptor = load_text("{ runtime: { entry_agent: a }, agents: { a: { model: 'yes' } } }")?;
    /// let yaml = descriptor.to_value().to_yaml();
    /// assert_eq!(yaml, "runtime:\n  entry_agent: a\nagents:\n  a:\n    model: \"yes\"\n");
    /// assert_eq!(load_text(&yaml)?.hash(), descriptor.hash());
    /// # Ok::<(), harness_descriptor::DescriptorError>(())
    /// ```
    pub fn to_yaml(&self) -> String {
        let mut emitter = Emitter { out: String::new() };
        match inline(self) {
            Some(text) => emitter.out.push_str(&text),
            // A block must be indented below something, so a text alone stands in quotes.
            None if self.as_str().is_some() => {
                push_quoted(&mut emitter.out, self.as_str().unwrap_or_default());
            }
            None => emitter.block(self, 0),
        }
        if !emitter.out.ends_with('\n') {
            emitter.out.push('\n');
        }
        emitter.out
    }
}

struct Emitter {
    out: String,
}

impl Emitter {
    /// Begins a line.
    fn line(&mut self, indent: usize) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Writes a nonempty list or mapping at the current position; further lines are indented.
    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.line(indent);
                    }
                    self.out.push('-');
                    self.item(item, indent);
                }
            }
            Value::Map(map) => self.map(map, indent),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn map(&mut self, map: &Map, indent: usize) {
        for (at, (key, value)) in map.iter().enumerate() {
            if at > 0 {
                self.line(indent);
            }
            let key = key_text(key);
            if key.len() > LONGEST_IMPLICIT_KEY {
                self.out.push_str("? ");
                self.out.push_str(&key);
                self.line(indent);
            } else {
                self.out.push_str(&key);
            }
            self.out.push(':');
            self.value(value, indent);
        }
    }

    /// The value of a key: on the same line, or below.
    fn value(&mut self, value: &Value, indent: usize) {
        if !self.short(value, indent) {
            self.line(indent + 2);
            self.block(value, indent + 2);
        }
    }

    /// An item after its dash: lists and mappings begin on the same line.
    fn item(&mut self, value: &Value, indent: usize) {
        if !self.short(value, indent) {
            self.out.push(' ');
            self.block(value, indent + 2);
        }
    }

    /// Writes a value that needs no block, or a literal block of text.
    fn short(&mut self, value: &Value, indent: usize) -> bool {
        if let Some(text) = inline(value) {
            self.out.push(' ');
            self.out.push_str(&text);
            return true;
        }
        let Some(text) = value.as_str() else { return false };
        let (body, chomping) = match text.strip_suffix('\n') {
            None => (text, "-"),
            Some(body) if body.ends_with('\n') => (body, "+"),
            Some(body) => (body, ""),
        };
        self.out.push_str(" |");
        self.out.push_str(chomping);
        for line in body.split('\n') {
            self.out.push('\n');
            if !line.is_empty() {
                self.out.extend(std::iter::repeat_n(' ', indent + 2));
                self.out.push_str(line);
            }
        }
        // The line end that the chomping keeps is there also where the last line is empty.
        self.out.push('\n');
        true
    }
}

/// The value on one line, if it fits there.
fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_text(*number),
        Value::String(text) if is_literal(text) => return None,
        Value::String(text) if is_plain(text) => text.to_string(),
        Value::String(text) => {
            let mut out = String::new();
            push_quoted(&mut out, text);
            out
        }
        Value::List(items) if items.is_empty() => "[]".to_owned(),
        Value::Map(map) if map.is_empty() => "{}".to_owned(),
        Value::List(items) => {
            let words = items.iter().map(|item| item.as_str().filter(|text| is_word(text)));
            let words: Option<Vec<&str>> = words.collect();
            let line = format!("[{}]", words?.join(", "));
            return (line.len() <= FLOW_WIDTH).then_some(line);
        }
        Value::Map(_) => return None,
    })
}

fn number_text(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let mut out = String::new();
    push_number(&mut out, number);
    out
}

fn key_text(key: &str) -> String {
    if is_word(key) || is_plain(key) && !key.contains([' ', '"', '{', '[']) {
        return key.to_owned();
    }
    let mut out = String::new();
    push_quoted(&mut out, key);
    out
}

/// A word that means itself everywhere, also inside `[…]`.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !means_something_else(text)
}

/// A text of one line that means itself after `key: ` or `- `.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(|c| c == ' ' || is_visible(c))
        && !means_something_else(text)
}

/// Words that some reader takes for null, a boolean or a number.
fn means_something_else(text: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A text of several lines that a literal block holds as it is.
fn is_literal(text: &str) -> bool {
    let mut lines = text.split('\n');
    // Spaces before the first word would be taken for the indentation.
    let first = lines.next().is_some_and(|line| line.starts_with(|c: char| c != ' ' && c != '\t'));
    let is_blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    first
        && text.contains('\n')
        && text.chars().all(|c| matches!(c, ' ' | '\n') || is_visible(c))
        && !text.split('\n').any(is_blank)
}

/// A character that every reader passes on as it is, white space excepted.
fn is_visible(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && !matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for_each_json_piece(text, |piece| {
        for c in piece.chars() {
            let raw = c == ' ' || is_visible(c);
            if raw {
                out.push(c);
            } else {
                // JSON's own escapes hold no such character; these are all below U+10000.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
        }
    });
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_text;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(value.to_yaml(), expected);
    }

    #[test]
    fn mappings_and_lists_stand_in_blocks() {
        check(
            r#"{"a":{"b":[1,"x y"],"c":[]},"d":[{"e":1,"f":{"g":null}},[true,[2]]],"h":{}}"#,
            "\
a:
  b:
    - 1
    - x y
  c: []
d:
  - e: 1
    f:
      g: null
  - - true
    - - 2
h: {}
",
        );
        check(r#"{"tools":["find","look-up"]}"#, "tools: [find, look-up]\n");
        check("\"a\\nb\"", "\"a\\nb\"\n");
        check("[]", "[]\n");
    }

    #[test]
    fn texts_of_several_lines_are_blocks() {
        check(
            r#"{"a":"x\n\n y","b":"x\n","c":"x\n\n","d":[" x\ny","x\n  \ny","x\r\ny"]}"#,
            "a: |-\n  x\n\n   y\nb: |\n  x\nc: |+\n  x\n\nd:\n  - \" x\\ny\"\n  - \"x\\n  \\ny\"\n  - \"x\\r\\ny\"\n",
        );
    }

    #[test]
    fn what_could_be_misread_stands_in_quotes() {
        check(
            r#"{"yes":"no","1":"1","<<":"~","a b":"Hi: you","c":"Hi {{context.x}} #1","d":"x #1","e":"\u007f\u2028"}"#,
            "\"1\": \"1\"\n\"yes\": \"no\"\n\"<<\": \"~\"\n\"a b\": \"Hi: you\"\nc: \"Hi {{context.x}} #1\"\nd: \
             \"x #1\"\ne: \"\\u007f\\u2028\"\n",
        );
    }

    #[test]
    fn numbers_keep_their_value() {
        let list = [1.0, -0.5, 1e21, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let value = Value::List(list.iter().map(|number| Value::Number(*number)).collect());
        assert_eq!(value.to_yaml(), "- 1\n- -0.5\n- 1e+21\n- 5e-324\n- .nan\n- .inf\n- -.inf\n");
    }

    #[test]
    fn long_keys_have_the_explicit_form() {
        let key = "k".repeat(2000);
        let yaml = format!("{{ ? {key} : {{ a: 1 }}, b: 2 }}");
        let value = load_text(&yaml).unwrap().to_value();
        assert_eq!(value.to_yaml(), format!("? {key}\n:\n  a: 1\nb: 2\n"));
        assert_eq!(load_text(value.to_yaml()).unwrap().to_value(), value);
    }
}
