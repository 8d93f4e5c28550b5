//! Streamed answers for the benchmarks, in the form in which OpenRouter writes them.

/// The words of which the answers are made; some need escapes, some are more than one byte a letter.
const WORDS: [&str; 8] = [" the", " cold", " Oslo", ",", " degrees", ".\\n\\n", " \u{2014}", " \\\"now\\\""];

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
    let word = WORDS.get(n % WORDS.len()).copied().unwrap_or_default();
    event(&format!(r#"{{"role":"assistant","content":"{word}"}}"#))
}

/// A transcript of small deltas, a tenth of it reasoning, a fifth the arguments of a call, the rest text,
/// now and then a comment. At least `bytes` long.
pub(crate) fn transcript(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 4_096);
    let started = r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"{\"lines\":["}}]}"#;
    let mut n = 0;
    while out.len() < bytes / 10 {
        let word = WORDS.get(n % WORDS.len()).copied().unwrap_or_default();
        out += &event(&format!(r#"{{"role":"assistant","content":"","reasoning":"{word}"}}"#));
        n += 1;
    }
    while out.len() < bytes / 10 * 8 {
        out += &text(n);
        n += 1;
        if n.is_multiple_of(1_000) {
            out += ": OPENROUTER PROCESSING\n\n";
        }
    }
    out += &event(started);
    while out.len() < bytes {
        let piece =
            r#"{"tool_calls":[{"index":0,"type":"function","function":{"arguments":"\"a line\","}}]}"#;
        out += &event(piece);
    }
    out +=
        &event(r#"{"tool_calls":[{"index":0,"type":"function","function":{"arguments":"\"the end\"]}"}}]}"#);
    out + &end("tool_calls")
}
