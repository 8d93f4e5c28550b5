//! How deep a text nests, found out before a parser that may take long over it.

/// The most levels of `[` and `{` that are open at once, in the text of JSON or YAML. Brackets in strings count
/// too: a text that stays below a bound here does so for every parser.
///
/// ```
/// use harness_core::nesting::bracket_depth;
///
/// assert_eq!(bracket_depth(r#"{"a": [1, [2]], "b": {}}"#), 3);
/// ```
pub fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}
