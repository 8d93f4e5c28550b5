//! The thinking level of the model.

use harness::core::port::ThinkingLevel;

use super::Desk;
use crate::chat::command::{LEVELS, Thinking};

impl Desk {
    /// Shows or changes the thinking level of the next runs.
    pub(super) fn think(&mut self, change: Thinking) {
        if !self.chat.has_thinking {
            let model = self.app.model().unwrap_or_else(|| "this model".to_owned());
            return self.app.complain(&format!("{model} has no thinking levels"));
        }
        let current = self.chat.thread.config().thinking;
        let level = match change {
            Thinking::Show => {
                let text =
                    format!("thinking level: {} (change it with /thinking LEVEL or Alt-T)", shown(current));
                return self.app.tell(&text);
            }
            Thinking::Set(level) => level,
            Thinking::Next => next(current),
        };
        self.chat.thread.set_thinking(level);
        self.note_thinking();
        if change != Thinking::Next {
            self.app.tell(&format!("thinking level {} from the next message on", shown(level)));
        }
    }

    /// Updates the status line.
    pub(super) fn note_thinking(&mut self) {
        let level = self.chat.thread.config().thinking.filter(|_| self.chat.has_thinking);
        self.app.about_mut().thinking = level;
    }
}

fn shown(level: Option<ThinkingLevel>) -> &'static str {
    level.map_or("default", ThinkingLevel::as_str)
}

/// The level that follows: from the model's default over all levels back to it.
fn next(level: Option<ThinkingLevel>) -> Option<ThinkingLevel> {
    let Some(level) = level else { return LEVELS.first().copied() };
    let at = LEVELS.iter().position(|known| *known == level)?;
    LEVELS.get(at + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_cycle_from_the_default_back_to_it() {
        let mut level = None;
        let mut seen = Vec::new();
        for _ in 0..6 {
            level = next(level);
            seen.push(shown(level));
        }
        assert_eq!(seen, ["off", "minimal", "low", "medium", "high", "default"]);
    }
}
