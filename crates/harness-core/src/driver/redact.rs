//! Keeping known secrets out of everything that a run emits and stores.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json::Json;
use crate::machine::{Input, Reply, Start};
use crate::message::{Block, Message, ToolCall};
use crate::port::{DeltaPart, Secret};
use crate::redact::{KnownSecrets, REDACTED};
use crate::tool::{ToolOutcome, ToolUpdates};

/// Known secrets, and how they are taken out of texts. Clones share the secrets.
///
/// A driver with a redactor ([`Ports::redactor`](crate::driver::Ports)) takes them out of all that comes from
/// outside: tool results and updates, answers of models, prompts, queued messages, decisions, errors. So they
/// are in no transcript, event, session or record, and in no request to a model. Secrets that a stream spreads
/// over several deltas are found too; at most the length of the longest secret is held back for that.
///
/// Secrets are found as they are and in their JSON form. What a program encodes, splits or reverses is not found:
/// this keeps secrets out of files by accident, and does not stop a program that wants to send them. Values of
/// fewer than 8 bytes are not looked for.
///
/// ```
/// use harness_core::Redactor;
/// use harness_core::port::Secret;
///
/// let redactor = Redactor::new([Secret::new("sk-0123456789")]);
/// assert_eq!(redactor.text("key: sk-0123456789."), "key: [redacted].");
/// assert_eq!(format!("{redactor:?}"), "Redactor(1)");
/// ```
#[derive(Clone)]
pub struct Redactor(Arc<RwLock<Arc<KnownSecrets>>>);

impl Default for Redactor {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(Arc::new(KnownSecrets::new(Self::SHORTEST, REDACTED)))))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.known().len())
    }
}

impl Redactor {
    /// The least number of bytes of a value that is looked for.
    const SHORTEST: usize = 8;

    /// A redactor of some secrets.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let redactor = Self::default();
        secrets.into_iter().for_each(|secret| redactor.add(&secret));
        redactor
    }

    /// Adds a secret, for all clones.
    pub fn add(&self, secret: &Secret) {
        let plain = secret.expose();
        // The placeholder must stay what it is.
        if !REDACTED.contains(plain) {
            Arc::make_mut(&mut self.0.write()).add(plain);
        }
    }

    /// The secrets that are known now. Later additions do not change them: while this is kept, a redactor that returns
    /// the same allocation redacts alike.
    pub fn known(&self) -> Arc<KnownSecrets> {
        Arc::clone(&self.0.read())
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.known().text(text)
    }

    /// The value without secrets.
    #[must_use]
    pub fn json(&self, value: &Json) -> Json {
        match self.known().json(value.text()) {
            Cow::Owned(clean) => Json::parse(&clean).unwrap_or_else(|_| Json::string(REDACTED)),
            Cow::Borrowed(_) => value.clone(),
        }
    }

    /// Redacts a tool's outcome. One that is invalid without its secrets becomes an error.
    pub fn outcome(&self, outcome: ToolOutcome) -> ToolOutcome {
        let withheld = |()| {
            ToolOutcome::error("secret_withheld", "the result cannot be shown without a secret that it holds")
        };
        self.clean(outcome).unwrap_or_else(withheld)
    }

    /// The value without secrets; `Err` when what is left of it is none.
    pub(crate) fn clean<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T, ()> {
        let text = serde_json::to_string(&value).map_err(|_| ())?;
        match self.known().json(&text) {
            Cow::Owned(clean) => serde_json::from_str(&clean).map_err(|_| ()),
            Cow::Borrowed(_) => Ok(value),
        }
    }

    /// Redacts an input of a machine. One that is invalid without its secrets becomes an interrupted operation, or an
    /// empty prompt.
    pub(crate) fn input(&self, input: Input) -> Input {
        let (id, starts) = match &input {
            // What an agent is prepared with comes from the host, and is large.
            Input::Reply(
                _,
                Reply::Prepared(Ok(_))
                | Reply::Noted(Ok(()))
                | Reply::Arguments(Ok(()))
                | Reply::Stored(Ok(())),
            ) => return input,
            Input::Reply(id, _) => (Some(*id), false),
            Input::Start(_) => (None, true),
            Input::Wake | Input::Cancel { .. } | Input::PartFailed(_) | Input::Spent(_) => (None, false),
        };
        self.clean(input).unwrap_or_else(|()| match id {
            Some(id) => Input::Reply(id, Reply::Interrupted { partial: None }),
            None if starts => Input::Start(Box::new(Start::prompt(Message::user(REDACTED)))),
            None => Input::Wake,
        })
    }
}

/// The deltas of one answer, held back as far as they may be the beginning of a secret.
#[derive(Debug, Default)]
pub(crate) struct RedactedDeltas(Vec<DeltaPart>);

