//! The words of a text, and what makes two texts the same.

/// Most words that a query is searched by; further ones are left out.
pub(crate) const MAX_TERMS: usize = 32;

/// The words of a text in order, lower-case: runs of letters and digits.
pub(crate) fn of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The words that a query is searched by: each once, at most [`MAX_TERMS`].
pub(crate) fn terms(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in of(query) {
        if terms.len() == MAX_TERMS {
            break;
        }
        if !terms.contains(&word) {
            terms.push(word);
        }
    }
    terms
}

/// Form in which texts with the same words are equal: case, white space and a final full stop are ignored.
pub(crate) fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(&word.to_lowercase());
    }
    normal.truncate(normal.trim_end_matches('.').len());
    normal
}
