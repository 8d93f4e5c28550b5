//! Redaction of records. It fails closed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Block, Message, ToolCall};
use harness_core::redact::REDACTED;

use super::earlier::{Earlier, FixedSecrets};
use super::run_record::RedactionNote;
use super::scrub::{Secrets, at_path, segments, without_path};

/// Error of a redactor. Its text is not recorded, because it might quote the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedactError(pub String);

/// Custom redactor of records, called after the paths of the [`Redaction`].
///
/// If it panics, or fails on the context or an item, the record contains no context, items and texts of the run.
pub trait Redactor: Send + Sync {
    /// Redacts the context, once at the start of the run.
    ///
    /// # Errors
    /// The context cannot be redacted.
    fn context(&self, context: Json) -> Result<Json, RedactError>;

    /// Redacts a message of the history, as JSON. The result must be a message. Default unchanged.
    ///
    /// # Errors
    /// The message cannot be redacted.
    fn item(&self, item: Json) -> Result<Json, RedactError> {
        Ok(item)
    }

    /// Redacts another recorded value: a reason, a prompt, the arguments of a suspended proposal. Texts are JSON
    /// strings. Default unchanged.
    ///
    /// # Errors
    /// The value cannot be redacted; only this value is removed.
    fn value(&self, value: Json) -> Result<Json, RedactError> {
        Ok(value)
    }
}

/// Redaction of a record.
///
/// A *path* (`customer.email`, with list positions as numbers) is replaced by `"[redacted]"` in the context snapshot, in
/// the arguments of every call and in every tool result that is JSON. The *values* of the context at these paths (texts
/// of at least four characters, numbers of at least six digits) are replaced everywhere else: in messages, answers,
/// reasons, prompts. Hashes are those of the unredacted values.
#[derive(Clone, Default)]
pub struct Redaction {
    paths: Vec<String>,
    keys: Option<harness_core::Redactor>,
    custom: Option<Arc<dyn Redactor>>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let custom = self.custom.is_some();
        let Self { paths, keys, .. } = self;
        let mut debug = f.debug_struct("Redaction");
        debug.field("paths", paths).field("keys", keys).field("custom", &custom).finish()
    }
}

impl Redaction {
    /// Creates an empty redaction.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds paths, for example those of fields with `redact: true` in a descriptor.
    #[must_use]
    pub fn paths<T: Into<String>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Redacts known secrets, such as API keys, in what the driver does not redact: instructions, tools, messages of a
    /// planned view.
    #[must_use]
    pub fn secrets(mut self, known: harness_core::Redactor) -> Self {
        self.keys = Some(known);
        self
    }

    /// Sets a custom redactor.
    #[must_use]
    pub fn with(mut self, redactor: impl Redactor + 'static) -> Self {
        self.custom = Some(Arc::new(redactor));
        self
    }

    /// Redacts the context of a new run, and collects the values to redact later.
    pub(super) fn start(&self, context: Option<&Json>) -> Redacting {
        let mut redacting = Redacting { redaction: self.clone(), ..Redacting::default() };
        let mut clean = context.cloned();
        for path in &self.paths {
            let path = segments(path);
            for value in context.map(|context| at_path(context, &path)).unwrap_or_default() {
                redacting.secrets.add(&value);
            }
            if let Some(new) = clean.as_ref().and_then(|clean| without_path(clean, &path)) {
                (clean, redacting.context_redacted) = (Some(new), true);
            }
        }
        if let (Some(redactor), Some(context)) = (&self.custom, clean.clone()) {
            redacting.context_redacted = true;
            match guarded(|| redactor.context(context)) {
                Ok(new) => clean = Some(new),
                Err(failed) => redacting.failed = Some(failed.to_owned()),
            }
        }
        redacting.context = clean;
        redacting
    }
}

/// Calls a redactor and reduces its failure to a safe text.
fn guarded(call: impl FnOnce() -> Result<Json, RedactError>) -> Result<Json, &'static str> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err("the redactor failed"),
        Err(_) => Err("the redactor panicked"),
    }
}

/// Redaction of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Redacting {
    redaction: Redaction,
    secrets: Secrets,
    /// Redacted context.
    context: Option<Json>,
    context_redacted: bool,
    failed: Option<String>,
}

impl Redacting {
    /// Redacted context, and whether it was changed or removed.
    pub(super) fn context(&self) -> (Option<Json>, bool) {
        match self.failed {
            Some(_) => (None, true),
            None => (self.context.clone(), self.context_redacted),
        }
    }

