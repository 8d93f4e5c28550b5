//! The YAML between two lines `---` at the beginning of a Markdown file.

use serde::de::DeserializeOwned;

/// The longest front matter that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Front matter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", self.place())]
#[non_exhaustive]
pub struct FrontMatterFault {
    /// The line in the file, from 1, where it is known.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl FrontMatterFault {
    fn new(problem: String) -> Self {
        Self { line: None, column: None, problem }
    }

    fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            _ => String::new(),
        }
    }
}

/// The front matter of a text, and what follows it. A text without one has the default, and is all body.
pub(crate) fn parse<T: DeserializeOwned + Default>(text: &str) -> Result<(T, &str), FrontMatterFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((yaml, body)) = split(text) else { return Ok((T::default(), text)) };
    if yaml.len() > MAX_BYTES {
        let (bytes, most) = (yaml.len(), MAX_BYTES);
        return Err(FrontMatterFault::new(format!(
            "the front matter has {bytes} bytes; at most {most} are read"
        )));
    }
    if yaml.trim().is_empty() {
        return Ok((T::default(), body));
    }
    serde_yaml::from_str(yaml).map(|front| (front, body)).map_err(|error| FrontMatterFault {
        // The line of the fence comes before those that the parser counts.
        line: error.location().map(|place| place.line() + 1),
        column: error.location().map(|place| place.column()),
        problem: without_place(&error.to_string()).to_owned(),
    })
}

/// What the parser says, without the place that it counts from the wrong line.
fn without_place(problem: &str) -> &str {
    problem.split_once(" at line ").map_or(problem, |(problem, _)| problem)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut from = 0;
    for line in inner.split_inclusive('\n') {
        let end = from + line.len();
        if line.trim_end() == "---" {
            return Some((inner.get(..from)?, inner.get(end..)?));
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn check(text: &str, front: &[(&str, &str)], body: &str) {
        let front = front.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse::<BTreeMap<String, String>>(text), Ok((front, body)));
    }

    #[test]
    fn front_matter_stands_between_two_fences_at_the_beginning() {
        check("---\na: b\n---\nbody\n", &[("a", "b")], "body\n");
        check("\u{feff}---\r\na: b\r\n---\r\nbody", &[("a", "b")], "body");
        check("---\n---\nbody", &[], "body");
        check("---\na: b\n---", &[("a", "b")], "");
        check("body\n---\na: b\n---\n", &[], "body\n---\na: b\n---\n");
        check("---\na: b\n", &[], "---\na: b\n");
    }

    #[test]
    fn a_fault_names_its_place_in_the_file() {
        let fault = parse::<BTreeMap<String, String>>("---\na: b\nc: [\n---\n").unwrap_err();
        assert_eq!(fault.line, Some(3));
    }

    #[test]
    fn long_front_matter_is_refused() {
        let text = format!("---\na: {}\n---\n", "b".repeat(MAX_BYTES));
        let fault = parse::<BTreeMap<String, String>>(&text).unwrap_err();
        assert_eq!(fault.to_string(), "the front matter has 65540 bytes; at most 65536 are read");
    }
}
