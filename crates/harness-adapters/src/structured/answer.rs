//! Parsing of structured answers.

use harness_core::message::AssistantMessage;
use serde::de::DeserializeOwned;

use crate::AdapterError;

/// Reads an answer as a type. White space around the JSON does not matter.
///
/// # Errors
/// [`AdapterError::Answer`] when the answer's text is not JSON of this type; it names the line, the column
/// and what is wrong there.
pub fn read_answer<T: DeserializeOwned>(answer: &AssistantMessage) -> Result<T, AdapterError> {
    let read = serde_json::from_str(answer.joined_text().trim());
    read.map_err(|error| AdapterError::Answer { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_type_names_the_place() {
        let fault = read_answer::<Vec<u8>>(&AssistantMessage::text("[1,\n\"x\"]")).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "the answer is not of the expected form: invalid type: string \"x\", expected u8 at line 2 column 3"
        );
    }
}