    pub(super) fn note(&self) -> RedactionNote {
        RedactionNote {
            paths: self.redaction.paths.clone(),
            custom: self.redaction.custom.is_some(),
            failed: self.failed.clone(),
        }
    }

    /// The secrets that messages are redacted by, if by nothing else.
    pub(super) fn fixed_secrets(&self) -> Option<FixedSecrets> {
        let Redaction { paths, keys, custom } = &self.redaction;
        let is_fixed = paths.is_empty() && custom.is_none() && !self.has_failed();
        is_fixed.then(|| FixedSecrets(keys.as_ref().map(harness_core::Redactor::known)))
    }

    /// Redacts all messages, of which the first are known from an earlier run; none remain if one fails.
    pub(super) fn items(&mut self, items: &[Arc<Message>], earlier: Option<&Earlier>) -> Vec<Arc<Message>> {
        let secrets = self.fixed_secrets();
        let is_same = |earlier: &&Earlier| secrets.is_some_and(|now| now.is_same(&earlier.secrets));
        let known = earlier.filter(is_same).map_or(&[] as &[_], |earlier| &earlier.clean);
        let mut clean = Vec::with_capacity(items.len());
        clean.extend_from_slice(known);
        for item in items.iter().skip(known.len()) {
            match self.item(item) {
                Ok(item) => clean.push(item),
                Err(failed) => {
                    self.failed.get_or_insert_with(|| failed.to_owned());
                    return Vec::new();
                }
            }
        }
        if self.failed.is_some() { Vec::new() } else { clean }
    }

    /// Whether there is anything to redact.
    pub(super) fn is_active(&self) -> bool {
        let Redaction { paths, keys, custom } = &self.redaction;
        !paths.is_empty() || keys.is_some() || custom.is_some() || self.has_failed()
    }

    /// Whether the redaction of the context or an item has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Redacts a suspended proposal. If its arguments change, the texts that repeat them are removed.
    pub(super) fn proposal(&self, proposal: &Json) -> Json {
        let mut clean = self.json(proposal);
        for (value, copies) in [
            ("parsedArguments", ["rawArguments", "argsCanonicalJson"].as_slice()),
            ("handoffPayload", ["payloadCanonicalJson"].as_slice()),
        ] {
            for path in &self.redaction.paths {
                let mut path = segments(path);
                path.insert(0, value);
                let Some(without) = without_path(&clean, &path) else { continue };
                clean = without;
                for copy in copies {
                    clean = without_path(&clean, &[copy]).unwrap_or(clean);
                }
            }
        }
        clean
    }

    /// Redacts a text.
    pub(super) fn text(&self, text: &str) -> String {
        if self.failed.is_some() {
            return REDACTED.to_owned();
        }
        let clean = self.without_keys(&self.secrets.text(text));
        if self.redaction.custom.is_none() {
            return clean;
        }
        self.own(Json::string(&clean)).to().unwrap_or_else(|_| REDACTED.to_owned())
    }

    /// Applies the custom redactor to a value.
    fn own(&self, value: Json) -> Json {
        match &self.redaction.custom {
            Some(redactor) => guarded(|| redactor.value(value)).unwrap_or_else(|_| Json::string(REDACTED)),
            None => value,
        }
    }

    /// Redacts a value.
    pub(super) fn json(&self, value: &Json) -> Json {
        if self.failed.is_some() {
            return Json::string(REDACTED);
        }
        let mut clean = value.clone();
        for path in &self.redaction.paths {
            if let Some(new) = without_path(&clean, &segments(path)) {
                clean = new;
            }
        }
        clean = self.secrets.json(&clean);
        if let Some(keys) = &self.redaction.keys {
            clean = keys.json(&clean);
        }
        self.own(clean)
    }

    fn without_keys(&self, text: &str) -> String {
        self.redaction.keys.as_ref().map_or_else(|| text.to_owned(), |keys| keys.text(text).into_owned())
    }

