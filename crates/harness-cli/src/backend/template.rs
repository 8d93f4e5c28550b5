//! Templates that are filled from a request.

use harness::adapters::execution::{ExecutionRequest, user_text};
/// Placeholders.
const PLACES: [&str; 5] = ["prompt", "message", "system", "model", "tools"];

/// A text with placeholders: `{prompt}`, `{message}`, `{system}`, `{model}`, `{tools}`; `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(&'static str),
}

/// Values of the placeholders.
pub(super) struct Filling<'r> {
    prompt: String,
    tools: String,
    model: &'r str,
    request: &'r ExecutionRequest,
}

impl<'r> Filling<'r> {
    pub(super) fn of(request: &'r ExecutionRequest, model: &'r str) -> Self {
        let names: Vec<&str> = request.tools().iter().map(|tool| tool.name.as_str()).collect();
        Self { prompt: user_text(request), tools: names.join(","), model, request }
    }

    fn text(&self, place: &str) -> &str {
        match place {
            "prompt" => &self.prompt,
            "message" => &self.request.message.text,
            "system" => &self.request.instructions.system_prompt,
            "model" => self.model,
            "tools" => &self.tools,
            _ => "",
        }
    }
}

impl Template {
    /// Parses a template; the error names the problem and the valid placeholders.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.extend(from.chars().next());
                rest = after;
                continue;
            }
            let inner = from.strip_prefix('{').and_then(|from| from.split_once('}'));
            let Some((name, after)) = inner else {
                return Err(format!("`{text}` has a single brace; write {{{{ or }}}} for a literal brace"));
            };
            let Some(place) = PLACES.into_iter().find(|place| *place == name) else {
                let known = PLACES.map(|place| format!("{{{place}}}")).join(", ");
                return Err(format!("`{text}` has an unknown placeholder {{{name}}}; expected {known}"));
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Place(place));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// The filled text.
    pub(super) fn filled(&self, filling: &Filling<'_>) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Place(place) => filling.text(place),
            })
            .collect()
    }

    /// Whether it contains the placeholder.
    pub(super) fn names(&self, place: &str) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Place(name) if *name == place))
    }

    /// Whether one of its placeholders has no value.
    pub(super) fn lacks_something(&self, filling: &Filling<'_>) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Place(place) if filling.text(place).is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use harness::adapters::execution::ExecutionMessage;

    use super::*;

    #[track_caller]
    fn check(template: &str, expected: &str) {
        let request = ExecutionRequest::new("a", "t", "S", ExecutionMessage::new("m", "{hi}"));
        let filled = Template::parse(template).map(|parsed| parsed.filled(&Filling::of(&request, "big")));
        assert_eq!(filled.unwrap_or_else(|fault| fault), expected);
    }

    #[test]
    fn places_are_filled_once_and_braces_are_doubled() {
        check("-m={model}{tools}", "-m=big");
        check("{prompt}", "User message:\n{hi}");
        check("{{{message}}}", "{{hi}}");
        check("{{model}}", "{model}");
    }

    #[test]
    fn what_is_no_place_is_told() {
        check(
            "{user}",
            "`{user}` has an unknown placeholder {user}; expected {prompt}, {message}, {system}, {model}, {tools}",
        );
        check("a{", "`a{` has a single brace; write {{ or }} for a literal brace");
        check("a}", "`a}` has a single brace; write {{ or }} for a literal brace");
    }
}
