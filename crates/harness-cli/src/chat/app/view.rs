//! The live area below the conversation: text in progress, queue, editor and status line.

use harness::core::message::Cost;
use harness::core::{Millis, Time};

use super::asks::Keys;
use super::calls::Running;
use super::talk::one_row;
use super::{App, Doing, room};
use crate::chat::command::typed_command;
use crate::render::line::{Line, Look, Text, width};
use crate::render::screen::Frame;
use crate::render::{BAD, BOLD, DIM, NOTE};
use crate::terminal::Paint;

/// Frames of the spinner, 100 ms each.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Maximum rows of running calls, and of queued messages.
const MOST_CALLS: usize = 5;
const MOST_WAITING: usize = 4;

/// Maximum rows of the editor.
const MOST_EDITED: usize = 10;

/// Maximum rows of the editor beside a menu, and of a menu.
const MOST_BESIDE_MENU: usize = 3;
const MOST_CHOICES: usize = 8;

impl App {
    /// Renders the live area for the size of the terminal.
    pub(crate) fn view(&self) -> Frame {
        let width = room(self.columns);
        let mut rows = self.talk.coming();
        let mut below = self.work(width);
        below.extend(self.waits(width));
        if !below.is_empty() && (!rows.is_empty() || self.talk.wants_gap()) {
            rows.push(Line::new());
        }
        rows.extend(below);
        let mut rest = Vec::new();
        rest.push(Line::of(DIM, &"─".repeat(width)));
        let keys = match self.explaining {
            true => Keys::Explain,
            false if !self.composer.text().is_empty() => Keys::Write,
            false if self.asks.is_fresh(self.now) => Keys::Wait,
            false => Keys::Decide,
        };
        rest.extend(self.asks.rows(width, keys));
        let most = self.rows.saturating_sub(rest.len() + 3).clamp(1, MOST_EDITED);
        let most = if self.composer.has_menu() { most.min(MOST_BESIDE_MENU) } else { most };
        let menu = self.rows.saturating_sub(rest.len() + most + 2).clamp(1, MOST_CHOICES);
        let (prompt, style, hidden) = self.prompt();
        let indent = prompt.chars().count();
        let edited = self.composer.view(width.saturating_sub(indent).max(1), (most, menu), hidden);
        let before = hidden > 0 && self.composer.is_at_start();
        let column = if before { 0 } else { indent + edited.cursor.1 };
        let cursor = (rest.len() + edited.cursor.0, column);
        for (number, row) in edited.rows.into_iter().enumerate() {
            let mut line = if number == 0 { Line::of(style, prompt) } else { Line::new() };
            line.pad(if number == 0 { 0 } else { indent });
            line.append(row);
            rest.push(line);
        }
        rest.extend(edited.below);
        rest.push(self.state(width));
        // What does not fit goes at the top: it is in the conversation, or soon will be.
        let over = (rows.len() + rest.len()).saturating_sub(self.rows.max(2) - 1);
        rows.drain(..over.min(rows.len()));
        let above = rows.len();
        rows.extend(rest);
        Frame { rows, cursor: (above + cursor.0, cursor.1) }
    }

    /// The prompt of the editor, its style, and the length of the text's start that it shows instead.
    fn prompt(&self) -> (&'static str, Paint, usize) {
        if self.explaining {
            return ("why not? ", NOTE, 0);
        }
        if self.is_command_line() {
            return ("! ", BAD, usize::from(self.composer.text().starts_with('!')));
        }
        ("› ", NOTE, 0)
    }

    /// Whether Enter runs the text as a command.
    fn is_command_line(&self) -> bool {
        !self.explaining && !self.composer.has_search() && typed_command(self.composer.text()).is_some()
    }

    /// Running work.
    fn work(&self, width: usize) -> Vec<Line> {
        let running = self.talk.calls.running();
        let mut rows: Vec<Line> =
            running.iter().take(MOST_CALLS).map(|call| self.call(call, width)).collect();
        if running.len() > MOST_CALLS {
            rows.push(Line::of(DIM, &format!("  and {} more", running.len() - MOST_CALLS)));
        }
        if let Some((since, line)) = &self.command {
            rows.push(self.moving(&format!("! {}", self.took(*since)), line.clone(), width));
        }
        if !running.is_empty() || !self.asks.is_empty() {
            return rows;
        }
        if let Some((since, thought)) = self.talk.thinking() {
            let text = if thought.trim().is_empty() { "thinking" } else { thought.trim() };
            rows.push(self.moving(&format!("thinking {}", self.took(since)), tail(text, width), width));
        }
        rows
    }

