//! The one text that a backend without messages is given.

use crate::execution::ExecutionRequest;

/// Builds the user text of a request, without the system prompt: the developer's instructions, the
/// context's texts and data, and the message, each under its heading and separated by a blank line.
///
/// Each part is unchanged, including line breaks. Empty parts are omitted, except the message.
///
/// ```
/// use harness_adapters::execution::{user_text, ExecutionMessage, ExecutionRequest};
///
/// let message = ExecutionMessage::new("m1", "Name three primes.");
/// let mut request = ExecutionRequest::new("assistant", "t1", "Answer in one line.", message);
/// request.instructions.developer_prompt = Some("Only odd ones.".into());
/// assert_eq!(
///     user_text(&request),
///     "Developer instructions:\nOnly odd ones.\n\nUser message:\nName three primes."
/// );
/// ```
pub fn user_text(request: &ExecutionRequest) -> String {
    let mut sections = Vec::new();
    let developer = request.instructions.developer_prompt.as_deref().unwrap_or_default();
    if !trimmed(developer).is_empty() {
        sections.push(format!("Developer instructions:\n{developer}"));
    }
    if let Some(context) = &request.context {
        let lines: Vec<_> =
            context.blocks.iter().map(|block| format!("\n- [{}] {}", block.label, block.text)).collect();
        if !lines.is_empty() {
            sections.push(format!("Context:{}", lines.concat()));
        }
        let has_keys = |data: &&harness_core::Json| data.entries().is_ok_and(|entries| !entries.is_empty());
        if let Some(data) = context.structured.as_ref().filter(has_keys) {
            sections
                .push(format!("Structured context:\n{}", data.indented(0, usize::MAX).unwrap_or_default()));
        }
    }
    sections.push(format!("User message:\n{}", request.message.text));
    sections.join("\n\n")
}

/// The text without white space around it, as JavaScript's `trim` sees white space.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use harness_core::Json;

    use super::*;

    #[track_caller]
    fn check(request: &str, expected: &str) {
        let mut request: ExecutionRequest = Json::parse(request).unwrap().to().unwrap();
        assert_eq!(user_text(&request), expected);
        request.instructions.developer_prompt = Some(" \n\u{feff}".to_owned());
        assert!(!user_text(&request).contains("Developer instructions"));
    }

    fn request(context: &str, text: &str) -> String {
        format!(
            r#"{{"assistantId":"a","turnId":"t","message":{{"id":"m","text":"{text}"}},"instructions":{{"systemPrompt":"s"}}{context}}}"#
        )
    }

    #[test]
    fn a_message_alone() {
        check(&request("", "hi"), "User message:\nhi");
        check(&request("", ""), "User message:\n");
    }

    #[test]
    fn an_empty_context_is_left_out() {
        check(&request(r#","context":{"blocks":[],"structured":{}}"#, "hi"), "User message:\nhi");
    }

    #[test]
    fn blocks_and_data_keep_their_order_and_line_breaks() {
        check(
            &request(
                r#","context":{"blocks":[{"id":"1","label":"a\nb","text":"x\ny"},{"id":"2","label":"","text":""}],"structured":{"z":1,"a":[]}}"#,
                "hi",
            ),
            "Context:\n- [a\nb] x\ny\n- [] \n\nStructured context:\n{\n  \"z\": 1,\n  \"a\": []\n}\n\nUser message:\nhi",
        );
    }
}
