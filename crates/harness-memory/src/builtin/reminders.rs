//! Reminders: what a model tends to forget, said again now and then.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::message::Message;
use serde::{Deserialize, Serialize};

use super::text::fenced;
use crate::MemoryError;
use crate::layer::{
    AppendAsk, Appended, Hook, Layer, LayerCx, LayerDef, Placement, RecallAsk, Recalled, Update,
};

type OnView = Arc<dyn Fn(&LayerCx) -> bool + Send + Sync>;
type OnMessage = Arc<dyn Fn(&Message) -> bool + Send + Sync>;

#[derive(Clone)]
enum Trigger {
    View(OnView),
    Message(OnMessage),
}

/// A text that is shown when something happens, and then not again for a while.
#[derive(Clone, derive_more::Debug)]
pub struct Reminder {
    id: Arc<str>,
    text: Arc<str>,
    #[debug(skip)]
    trigger: Trigger,
    every: u32,
    at_most: u32,
}

impl Reminder {
    /// `text`, shown in the first view and then in every tenth.
    pub fn new(id: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let trigger = Trigger::View(Arc::new(|_| true));
        Self { id: id.into(), text: text.into(), trigger, every: 10, at_most: u32::MAX }
    }

    /// Shows it only in views for which `is_due` returns true.
    #[must_use]
    pub fn when(self, is_due: impl Fn(&LayerCx) -> bool + Send + Sync + 'static) -> Self {
        Self { trigger: Trigger::View(Arc::new(is_due)), ..self }
    }

    /// Shows it in the view after a message for which `is_due` returns true.
    #[must_use]
    pub fn after(self, is_due: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Self {
        Self { trigger: Trigger::Message(Arc::new(is_due)), ..self }
    }

    /// Shows it at most once in so many views.
    #[must_use]
    pub fn every(self, views: u32) -> Self {
        Self { every: views.max(1), ..self }
    }

    /// Shows it at most so many times in an execution.
    #[must_use]
    pub fn at_most(self, times: u32) -> Self {
        Self { at_most: times, ..self }
    }
}

/// Shows reminders as `<system-reminder>` blocks, throttled. They come after the history and are never part of the
/// transcript.
#[derive(Clone, Debug)]
pub struct Reminders {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    reminders: Vec<Reminder>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    /// Views so far.
    views: u32,
    /// By reminder: in which view it was shown last, and how often.
    shown: BTreeMap<String, (u32, u32)>,
    /// Reminders that a message asked for.
    pending: Vec<String>,
}

impl State {
    fn may_show(&self, reminder: &Reminder) -> bool {
        self.shown.get(&*reminder.id).is_none_or(|(last, times)| {
            self.views.saturating_sub(*last) >= reminder.every && *times < reminder.at_most
        }) && reminder.at_most > 0
    }
}

impl Reminders {
    /// These reminders, shown in this order.
    pub fn new(reminders: impl IntoIterator<Item = Reminder>) -> Self {
        let def =
            LayerDef::new("reminders", 80, [Hook::Append, Hook::Recall]).with_placement(Placement::Live);
        Self { def, reminders: reminders.into_iter().collect() }
    }
}

impl Layer for Reminders {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn on_append(&self, ask: AppendAsk, cx: &LayerCx) -> Result<Appended, MemoryError> {
        let mut state: State = cx.state_as()?;
        let before = state.pending.len();
        for reminder in &self.reminders {
            if let Trigger::Message(is_due) = &reminder.trigger
                && ask.items.iter().any(|item| is_due(item))
                && !state.pending.iter().any(|id| **id == *reminder.id)
            {
                state.pending.push(reminder.id.to_string());
            }
        }
        let update = if state.pending.len() == before { Update::Keep } else { Update::set(&state)? };
        Ok(Appended::items(ask.items).with_state(update))
    }

    async fn recall(&self, _ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let mut state: State = cx.state_as()?;
        state.views = state.views.saturating_add(1);
        let pending = std::mem::take(&mut state.pending);
        let mut blocks = Vec::new();
        for reminder in &self.reminders {
            let is_due = match &reminder.trigger {
                Trigger::View(is_due) => is_due(cx),
                Trigger::Message(_) => pending.iter().any(|id| **id == *reminder.id),
            };
            if is_due && state.may_show(reminder) {
                let times = state.shown.get(&*reminder.id).map_or(0, |(_, times)| *times);
                state.shown.insert(reminder.id.to_string(), (state.views, times.saturating_add(1)));
                blocks.push(fenced("system-reminder", &reminder.text));
            }
        }
        Ok(Recalled::text(blocks.join("\n")).with_state(Update::set(&state)?))
    }
}