    fn call(&self, call: &Running, width: usize) -> Line {
        let said = if call.update.is_empty() { &call.arguments } else { &call.update };
        let said = if said == "{}" { "" } else { said };
        let last = said.lines().last().unwrap_or_default().to_owned();
        self.moving(&format!("{} {}", call.name, self.took(call.since)), last, width)
    }

    /// `⠋ look 1.2 s {"at":"left"}`
    fn moving(&self, what: &str, rest: String, width: usize) -> Line {
        let mut text = Text::default();
        let at = usize::try_from(self.now.0.unsigned_abs() / 100).unwrap_or(0) % SPINNER.len();
        text.push(SPINNER.get(at).copied().unwrap_or("•"), &Look::of(NOTE));
        text.push(&format!(" {what}"), &Look::of(BOLD));
        if !rest.is_empty() && rest != "thinking" {
            text.push(&format!(" {rest}"), &Look::of(DIM));
        }
        one_row(&text, width)
    }

    fn took(&self, since: Time) -> Millis {
        let took = self.now.since(since);
        // Whole tenths, so that no digit flickers.
        Millis(took.0 / 100 * 100)
    }

    fn waits(&self, width: usize) -> Vec<Line> {
        let mut rows: Vec<Line> = Vec::new();
        for waiting in self.waiting.iter().take(MOST_WAITING) {
            let mut text = Text::default();
            text.push("queued: ", &Look::of(NOTE));
            text.push(&waiting.text, &Look::of(DIM));
            rows.push(one_row(&text, width));
        }
        if self.waiting.len() > MOST_WAITING {
            rows.push(Line::of(DIM, &format!("  and {} more", self.waiting.len() - MOST_WAITING)));
        }
        rows
    }

    /// The status line.
    fn state(&self, width: usize) -> Line {
        let mut text = Text::default();
        let hint = match self.doing {
            _ if self.leaving => "press Ctrl-C again to exit".to_owned(),
            _ if self.explaining => {
                "Enter denies the call and sends the reason to the model, Esc goes back".to_owned()
            }
            Doing::Nothing if self.command.is_some() => "Esc stops the command".to_owned(),
            Doing::Stopping => "stopping".to_owned(),
            Doing::Compacting { since } => format!("compacting {}", self.took(since)),
            Doing::Working { .. } if !self.asks.is_empty() => "awaiting approval · Esc interrupts".to_owned(),
            Doing::Working { since } => format!("working {} · Esc interrupts", self.took(since)),
            Doing::Nothing if self.is_command_line() => "runs in your shell".to_owned(),
            Doing::Nothing if self.rewinding => "press Esc again to edit your last message".to_owned(),
            Doing::Nothing => String::new(),
        };
        let mut parts = Vec::new();
        parts.extend(self.about.mode.clone());
        parts.extend(Some(self.about.model.clone()).filter(|model| !model.is_empty()));
        parts.extend(self.about.thinking.map(|level| format!("thinking {level}")));
        parts.extend(self.about.place.clone());
        if let (Some(used), Some(window @ 1..)) = (self.in_context, self.about.window) {
            parts.push(format!("{}% of {} context", used.saturating_mul(100) / window, short(window)));
        }
        if let (Some(input), Some(output)) = (self.used.input_tokens, self.used.output_tokens) {
            parts.push(format!("{} + {} tokens", short(input), short(output)));
        }
        parts
            .extend(self.used.cost.filter(|cost| *cost > Cost::default()).map(|cost| format!("cost {cost}")));
        if parts.is_empty() && hint.is_empty() {
            parts.push("/help".to_owned());
        }
        if !hint.is_empty() {
            parts.insert(0, hint);
        }
        text.push(&fitting(&parts, width), &Look::of(DIM));
        one_row(&text, width)
    }
}

/// The first part, and of the others those that fit.
fn fitting(parts: &[String], columns: usize) -> String {
    let (first, rest) = parts.split_first().map_or(("", parts), |(first, rest)| (first.as_str(), rest));
    rest.iter().fold(first.to_owned(), |line, part| {
        let longer = format!("{line} · {part}");
        if width(&longer) <= columns { longer } else { line }
    })
}

/// The end of a text that may be longer than a row.
fn tail(text: &str, width: usize) -> String {
    let room = width.saturating_sub(24).max(8);
    let line = text.lines().last().unwrap_or_default();
    let skipped = line.chars().count().saturating_sub(room);
    line.chars().skip(skipped).collect()
}

/// `950`, `12.3k`, `128k`, `4.5M`
fn short(count: u64) -> String {
    let (unit, name) = match count {
        0..1_000 => return count.to_string(),
        1_000..1_000_000 => (1_000, "k"),
        _ => (1_000_000, "M"),
    };
    match count % unit / (unit / 10) {
        0 => format!("{}{name}", count / unit),
        tenths => format!("{}.{tenths}{name}", count / unit),
    }
}
