//! Instruction templates, compiled once.

use std::ops::Range;
use std::sync::Arc;

use super::path::{ContextPath, Found};
use super::references::References;
use crate::error::Fault;
use crate::field::PathUse;
use crate::number::{is_white_space, push_number};
use crate::value::Value;

/// A text with placeholders such as `{{context.user.name}}`.
///
/// Placeholders are found and checked when the graph is built; rendering only copies text and
/// reads values.
#[derive(Clone, Debug)]
pub struct Template {
    text: Arc<str>,
    reads: Vec<Read>,
}

#[derive(Clone, Debug)]
struct Read {
    /// The bytes of the placeholder in the text.
    at: Range<usize>,
    path: ContextPath,
    optional: bool,
}

/// A template whose placeholders have well-formed paths that may not be declared.
pub(super) struct Scanned {
    text: Arc<str>,
    found: Vec<(Range<usize>, ContextPath)>,
    /// Whether all placeholders are valid.
    sound: bool,
}

impl Scanned {
    /// Finds all placeholders and checks the form of their paths.
    ///
    /// Each error goes to `report`, which ends the work or skips the placeholder.
    pub(super) fn new<E>(
        text: Arc<str>,
        agent: &str,
        mut report: impl FnMut(Fault) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut found = Vec::new();
        let mut sound = true;
        for Placeholder { at, path } in placeholders(&text) {
            let path = text.get(path).unwrap_or_default();
            match ContextPath::parse(path, || placeholder_use(agent, &text, &at)) {
                Ok(path) => found.push((at, path)),
                Err(fault) => {
                    report(fault)?;
                    sound = false;
                }
            }
        }
        Ok(Self { text, found, sound })
    }

    /// Checks that every path is declared; `None` if errors of the template were reported.
    pub(super) fn declare<E>(
        self,
        references: &References,
        agent: &str,
        mut report: impl FnMut(Fault) -> Result<(), E>,
    ) -> Result<Option<Template>, E> {
        let Self { text, found, mut sound } = self;
        let mut reads = Vec::with_capacity(found.len());
        for (at, path) in found {
            match references.declared(&path, || placeholder_use(agent, &text, &at)) {
                Ok(reference) => reads.push(Read { at, path, optional: reference.optional }),
                Err(fault) => {
                    report(fault)?;
                    sound = false;
                }
            }
        }
        Ok(sound.then_some(Template { text, reads }))
    }
}

fn placeholder_use(agent: &str, text: &str, at: &Range<usize>) -> PathUse {
    PathUse::Placeholder {
        agent: agent.to_owned(),
        text: text.get(at.clone()).unwrap_or_default().to_owned(),
    }
}

impl Template {
    /// The text as written.
    pub fn source(&self) -> &str {
        &self.text
    }

    /// The paths that the template reads, in order, repeats included.
    pub fn paths(&self) -> impl Iterator<Item = &ContextPath> {
        self.reads.iter().map(|read| &read.path)
    }

    /// Whether the text is the same in every context.
    pub fn is_constant(&self) -> bool {
        self.reads.is_empty()
    }

    /// The text with values in place of placeholders.
    pub(crate) fn render(&self, context: &Value) -> Result<Arc<str>, Fault> {
        if self.is_constant() {
            return Ok(Arc::clone(&self.text));
        }
        let mut out = String::with_capacity(self.text.len() + self.text.len() / 4);
        self.render_into(&mut out, context)?;
        Ok(out.into())
    }

    pub(crate) fn render_into(&self, out: &mut String, context: &Value) -> Result<(), Fault> {
        let mut from = 0;
        for Read { at, path, optional } in &self.reads {
            out.push_str(self.text.get(from..at.start).unwrap_or_default());
            from = at.end;
            match path.read(context) {
                Some(Found::Value(value)) => push_rendered(out, value),
                Some(Found::Length(length)) => out.push_str(&length.to_string()),
                None if *optional => {}
                None => return Err(Fault::ContextMissing { path: path.as_str().to_owned() }),
            }
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        Ok(())
    }
}

/// A value as text: strings as they are, numbers as ECMAScript prints them, the rest as JSON.
fn push_rendered(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => out.push_str(text),
        Value::Number(number) => push_number(out, *number),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => value.push_json(out),
    }
}

/// A placeholder in a text.
pub(crate) struct Placeholder {
    /// Its bytes, the braces included.
    pub(crate) at: Range<usize>,
    /// The bytes of the path as written.
    pub(crate) path: Range<usize>,
}

/// The placeholders of a text from left to right, whatever their paths.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = Placeholder> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let placeholder = next_placeholder(text, from)?;
        from = placeholder.at.end;
        Some(placeholder)
    })
}

const HEAD: &str = "context.";

/// The first match of `\{\{\s*context\.([^}]+?)\s*\}\}` at or after `from`.
fn next_placeholder(text: &str, mut from: usize) -> Option<Placeholder> {
    loop {
        let start = from + text.get(from..)?.find("{{")?;
        match placeholder_at(text, start) {
            Some(placeholder) => return Some(placeholder),
            None => from = start + 1,
        }
    }
}

fn placeholder_at(text: &str, start: usize) -> Option<Placeholder> {
    let after_braces = text.get(start + 2..)?;
    let named = after_braces.trim_start_matches(is_white_space).strip_prefix(HEAD)?;
    let path_start = text.len() - named.len();
    // The path holds no brace, so it ends at the first one, which must be the first of two.
    let length = named.find('}')?;
    if !named.get(length..)?.starts_with("}}") {
        return None;
    }
    let written = named.get(..length)?;
    let first = written.chars().next()?;
    let path = written.trim_end_matches(is_white_space);
    // The path has at least one character, even if that is white space.
    let path_length = path.len().max(first.len_utf8());
    Some(Placeholder { at: start..path_start + length + 2, path: path_start..path_start + path_length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<_> =
            placeholders(text).map(|Placeholder { at, path }| (&text[at], &text[path])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn placeholders_are_found() {
        check(
            "a {{context.x}} b {{ context.y.z\n}}",
            &[("{{context.x}}", "x"), ("{{ context.y.z\n}}", "y.z")],
        );
        check("{{{context.x}}}", &[("{{context.x}}", "x")]);
        check("{{context.  }}", &[("{{context.  }}", " ")]);
        check("{{\u{feff}\u{a0}context.x\u{3000}}}", &[("{{\u{feff}\u{a0}context.x\u{3000}}}", "x")]);
        check("{{context.a {{context.b}}", &[("{{context.a {{context.b}}", "a {{context.b")]);
    }

    #[test]
    fn texts_without_placeholders() {
        for text in
            ["{{context}}", "{{context.}}", "{{ctx.x}}", "{{context .x}}", "{{CONTEXT.x}}", "{context.x}"]
        {
            check(text, &[]);
        }
        check("{{context.x} }", &[]);
        check("{{\u{200b}context.x}}", &[]);
        check("{{context.x", &[]);
    }
}
