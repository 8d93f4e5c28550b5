//! Model context of a session, and its settings.

use std::sync::Arc;

use harness_core::EntryId;
use harness_core::message::Message;
use harness_core::transcript::Span;

use super::{Body, Leaf, Tree};
use crate::note::{ModelRef, Note};
use crate::spine::Spot;

/// Messages of a session for a model, and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// Messages in order; summaries replace the messages they cover.
    pub shown: Vec<Shown>,
    /// How long the model is to think: the last one set on the way, `off` when there was none.
    pub thinking_level: String,
    /// Model: the last one configured or used on the path.
    pub model: Option<ModelRef>,
}

/// A message that a model is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Message of the transcript.
    pub message: Arc<Message>,
    /// The entry that it came from: its own, or that of a compaction or a branch summary.
    pub entry: EntryId,
}

impl Tree {
    /// Context for a model at a leaf; the latest compaction on the path applies.
    pub fn context(&self, leaf: Leaf<'_>) -> Context {
        let folded = self.fold(leaf);
        let show = |message: &Arc<Message>, place: u32| {
            let entry = self.chain.id(place)?;
            Some(Shown { message: Arc::clone(message), entry })
        };
        let kept = |at: usize| {
            let Spot { entry, .. } = folded.spine.spot(at)?;
            show(folded.loaded.messages.get(at)?, entry)
        };
        let count = folded.loaded.messages.len();
        let shown = match &folded.loaded.plan {
            None => (0..count).filter_map(kept).collect(),
            Some(plan) => {
                let mut shown = Vec::new();
                for span in plan.spans.iter() {
                    match span {
                        Span::Kept(range) => {
                            shown.extend((range.start..range.end.min(count)).filter_map(kept));
                        }
                        Span::Made(messages) => {
                            let place = folded.planned_at;
                            shown.extend(messages.iter().filter_map(|message| show(message, place?)));
                        }
                    }
                }
                shown
            }
        };
        let (thinking_level, model) = self.settings(leaf);
        Context { shown, thinking_level, model }
    }

    fn settings(&self, leaf: Leaf<'_>) -> (String, Option<ModelRef>) {
        let (mut level, mut model) = ("off".to_owned(), None);
        for node in self.path(leaf) {
            match &node.body {
                Body::Note(Note::ConfigChange { model: set, thinking_level, .. }) => {
                    model = set.clone().or(model);
                    level = thinking_level.clone().unwrap_or(level);
                }
                Body::Message(message) => model = heard(message).or(model),
                Body::Call { .. }
                | Body::Compaction { .. }
                | Body::Note(_)
                | Body::RunEnd { .. }
                | Body::State { .. }
                | Body::Other { .. } => {}
            }
        }
        (level, model)
    }
}

/// The model whose message it is.
fn heard(message: &Message) -> Option<ModelRef> {
    let answer = message.as_assistant()?;
    let id = answer.model.as_ref()?.to_string();
    Some(ModelRef { provider: answer.provider.clone(), id })
}
