//! The arguments of a command.

/// The words of a line: separated by white space; `'…'` and `"…"` hold words together and are left out. There
/// are no escapes; an unclosed quote reaches to the end; an empty quoted word is dropped.
///
/// ```
/// use harness_runtime::template::split_arguments;
///
/// assert_eq!(split_arguments(r#"main.rs "two words" it's''"#), ["main.rs", "two words", "its"]);
/// ```
pub fn split_arguments(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if c.is_whitespace() => take(&mut word, &mut words),
            None => word.push(c),
        }
    }
    take(&mut word, &mut words);
    words
}

fn take(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}
