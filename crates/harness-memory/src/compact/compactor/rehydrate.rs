//! Showing again, for one request, what was stored elsewhere and is named.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{Block, Message, UserMessage};
use harness_core::port::CompactAsk;
use harness_core::transcript::{Plan, Prefix, Span};
use harness_core::{ArtifactId, TurnId};
use harness_host::{DynArtifactStore, Sensitivity};

use crate::compact::artifacts::READ_ARTIFACT;
use crate::compact::tokens::{TokenCounter, message_tokens};

/// How contents that were stored elsewhere are shown again when they are named by the user, the model, or
/// an argument of a call.
///
/// They are shown in the one request that follows, at its end, and are not part of a transcript. A request in which
/// something is compacted shows none, and in a turn in which some were shown nothing is stored, summarized or
/// dropped as long as requests are below the hard stop, so that the two never undo each other. Contents that are
/// more than `internal` are only read by the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rehydration {
    /// Artifacts per turn. 3.
    pub artifacts: usize,
    /// Tokens of one; the rest is omitted with a note. 4,000.
    pub tokens: u64,
    /// Tokens of all in one request. 8,000.
    pub total: u64,
    /// Turns before the same artifact is shown again. 2.
    pub cooldown: u32,
}

impl Default for Rehydration {
    fn default() -> Self {
        Self { artifacts: 3, tokens: 4_000, total: 8_000, cooldown: 2 }
    }
}

/// Messages of a thread that were searched for names, and contents that were shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    looked_at: usize,
    turn: Option<TurnId>,
    turns: u32,
    in_turn: usize,
    is_in_use: bool,
    shown: HashMap<ArtifactId, u32>,
}

impl Shelf {
    /// The artifacts that are named in what is new, as far as they may be shown.
    pub(super) fn wanted(&mut self, ask: &CompactAsk, limits: &Rehydration) -> Vec<ArtifactId> {
        if self.turn != ask.cx.origin.turn {
            self.turn.clone_from(&ask.cx.origin.turn);
            self.turns = self.turns.saturating_add(1);
            (self.in_turn, self.is_in_use) = (0, false);
            let (turns, cooldown) = (self.turns, limits.cooldown);
            self.shown.retain(|_, at| turns - *at <= cooldown);
        }
        let mut wanted = named(&ask.cx.log, self.looked_at);
        self.looked_at = ask.cx.log.len();
        wanted.retain(|id| !self.shown.contains_key(id));
        wanted.truncate(limits.artifacts.saturating_sub(self.in_turn));
        self.in_turn += wanted.len();
        self.shown.extend(wanted.iter().map(|id| (id.clone(), self.turns)));
        wanted
    }

    /// Notes that something was shown.
    pub(super) fn note_shown(&mut self) {
        self.is_in_use = true;
    }

    /// Whether something was shown in this turn. Without turns it is unknown how long it is in use.
    pub(super) fn is_in_use(&self, turn: Option<&TurnId>) -> bool {
        self.is_in_use && turn.is_some() && self.turn.as_ref() == turn
    }
}

/// The names in the messages from `from` on, each once. A call that reads an artifact gets it anyway, and
/// names in results of tools do not count.
fn named(log: &Prefix, from: usize) -> Vec<ArtifactId> {
    let mut names: Vec<ArtifactId> = Vec::new();
    let mut find = |text: &str| {
        for name in names_in(text) {
            if !names.iter().any(|known| *known == name) {
                names.push(name.into());
            }
        }
    };
    let said = log.range(from.min(log.len())..log.len());
    for message in said.filter(|message| matches!(***message, Message::User(_) | Message::Assistant(_))) {
        for block in message.content() {
            match block {
                Block::Text(text) => find(&text.text),
                Block::ToolCall(call) if call.name != READ_ARTIFACT => find(call.arguments.text()),
                Block::ToolCall(_)
                | Block::Thinking(_)
                | Block::Image(_)
                | Block::File(_)
                | Block::Audio(_)
                | Block::Refusal(_)
                | Block::Error(_)
                | Block::Approval(_)
                | Block::Extension(_)
                | Block::Unknown(_)
                | _ => {}
            }
        }
    }
    names
}

/// Names of artifacts as whole words.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'));
    words.filter(|word| {
        word.strip_prefix("sha256:")
            .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

/// The wanted contents as messages of at most so many tokens; what is not there is left out.
pub(super) async fn fetch(
    wanted: Vec<ArtifactId>,
    limits: &Rehydration,
    room: u64,
    store: &dyn DynArtifactStore,
    counter: &dyn TokenCounter,
    ask: &CompactAsk,
) -> Vec<Arc<Message>> {
    let (mut messages, mut room) = (Vec::new(), room.min(limits.total));
    for id in wanted {
        // No counter gives more than four bytes to a token by much; what is too long is cut below.
        let bytes = limits.tokens.min(room).saturating_mul(4);
        let session = ask.cx.origin.session.as_ref();
        let Ok(Some(part)) = store.read_boxed(&id, 0..bytes, session, ask.cx.now).await else { continue };
        let is_text = part.meta.media_type.starts_with("text/");
        if part.meta.sensitivity > Sensitivity::Internal || !is_text || part.bytes.is_empty() {
            continue;
        }
        let message = message_of(&id, &part.bytes, part.meta.size);
        let tokens = message_tokens(counter, &message);
        if tokens <= room {
            room -= tokens;
            messages.push(Arc::new(message));
        }
    }
    messages
}

fn message_of(id: &ArtifactId, bytes: &[u8], size: u64) -> Message {
    let text = String::from_utf8_lossy(bytes);
    let shown = bytes.len() as u64;
    let rest = if shown < size { format!("\n[the first {shown} of {size} bytes]") } else { String::new() };
    UserMessage::text(format!("The stored content `{id}`, which was named:\n{text}{rest}"))
        .from_origin("artifact")
        .into()
}

/// The view with these messages at its end.
pub(super) fn at_end(plan: Option<&Plan>, log: &Prefix, messages: Vec<Arc<Message>>) -> Plan {
    let whole = [Span::Kept(0..log.len())];
    let closed = |span: &Span| match span {
        Span::Kept(range) => Span::Kept(range.start..range.end.min(log.len())),
        Span::Made(made) => Span::Made(Arc::clone(made)),
    };
    let spans = plan.map_or(&whole[..], |plan| &plan.spans).iter().map(closed);
    Plan { spans: spans.chain([Span::Made(messages.into())]).collect() }
}