    fn item(&self, item: &Arc<Message>) -> Result<Arc<Message>, &'static str> {
        let mut clean = self.message_without_keys(item)?;
        if !self.redaction.paths.is_empty() {
            clean = Arc::new(self.message(&clean));
        }
        let Some(redactor) = &self.redaction.custom else { return Ok(clean) };
        let item = Json::of(&*clean).map_err(|_| "a message has no JSON form")?;
        let item = guarded(|| redactor.item(item))?;
        item.to::<Message>().map(Arc::new).map_err(|_| "the redactor returned an invalid message")
    }

    /// Redacts the known secrets of a message, which is unchanged without one.
    fn message_without_keys(&self, item: &Arc<Message>) -> Result<Arc<Message>, &'static str> {
        let Some(keys) = &self.redaction.keys else { return Ok(Arc::clone(item)) };
        let json = Json::of(&**item).map_err(|_| "a message has no JSON form")?;
        let clean = keys.json(&json);
        if clean == json {
            return Ok(Arc::clone(item));
        }
        Ok(clean.to::<Message>().map_or_else(|_| Arc::new(Message::user(REDACTED)), Arc::new))
    }

    fn message(&self, message: &Message) -> Message {
        let mut clean = message.clone();
        match &mut clean {
            Message::System(system) => self.blocks(&mut system.content),
            Message::User(user) => {
                self.blocks(&mut user.content);
                self.optional(&mut user.metadata);
            }
            Message::Assistant(answer) => {
                self.blocks(&mut answer.content);
                self.optional_text(&mut answer.error_message);
                answer.diagnostics = None;
                answer.provider_metadata = None;
            }
            Message::ToolResult(result) => {
                self.results(&mut result.content);
                self.optional(&mut result.structured);
                self.optional(&mut result.outcome);
                self.optional(&mut result.details);
            }
            Message::Custom(custom) => {
                self.blocks(custom.content.as_deref_mut().unwrap_or_default());
                self.optional(&mut custom.data);
            }
            // An unknown kind of message may contain anything.
            _ => return Message::user(REDACTED),
        }
        clean
    }

    fn optional(&self, value: &mut Option<Json>) {
        if let Some(value) = value {
            *value = self.json(value);
        }
    }

    fn optional_text(&self, value: &mut Option<String>) {
        if let Some(value) = value {
            *value = self.text(value);
        }
    }

    /// Redacts the blocks of a result, whose texts may be JSON.
    fn results(&self, blocks: &mut [Block]) {
        for block in blocks {
            let value = block.as_text().filter(|text| text.trim_start().starts_with(['{', '[']));
            match (value.and_then(|text| Json::parse(text).ok()), &mut *block) {
                (Some(value), Block::Text(text)) => {
                    let clean = self.json(&value);
                    if clean != value {
                        clean.text().clone_into(&mut Arc::make_mut(text).text);
                    }
                }
                _ => self.blocks(std::slice::from_mut(block)),
            }
        }
    }

    fn blocks(&self, blocks: &mut [Block]) {
        for block in blocks {
            match block {
                Block::Text(text) => {
                    let clean = self.text(&text.text);
                    if clean != text.text {
                        // Citations and signatures no longer match the text.
                        *block = Block::text(clean);
                    }
                }
                Block::ToolCall(call) => *call = Arc::new(self.call(call)),
                Block::Thinking(thinking) => {
                    let thinking = Arc::make_mut(thinking);
                    thinking.thinking = self.text(&thinking.thinking);
                    thinking.summary.iter_mut().flatten().for_each(|line| *line = self.text(line));
                }
                Block::Refusal(refusal) => Arc::make_mut(refusal).text = self.text(&refusal.text),
                Block::Error(error) => {
                    let error = Arc::make_mut(error);
                    error.message = self.text(&error.message);
                    self.optional(&mut error.details);
                }
                Block::Approval(approval) => self.optional_text(&mut Arc::make_mut(approval).reason),
                Block::Extension(extension) => Arc::make_mut(extension).data = self.json(&extension.data),
                Block::Image(image) => self.optional_text(&mut Arc::make_mut(image).url),
                Block::File(file) => {
                    let file = Arc::make_mut(file);
                    self.optional_text(&mut file.url);
                    self.optional_text(&mut file.name);
                }
                Block::Audio(audio) => self.optional_text(&mut Arc::make_mut(audio).transcript),
                Block::Unknown(raw) => *raw = self.json(raw),
                _ => *block = Block::text(REDACTED),
            }
        }
    }

    fn call(&self, call: &ToolCall) -> ToolCall {
        let mut clean = ToolCall::new(call.id.clone(), call.name.clone(), self.json(&call.arguments));
        clean.kind.clone_from(&call.kind);
        if let Some(hosted) = &call.hosted {
            clean.hosted = Some(self.json(hosted));
        }
        clean
    }
}
