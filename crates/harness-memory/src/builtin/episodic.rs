//! Episodic memory: what earlier executions were about and how they ended.

use std::sync::Arc;

use harness_core::message::Message;

use super::notes::{LongTermMemory, Note, NoteDraft, NoteScope, NoteSource};
use super::observations::Observer;
use super::text::{listed, one_line};
use crate::MemoryError;
use crate::layer::{Ending, Execution, Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, Update};

/// The tag of notes that are episodes.
const TAG: &str = "episode";
/// UTF-16 units of the request and of the answer that an episode keeps.
const MOST_KEPT: usize = 500;

/// Writes a note when an execution ends, and shows the newest of earlier ones: what was asked, how it ended,
/// what was answered. Episodes are those of the user, or of the thread where no user is known; of a user's
/// episodes those of the running thread are left out, because its history says the same.
///
/// Children and executions that only pause leave no episode.
#[derive(Clone, derive_more::Debug)]
pub struct Episodes {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    memory: LongTermMemory,
    /// Episodes per view. Default 5.
    pub shown: usize,
    /// Stored episodes per user. Default 100.
    pub kept: usize,
    /// Summarizes an episode from its last request and answer. If it fails, both are stored as they are. Default none.
    #[debug(skip)]
    pub observer: Option<Arc<dyn Observer>>,
}

impl Episodes {
    /// Episodes in `memory`: the newest 100 are kept, five are shown, in at most 2,000 tokens.
    pub fn new(memory: LongTermMemory) -> Self {
        let def = LayerDef::new("episodic-memory", 300, [Hook::Recall, Hook::Complete]).with_range(0, 2_000);
        Self { def, memory, shown: 5, kept: 100, observer: None }
    }

    async fn summary(&self, cx: &LayerCx) -> Result<Option<String>, MemoryError> {
        let last = |is_it: fn(&Message) -> bool| {
            let found = cx.log.iter().rev().find(|message| is_it(message));
            found.map(|message| message.joined_text()).unwrap_or_default()
        };
        let asked = last(|message| matches!(message, Message::User(_)));
        let said =
            last(|message| message.as_assistant().is_some_and(|answer| !answer.joined_text().is_empty()));
        if asked.trim().is_empty() {
            return Ok(None);
        }
        if let Some(observer) = &self.observer {
            match observer.observe(&[format!("Asked: {asked}"), format!("Answered: {said}")], cx).await {
                Ok(lines) if !lines.is_empty() => return Ok(Some(one_line(&lines.join(" "), 2 * MOST_KEPT))),
                Err(fault) if fault.is_config() => return Err(fault),
                Ok(_) | Err(_) => {}
            }
        }
        let mut text = format!("Asked: {}", one_line(&asked, MOST_KEPT));
        if !said.is_empty() {
            text.push_str(" Answered: ");
            text.push_str(&one_line(&said, MOST_KEPT));
        }
        Ok(Some(text))
    }

    /// Forgets the oldest beyond what is kept.
    async fn trim(&self, scope: &NoteScope, cx: &LayerCx) -> Result<(), MemoryError> {
        let scopes = vec![scope.clone()];
        let all = self.memory.newest(scopes.clone(), Some(TAG), cx.now, self.kept.saturating_add(16)).await?;
        for old in all.into_iter().skip(self.kept) {
            self.memory.forget(&old.id, scopes.clone()).await?;
        }
        Ok(())
    }
}

fn scope_of(execution: &Execution) -> Option<NoteScope> {
    let thread = || execution.thread.as_ref().map(|id| NoteScope::Thread(id.as_str().into()));
    execution.resource.clone().map(NoteScope::Resource).or_else(thread)
}

fn source_of(execution: &Execution) -> NoteSource {
    let mut source = NoteSource { by: Arc::from(TAG), ..NoteSource::default() };
    source.thread.clone_from(&execution.thread);
    source
}

fn line(note: &Note) -> String {
    let day = note.created_at.iso();
    format!("[{}] {}", day.get(..10).unwrap_or(&day), note.text)
}

impl Layer for Episodes {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let Some(scope) = scope_of(&cx.execution) else { return Ok(Recalled::nothing()) };
        let others_only = matches!(scope, NoteScope::Resource(_)) && cx.execution.thread.is_some();
        let newest = self.memory.newest(vec![scope], Some(TAG), cx.now, self.kept).await?;
        let told = |note: &&Note| !(others_only && note.source.thread == cx.execution.thread);
        let lines = newest.iter().filter(told).take(self.shown).map(line);
        let shown = listed("episodes", "Earlier work, the newest first.", lines, ask.budget, cx);
        Ok(shown.map_or_else(Recalled::nothing, Recalled::text))
    }

    async fn complete(&self, ending: Ending, cx: &LayerCx) -> Result<Update, MemoryError> {
        let scope = scope_of(&cx.execution).filter(|_| cx.execution.depth == 0 && ending != Ending::Paused);
        let Some(scope) = scope else { return Ok(Update::Keep) };
        if let Some(summary) = self.summary(cx).await? {
            let text = format!("({ending}) {summary}");
            let draft = NoteDraft::new(text, scope.clone()).tagged([TAG]);
            self.memory.add(draft.from_source(source_of(&cx.execution)), cx.now).await?;
            self.trim(&scope, cx).await?;
        }
        Ok(Update::Keep)
    }
}
