//! JSON laid out for people and models.

use super::json::{Json, string_end};

/// Depth beyond which values are written on one line: indentation grows with the square of the depth.
const DEEPEST: usize = 64;

impl Json {
    /// Returns the value indented by two spaces; `None` if it is longer than `most` bytes. `depth` is the depth of the
    /// first line's value.
    ///
    /// Numbers, the order of keys and repeated keys are kept, strings have no needless escapes, and empty lists and objects
    /// are on one line, as is what is nested more than 64 levels deep.
    ///
    /// ```
    /// use harness_core::Json;
    ///
    /// let value = Json::parse(r#"{"b":1.10,"a":[]}"#)?;
    /// assert_eq!(value.indented(0, 100).as_deref(), Some("{\n  \"b\": 1.10,\n  \"a\": []\n}"));
    /// assert_eq!(value.indented(0, 10), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn indented(&self, depth: usize, most: usize) -> Option<String> {
        self.laid_out(Indented { text: String::new(), depth, most }, plain)
    }

    /// Like [`Self::indented`] without bound, with strings as written.
    ///
    /// ```
    /// use harness_core::Json;
    ///
    /// assert_eq!(Json::parse(r#"["\u00fc"]"#)?.indented_verbatim(), "[\n  \"\\u00fc\"\n]");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn indented_verbatim(&self) -> String {
        let out = Indented { text: String::new(), depth: 0, most: usize::MAX };
        self.laid_out(out, str::to_owned).unwrap_or_default()
    }

    fn laid_out(&self, mut out: Indented, string: impl Fn(&str) -> String) -> Option<String> {
        let mut rest = self.text().trim_start_matches(is_space);
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' => 2 + string_end(rest.get(1..).unwrap_or_default()),
                '{' | '[' | '}' | ']' | ',' | ':' => 1,
                _ => rest.find(|c| matches!(c, ',' | '}' | ']') || is_space(c)).unwrap_or(rest.len()),
            };
            let (token, after) = rest.split_at_checked(length)?;
            rest = after.trim_start_matches(is_space);
            match first {
                '{' | '[' if rest.starts_with(['}', ']']) => {
                    let (close, after) = rest.split_at_checked(1)?;
                    out.text.extend([token, close]);
                    rest = after.trim_start_matches(is_space);
                }
                '{' | '[' => {
                    out.text.push_str(token);
                    out.depth = out.depth.saturating_add(1);
                    out.line(out.depth)?;
                }
                '}' | ']' => {
                    out.depth = out.depth.saturating_sub(1);
                    out.line(out.depth.saturating_add(1))?;
                    out.text.push_str(token);
                }
                ',' => {
                    out.text.push_str(token);
                    out.line(out.depth)?;
                }
                ':' => out.text.push_str(": "),
                '"' => out.text.push_str(&string(token)),
                _ => out.text.push_str(token),
            }
            if out.text.len() > out.most {
                return None;
            }
        }
        Some(out.text)
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\r' | '\t')
}

struct Indented {
    text: String,
    depth: usize,
    most: usize,
}

impl Indented {
    /// Starts a line, unless the content at depth `inside` is too deep for separate lines.
    fn line(&mut self, inside: usize) -> Option<()> {
        if inside > DEEPEST {
            return Some(());
        }
        if self.text.len().saturating_add(2 * self.depth) >= self.most {
            return None;
        }
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
        Some(())
    }
}

/// The string without needless escapes; one that is not text (half a surrogate pair) is unchanged.
fn plain(token: &str) -> String {
    let text: Result<String, _> = serde_json::from_str(token);
    text.map_or_else(|_| token.to_owned(), |text| Json::string(&text).text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<&str>) {
        assert_eq!(Json::parse(json).expect("JSON").indented(0, 100).as_deref(), expected);
    }

    #[test]
    fn values_are_indented_and_numbers_exact() {
        check("null", Some("null"));
        check("[true, -1e9 ]", Some("[\n  true,\n  -1e9\n]"));
        check("[[],{}]", Some("[\n  [],\n  {}\n]"));
        check(
            r#"{"b":1.0,"a":12345678901234567890,"b":1e400}"#,
            Some("{\n  \"b\": 1.0,\n  \"a\": 12345678901234567890,\n  \"b\": 1e400\n}"),
        );
        check(
            r#"{"k":[1,{"x":true}]}"#,
            Some("{\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}"),
        );
    }

    #[test]
    fn white_space_of_the_source_does_not_count_and_that_of_strings_stays() {
        let json: Json = serde_json::from_str(r#"{ "a b" : [ ] , "c" : "{ }, [" }"#).expect("JSON");
        assert_eq!(json.indented(0, 100).as_deref(), Some("{\n  \"a b\": [],\n  \"c\": \"{ }, [\"\n}"));
    }

    #[test]
    fn strings_lose_only_needless_escapes() {
        check(r#""\u00fc\/\n,]\"""#, Some(r#""ü/\n,]\"""#));
        check(r#""\ud800""#, Some(r#""\ud800""#));
        check(r#"{"a:,":"b"}"#, Some("{\n  \"a:,\": \"b\"\n}"));
    }

    #[test]
    fn what_is_too_long_is_refused_and_what_is_too_deep_stays_small() {
        check(&format!("\"{}\"", "x".repeat(99)), None);
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&deep, None);
        let shown = Json::parse(&deep).expect("JSON").indented(0, usize::MAX).expect("no bound");
        assert!(shown.len() < 250_000, "{}", shown.len());
        assert_eq!(shown.matches('[').count(), 100_000);
    }
}
