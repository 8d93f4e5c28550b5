//! How the source begins a request.

use harness_core::Json;
use harness_core::message::{Message, SystemMessage};

use crate::execution::indented;
use crate::execution::trimmed;

/// The system messages that follow the system prompt, before the conversation: the developer's prompt,
/// unless it is blank, and the context, unless it is empty.
///
/// `blocks` are label and content of each text; `structured` is an object. Texts are given as they are,
/// data with two spaces of indentation and its keys in their order.
///
/// ```
/// use harness_adapters::chat::source_001::system_messages;
///
/// let messages = system_messages(Some("Be brief."), [("plan", "Ship it."), ("", "Soon.")], None);
/// let texts: Vec<String> = messages.iter().map(|message| message.joined_text()).collect();
/// assert_eq!(texts, ["Be brief.", "Conversation context:\n- [plan] Ship it.\n- Soon."]);
/// ```
pub fn system_messages<'a>(
    developer_prompt: Option<&str>,
    blocks: impl IntoIterator<Item = (&'a str, &'a str)>,
    structured: Option<&Json>,
) -> Vec<Message> {
    let developer = developer_prompt.filter(|prompt| !trimmed(prompt).is_empty()).map(str::to_owned);
    let texts = developer.into_iter().chain(context(blocks, structured));
    texts.map(|text| Message::System(SystemMessage::text(text))).collect()
}

fn context<'a>(
    blocks: impl IntoIterator<Item = (&'a str, &'a str)>,
    structured: Option<&Json>,
) -> Option<String> {
    let line = |(label, content): (&str, &str)| match label {
        "" => format!("\n- {content}"),
        label => format!("\n- [{label}] {content}"),
    };
    let lines: String = blocks.into_iter().map(line).collect();
    let has_keys = |data: &&Json| data.entries().is_ok_and(|entries| !entries.is_empty());
    let texts = (!lines.is_empty()).then(|| format!("Conversation context:{lines}"));
    let data = structured.filter(has_keys).map(|data| format!("Structured context:\n{}", indented(data)));
    match (texts, data) {
        (Some(texts), Some(data)) => Some(format!("{texts}\n\n{data}")),
        (texts, data) => texts.or(data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(developer: Option<&str>, blocks: &[(&str, &str)], structured: &str, expected: &[&str]) {
        let structured = Json::parse(structured).unwrap();
        let messages = system_messages(developer, blocks.iter().copied(), Some(&structured));
        let texts: Vec<String> = messages.iter().map(Message::joined_text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_holds_nothing_is_left_out() {
        check(None, &[], "{}", &[]);
        check(Some(" \n"), &[], "{}", &[]);
        check(Some(" d "), &[], "{}", &[" d "]);
    }

    #[test]
    fn texts_and_data_stand_in_one_message() {
        check(
            None,
            &[("a", "x\ny"), ("", "")],
            r#"{"z":1.50,"a":[]}"#,
            &[
                "Conversation context:\n- [a] x\ny\n- \n\nStructured context:\n{\n  \"z\": 1.50,\n  \"a\": []\n}",
            ],
        );
        check(None, &[], r#"{"z":1}"#, &["Structured context:\n{\n  \"z\": 1\n}"]);
    }
}