impl RedactedDeltas {
    /// Takes a delta, and passes on the text that cannot be part of a secret.
    pub(crate) fn push(&mut self, redactor: &Redactor, part: DeltaPart, emit: &mut dyn FnMut(DeltaPart)) {
        if matches!(part, DeltaPart::Provider(_)) {
            return;
        }
        let Some((stream, text)) = text_of(&part) else {
            // What cannot be shown without its secrets is not shown.
            return redactor.clean(part).into_iter().for_each(emit);
        };
        let held = self.0.iter().position(|held| text_of(held).is_some_and(|(known, _)| known == stream));
        let held = held.map(|at| self.0.remove(at));
        let mut all = held.as_ref().and_then(text_of).map_or_else(String::new, |(_, text)| text.to_owned());
        all.push_str(text);
        let known = redactor.known();
        let tail = loop {
            let tail = all.len() - known.held(&all);
            match known.first(&all).filter(|(from, _)| *from < tail) {
                Some((from, to)) => all.replace_range(from..to, REDACTED),
                None => break all.split_off(tail),
            }
        };
        if !tail.is_empty() {
            self.0.push(with_text(&part, tail));
        }
        if !all.is_empty() {
            emit(with_text(&part, all));
        }
    }

    /// Passes on what was held back: the answer is over. A long beginning of a secret is none of that.
    pub(crate) fn finish(&mut self, redactor: &Redactor, emit: &mut dyn FnMut(DeltaPart)) {
        for held in self.0.drain(..) {
            let Some((_, text)) = text_of(&held).filter(|(_, text)| !text.is_empty()) else { continue };
            let clean = redactor.text(text);
            let begins = clean == text && text.len() >= Redactor::SHORTEST;
            let clean = if begins { REDACTED.to_owned() } else { clean.into_owned() };
            emit(with_text(&held, clean));
        }
    }
}

/// The stream that a delta belongs to, and its text.
fn text_of(part: &DeltaPart) -> Option<((u8, u32), &str)> {
    if let DeltaPart::Text(text) = part {
        Some(((0, 0), text))
    } else if let DeltaPart::Thinking(text) = part {
        Some(((1, 0), text))
    } else if let DeltaPart::CallArguments { index, text } = part {
        Some(((2, *index), text))
    } else {
        None
    }
}

fn with_text(part: &DeltaPart, text: String) -> DeltaPart {
    if let DeltaPart::CallArguments { index, .. } = part {
        return DeltaPart::CallArguments { index: *index, text };
    }
    if matches!(part, DeltaPart::Thinking(_)) { DeltaPart::Thinking(text) } else { DeltaPart::Text(text) }
}

/// Passes on the updates of tools without secrets.
pub(crate) struct RedactedUpdates {
    pub(crate) inner: Arc<dyn ToolUpdates>,
    pub(crate) redactor: Redactor,
}

impl ToolUpdates for RedactedUpdates {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        // What cannot be shown without its secrets is not shown.
        if let Ok(content) = self.redactor.clean(content) {
            self.inner.update(call, content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(
            ["sk-0123456789", "sk-0123456789-long", "s\"quoted\\s", "40000000041", "short"].map(Secret::new),
        )
    }

    #[test]
    fn fault_11_secrets_are_taken_out_of_texts_and_json() {
        let redactor = redactor();
        assert_eq!(redactor.text("a sk-0123456789-longer short"), "a [redacted]er short");
        let value =
            r#"{"k sk-0123456789":["\u0073k-0123456789", "s\"quoted\\s", 40000000041, 1.50],"x":"\n"}"#;
        let clean = redactor.clean(Json::parse(value).expect("JSON")).expect("JSON");
        assert_eq!(clean.text(), r#"{"k [redacted]":["[redacted]","[redacted]",99999999999,1.50],"x":"\n"}"#);
        let plain = Json::parse(r#"{"a":"\n sk-012345678"}"#).expect("JSON");
        assert_eq!(redactor.clean(plain.clone()), Ok(plain));
        assert!(!format!("{redactor:?}").contains("sk-"));
    }

    /// Streams a text in pieces of one length; gives what gets through, and what is held back at most.
    fn streamed(text: &str, length: usize) -> (String, usize) {
        let (redactor, mut deltas) = (redactor(), RedactedDeltas::default());
        let (mut out, mut passed, mut held) = (String::new(), 0, 0);
        for piece in text.as_bytes().chunks(length) {
            let piece = String::from_utf8(piece.to_vec()).expect("text");
            passed += piece.len();
            deltas.push(&redactor, DeltaPart::Text(piece), &mut |part| {
                out.push_str(text_of(&part).expect("text").1);
            });
            held = held.max(passed.saturating_sub(out.len()));
        }
        deltas.finish(&redactor, &mut |part| out.push_str(text_of(&part).expect("text").1));
        (out, held)
    }

    #[test]
    fn fault_11_a_secret_in_several_deltas_does_not_get_through() {
        let text = "It is sk-0123456789, or sk-0123456789-long; ssk-s ss\"quoted\\s.";
        for length in 1..=text.len() {
            assert_eq!(
                streamed(text, length).0,
                "It is [redacted], or [redacted]; ssk-s s[redacted].",
                "{length}"
            );
        }
        assert_eq!(streamed("ends with sk-", 3).0, "ends with sk-");
        assert_eq!(streamed("ends with sk-01234567", 3).0, "ends with [redacted]");
        assert_eq!(streamed("ends with sk-0123456789-lon", 3).0, "ends with [redacted]-lon");
        let (out, held) = streamed(&"sk-012 ".repeat(1_000), 5);
        assert_eq!(out, "sk-012 ".repeat(1_000));
        assert!(held < 20, "{held}");
    }
}
