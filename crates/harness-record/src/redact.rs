//! Keeping out of a record what must not be in it. Whatever goes wrong here, nothing gets in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Block, Message, ToolCall};

use super::run_record::RedactionNote;
use super::scrub::{REDACTED, Secrets, at_path, segments, without_path};

/// Why a redactor gave up. Its text is not recorded: it might quote what it was about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedactError(pub String);

/// A caller's own way of taking things out of a record.
///
/// It is asked after the paths of the [`Redaction`] were taken out. When it fails with the context or with an
/// item, or panics, the record holds no context, no items and no other text of the run.
pub trait Redactor: Send + Sync {
    /// The context without what must not be recorded. Asked once, at the start of the run.
    ///
    /// # Errors
    /// When it cannot say.
    fn context(&self, context: Json) -> Result<Json, RedactError>;

    /// A message of the history, as JSON, without what must not be recorded. It must stay a message.
    /// The default leaves it as it is.
    ///
    /// # Errors
    /// When it cannot say.
    fn item(&self, item: Json) -> Result<Json, RedactError> {
        Ok(item)
    }

    /// Anything else of the run that is recorded: a reason, a prompt, the arguments of a suspended proposal.
    /// Texts come, and must go, as JSON strings. The default leaves it as it is.
    ///
    /// # Errors
    /// When it cannot say; that value alone is left out then.
    fn value(&self, value: Json) -> Result<Json, RedactError> {
        Ok(value)
    }
}

/// What is taken out of a record.
///
/// A *path* (`customer.email`, list positions as numbers) is replaced by `"[redacted]"` in the context
/// snapshot, in the arguments of every call and in every tool result that is JSON. The *values* that the
/// context holds at the paths (texts of at least four characters, numbers of at least six digits) are
/// replaced wherever else they appear: in messages, answers, reasons, prompts. Hashes are those of what was
/// really sent.
#[derive(Clone, Default)]
pub struct Redaction {
    paths: Vec<String>,
    custom: Option<Arc<dyn Redactor>>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let custom = self.custom.is_some();
        f.debug_struct("Redaction").field("paths", &self.paths).field("custom", &custom).finish()
    }
}

impl Redaction {
    /// Nothing is taken out.
    pub fn none() -> Self {
        Self::default()
    }

    /// Further paths, for example those of the fields that a descriptor marks with `redact: true`.
    #[must_use]
    pub fn paths<T: Into<String>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// A redactor of your own, after the paths.
    #[must_use]
    pub fn with(mut self, redactor: impl Redactor + 'static) -> Self {
        self.custom = Some(Arc::new(redactor));
        self
    }

    /// Applies it to the context of a run that begins, and learns from it what to look for later.
    pub(super) fn begin(&self, context: Option<&Json>) -> Redacting {
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

/// Calls a redactor; gives what may be said of its failure.
fn guarded(call: impl FnOnce() -> Result<Json, RedactError>) -> Result<Json, &'static str> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err("the redactor failed"),
        Err(_) => Err("the redactor panicked"),
    }
}

/// A redaction at work on one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Redacting {
    redaction: Redaction,
    secrets: Secrets,
    /// The context as it may be recorded.
    context: Option<Json>,
    context_redacted: bool,
    failed: Option<String>,
}

impl Redacting {
    /// The context as it may be recorded, and whether something of it is missing.
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

    /// All messages as they may be recorded; none when one of them cannot be.
    pub(super) fn items(&mut self, items: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut clean = Vec::with_capacity(items.len());
        for item in items {
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

    /// Whether anything may have to be taken out.
    pub(super) fn is_at_work(&self) -> bool {
        !self.redaction.paths.is_empty() || self.redaction.custom.is_some() || self.failed.is_some()
    }

    /// A suspended proposal as it may be recorded: the texts that repeat its arguments go when something of
    /// the arguments went.
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

    /// A text as it may be recorded.
    pub(super) fn text(&self, text: &str) -> String {
        if self.failed.is_some() {
            return REDACTED.to_owned();
        }
        let clean = self.secrets.text(text).into_owned();
        if self.redaction.custom.is_none() {
            return clean;
        }
        self.own(Json::string(&clean)).to().unwrap_or_else(|_| REDACTED.to_owned())
    }

    /// What the caller's redactor leaves of a value.
    fn own(&self, value: Json) -> Json {
        match &self.redaction.custom {
            Some(redactor) => guarded(|| redactor.value(value)).unwrap_or_else(|_| Json::string(REDACTED)),
            None => value,
        }
    }

    /// A value as it may be recorded.
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
        self.own(self.secrets.json(&clean))
    }

    fn item(&self, item: &Arc<Message>) -> Result<Arc<Message>, &'static str> {
        let mut clean = Arc::clone(item);
        if !self.redaction.paths.is_empty() {
            clean = Arc::new(self.message(item));
        }
        let Some(redactor) = &self.redaction.custom else { return Ok(clean) };
        let item = Json::of(&*clean).map_err(|_| "a message has no JSON form")?;
        let item = guarded(|| redactor.item(item))?;
        item.to::<Message>().map(Arc::new).map_err(|_| "the redactor gave something that is no message")
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
            // A kind of message that is not known here is not known to be clean.
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

    /// Results are JSON as often as not: paths count in them, too.
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
                        // What was said about the text (citations, signatures) does not fit it any more.
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
