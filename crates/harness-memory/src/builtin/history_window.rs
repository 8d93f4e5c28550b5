//! The newest part of the history.

use harness_core::message::Message;

use crate::MemoryError;
use crate::layer::{History, Hook, Layer, LayerCx, LayerDef, is_developer};

/// How far the window may grow to hold a user's and a model's message: this many times its size.
const MOST_GROWTH: usize = 4;
/// A system message among the first so many is shown before the window.
const HEAD: usize = 4;

/// Shows the newest messages of the history: at most `max_items`, more when among them there is no user
/// message or no answer, and never a result without its call.
#[derive(Clone, Debug)]
pub struct HistoryWindow {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    max_items: usize,
}

impl HistoryWindow {
    /// The newest `max_items` messages, 2 to 10,000.
    ///
    /// # Errors
    /// `INVALID_HISTORY_MAX_ITEMS`, when the number is out of bounds.
    pub fn new(max_items: usize) -> Result<Self, MemoryError> {
        if !(2..=10_000).contains(&max_items) {
            return Err(invalid(max_items));
        }
        Ok(Self { def: LayerDef::new("history", 275, [Hook::ProjectHistory]), max_items })
    }

    /// The newest `max_items` messages, from a number of a configuration.
    ///
    /// # Errors
    /// `INVALID_HISTORY_MAX_ITEMS`, when the number is fractional or out of bounds.
    pub fn from_number(max_items: f64) -> Result<Self, MemoryError> {
        // Few enough counts that trying them is simpler than a cast that is exact.
        let count = (2..=10_000_u16).find(|count| f64::from(*count).total_cmp(&max_items).is_eq());
        count.map_or_else(|| Err(invalid(max_items)), |count| Self::new(usize::from(count)))
    }

    /// The window over a history of more than `max_items` messages.
    fn window(&self, history: &History) -> History {
        let count = history.len();
        let most = self.max_items.saturating_mul(MOST_GROWTH);
        let mut start = self.start(history, count, count.saturating_sub(most));
        start = start.max(count.saturating_sub(most));
        let window = history.slice(start..count);
        let head = (0..start.min(HEAD)).find(|at| history.get(*at).is_some_and(|message| is_system(message)));
        let shown = match head {
            Some(at) => history.slice(at..at + 1).then(&window),
            None => window,
        };
        shown.paired()
    }

    /// Where the window begins so that both roles are in it. Nothing before `floor` is shown, so there it
    /// matters only whether the role occurs, which from the front is found soon.
    fn start(&self, history: &History, count: usize, floor: usize) -> usize {
        let newest = count.saturating_sub(self.max_items);
        let mut missing: Vec<fn(&Message) -> bool> = Vec::new();
        for role in [is_user as fn(&Message) -> bool, is_answer] {
            if !(newest..count).any(|at| history.get(at).is_some_and(|message| role(message))) {
                missing.push(role);
            }
        }
        let mut start = newest;
        for at in (floor..newest).rev() {
            let Some(message) = history.get(at) else { continue };
            if missing.is_empty() {
                return start;
            }
            let before = missing.len();
            missing.retain(|role| !role(message));
            if missing.len() != before {
                start = at;
            }
        }
        let earlier = |role: &fn(&Message) -> bool| history.iter().take(floor).any(|message| role(message));
        if missing.iter().any(earlier) { floor } else { start }
    }
}

fn invalid(got: impl std::fmt::Display) -> MemoryError {
    MemoryError::config(
        "INVALID_HISTORY_MAX_ITEMS",
        format!("history: maxItems must be an integer in [2, 10000], got {got}"),
    )
}

fn is_user(message: &Message) -> bool {
    matches!(message, Message::User(_))
}

fn is_answer(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| answer.content.iter().any(|block| block.as_text().is_some()))
}

fn is_system(message: &Message) -> bool {
    matches!(message, Message::System(_)) && !is_developer(message)
}

impl Layer for HistoryWindow {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn project_history(&self, history: History, _cx: &LayerCx) -> Result<History, MemoryError> {
        Ok(if history.len() <= self.max_items { history } else { self.window(&history) })
    }
}
