//! Streamed answers for the benchmarks, in the form in which OpenRouter writes them.

/// The words of which the answers are made; some need escapes, some are more than one byte a letter.
const WORDS: [&str; 8] = [" the", " cold", " Oslo", ",", " degrees", ".\\n\\n", " \u{2014}", " \\\"now\\\""];

/// The `n`-th word, as it stands in a JSON string.
pub(crate) fn word(n: usize) -> &'static str {
    WORDS.get(n % WORDS.len()).copied().unwrap_or_default()
}

/// One event with a delta of choice 0.
pub(crate) fn event(delta: &str) -> String {
    format!(
        concat!(
            r#"data: {{"id":"gen-1767225600-Hq3sVbXoYk1","provider":"Example","model":"example/served-model","#,
            r#""object":"chat.completion.chunk","created":1767225600,"choices":[{{"index":0,"delta":{},"#,
            r#""finish_reason":null,"native_finish_reason":null,"logprobs":null}}]}}"#,
            "\n\n"
        ),
        delta
    )
}

/// What ends an answer.
pub(crate) fn end(reason: &str) -> String {
    let last = format!(
        concat!(
            r#"data: {{"id":"gen-1767225600-Hq3sVbXoYk1","choices":[{{"index":0,"delta":{{}},"finish_reason":"{}"}}],"#,
            r#""usage":{{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17,"cost":0.00031}}}}"#,
            "\n\n"
        ),
        reason
    );
    last + "data: [DONE]\n\n"
}

/// The `n`-th delta of text.
pub(crate) fn text(n: usize) -> String {
    event(&format!(r#"{{"role":"assistant","content":"{}"}}"#, word(n)))
}
