//! The chat as a state machine without a terminal: keys and events in, lines and actions out.
//!
//! [`talk`] folds events into lines, [`calls`] tracks tool calls, [`asks`] handles approvals, [`view`] lays out the
//! live area below the conversation.

mod asks;
mod blocks;
mod calls;
mod edits;
mod notes;
mod talk;
#[cfg(test)]
mod tests;
mod transcript;
mod view;

use std::sync::Arc;

use harness::core::event::{Event, EventKind};
use harness::core::message::{Message, Usage};
use harness::core::outcome::TotalUsage;
use harness::core::port::{ProposedCall, ThinkingLevel};
use harness::core::{CallId, EntryId, Millis, Time};
use harness::runtime::{Status, ThreadEvent};
use harness::tools::FilePreview;

use super::command::{self, Command, Said, Thinking};
use super::composer::{Code, Complete, Composer, Edit, Key};
use crate::render::line::{Line, Styling};
use crate::render::picture::Protocol;
use crate::render::{BAD, DIM, NOTE};

use asks::{Asks, Pressed};
pub(crate) use asks::{Scope, Verdict};
use talk::Talk;

/// An action that the owner of the thread performs for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send this message to the agents.
    Say(String),
    /// Run this command.
    Do(Command),
    /// Resolve this line: it starts with a slash and is not a built-in command.
    Guess(String),
    /// Abort the current work.
    Interrupt,
    /// Remove the last queued message.
    Recall,
    /// Apply a decision on a call.
    Answer { proposed: Box<ProposedCall>, verdict: Verdict },
    /// Clear the terminal.
    Wipe,
    /// Change to the next mode.
    NextMode,
    /// Run this command line of the user.
    Run(String),
    /// Open the draft in the user's editor.
    Draft,
    /// Attach the image on the clipboard.
    PasteImage,
    /// Show the whole conversation in the user's pager.
    Transcript,
    /// Suspend the chat.
    Suspend,
    /// Exit.
    Quit,
}

/// A queued message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) entry: EntryId,
    pub(crate) text: String,
}

/// Notice for the page keys.
const SCROLLING: &str = "earlier output is in the scrollback of your terminal: use Shift-PgUp, the mouse wheel or its search. Ctrl-T \
     opens the whole conversation in a pager";

/// Duration of a run after which its end calls the user.
const LONG: Millis = Millis(10_000);

/// Activity of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Working { since: Time },
    Stopping,
    Compacting { since: Time },
}

/// Content of the status line below the editor.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The model, or the source of answers.
    pub(crate) model: String,
    /// Thinking level that the user has set.
    pub(crate) thinking: Option<ThinkingLevel>,
    /// Directory and branch, if tools work in the directory.
    pub(crate) place: Option<String>,
    /// Context window in tokens, if it is known.
    pub(crate) window: Option<u64>,
    /// Name of the current mode, if there are modes.
    pub(crate) mode: Option<String>,
}

/// State of the chat screen.
pub(crate) struct App {
    composer: Composer,
    talk: Talk,
    asks: Asks,
    waiting: Vec<Waiting>,
    doing: Doing,
    /// Whether Ctrl-C was the last key.
    leaving: bool,
    /// Whether Esc was the last key, without anything to interrupt.
    rewinding: bool,
    /// Start and line of the user's command in flight.
    command: Option<(Time, String)>,
    /// Call whose denial reason is being written.
    explaining: bool,
    /// Whether the user is to be called: a long run ended or waits for an approval.
    calls_user: bool,
    /// Whether the failure of the current compaction was reported.
    failure_told: bool,
    about: About,
    used: TotalUsage,
    /// Tokens of the last request and its response.
    in_context: Option<u64>,
    columns: usize,
    rows: usize,
    now: Time,
}

impl App {
    /// Creates an empty conversation for a terminal of that size.
    pub(crate) fn new(
        styling: Styling,
        (columns, rows): (usize, usize),
        history: Vec<String>,
        complete: Box<dyn Complete>,
    ) -> Self {
        let mut asks = Asks::default();
        asks.resize(room(columns), rows);
        Self {
            composer: Composer::new(history, complete),
            talk: Talk::new(styling, room(columns)),
            asks,
            waiting: Vec::new(),
            doing: Doing::Nothing,
            leaving: false,
            rewinding: false,
            command: None,
            explaining: false,
            calls_user: false,
            failure_told: false,
            about: About::default(),
            used: TotalUsage::default(),
            in_context: None,
            columns,
            rows,
            now: Time(0),
        }
    }

    /// Content of the status line.
    pub(crate) fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    /// Handles a resize of the terminal.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns, rows);
        self.talk.set_width(room(columns));
        self.asks.resize(room(columns), rows);
    }

    /// Sets how the terminal shows images.
    pub(crate) fn set_pictures(&mut self, protocol: Option<Protocol>) {
        self.talk.pictures = protocol;
    }

    /// Lines of the end of the conversation, laid out for the size of the terminal.
    pub(crate) fn reflow(&mut self) -> Vec<Line> {
        self.talk.reflow()
    }

    /// Leaves what is shown as it is, because it is no longer directly above the live area.
    pub(crate) fn settle(&mut self) {
        self.talk.settle();
    }

    /// Sets the current time.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Sets the queued messages.
    pub(crate) fn set_waiting(&mut self, waiting: Vec<Waiting>) {
        self.waiting = waiting;
    }

    /// Whether something on the screen is animated.
    pub(crate) fn is_at_work(&self) -> bool {
        self.doing != Doing::Nothing || self.command.is_some()
    }

    /// Sets the user's command in flight.
    pub(crate) fn set_command(&mut self, line: Option<&str>) {
        self.command = line.map(|line| (self.now, line.to_owned()));
    }

    /// Shows a command of the user that has ended.
    pub(crate) fn show_command(&mut self, line: &str, result: &str) {
        self.talk.command(line, result);
    }

    /// Text of the editor.
    pub(crate) fn draft(&self) -> &str {
        self.composer.text()
    }

    /// Replaces the text of the editor.
    pub(crate) fn set_draft(&mut self, text: &str) {
        if let Edit::Cut { bytes } = self.composer.set_text(text) {
            self.complain(&format!("message too long: {bytes} bytes were dropped"));
        }
    }

    /// Model that answers, if known.
    pub(crate) fn model(&self) -> Option<String> {
        Some(self.about.model.clone()).filter(|model| !model.is_empty())
    }

    /// Usage so far.
    pub(crate) fn used(&self) -> &TotalUsage {
        &self.used
    }

    /// Takes the lines finished since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Line> {
        self.talk.take_finished()
    }

    /// Adds a notice that is not part of the conversation.
    pub(crate) fn tell(&mut self, text: &str) {
        self.talk.tell(DIM, text);
    }

    /// Adds a notice of a failure.
    pub(crate) fn complain(&mut self, text: &str) {
        self.talk.tell(BAD, text);
    }

    /// Reports a failed compaction, once.
    pub(crate) fn not_shorter(&mut self, text: &str) {
        if !std::mem::take(&mut self.failure_told) {
            self.complain(text);
        }
    }

    /// Shows earlier messages.
    pub(crate) fn recall(&mut self, messages: &[std::sync::Arc<Message>]) {
        self.talk.recall(messages);
    }

    /// Inserts a text into the editor before its current content.
    pub(crate) fn write(&mut self, text: &str) {
        let written = self.composer.text();
        let text = if written.is_empty() { text.to_owned() } else { format!("{text}\n{written}") };
        self.composer.set_text(&text);
    }

    /// Handles an event of the thread.
    pub(crate) fn see(&mut self, told: &ThreadEvent) {
        match told {
            ThreadEvent::Event(event) => self.see_event(event),
            ThreadEvent::Delta(part) => self.talk.see_delta(part, self.now),
            ThreadEvent::ToolUpdate { call, content } => self.talk.see_update(&call.id, content),
            ThreadEvent::Status(status) => self.see_status(status),
            ThreadEvent::RunFailed { error, .. } => {
                self.asks.clear();
                self.complain(&error.to_string());
            }
            ThreadEvent::RunEnded(report) => {
                self.asks.clear();
                if let Some(failed) = &report.record_failed {
                    self.complain(&format!("run record not written: {failed}"));
                }
            }
            ThreadEvent::Queue { .. } | ThreadEvent::RunStarted { .. } | _ => {}
        }
    }

    fn see_event(&mut self, event: &Event) {
        if let EventKind::ApprovalDecided { call, decision, .. } = &event.kind {
            self.asks.remove(call, self.now);
            let denied = decision == "denied";
            self.talk.step(if denied { BAD } else { NOTE }, "•", &format!("approval {decision}"));
        }
        self.used.count(&event.kind);
        if let EventKind::ModelStepFinished { usage: Some(usage), .. } = &event.kind {
            self.in_context = context_tokens(usage).or(self.in_context);
        }
        if matches!(event.kind, EventKind::CompactionFailed { .. }) {
            self.failure_told = true;
        } else if let EventKind::ModelStepStarted { model: Some(model), .. } = &event.kind
            && self.about.model.is_empty()
        {
            self.about.model = model.to_string();
        }
        self.talk.see_event(event);
    }

    /// Whether the user is to be called, once for each reason.
    pub(crate) fn take_call(&mut self) -> bool {
        std::mem::take(&mut self.calls_user)
    }

    fn see_status(&mut self, status: &Status) {
        if let (Doing::Working { since }, Status::Idle | Status::AwaitingApproval { .. }) =
            (self.doing, status)
        {
            self.calls_user |= self.now.since(since) >= LONG;
        }
        self.doing = match status {
            Status::Generating { since, .. } | Status::AwaitingApproval { since, .. } => {
                Doing::Working { since: *since }
            }
            Status::Aborting { .. } => Doing::Stopping,
            Status::Compacting => {
                self.failure_told = false;
                Doing::Compacting { since: self.now }
            }
            Status::Idle | _ => Doing::Nothing,
        };
        if self.doing == Doing::Nothing {
            self.asks.clear();
            self.explaining = false;
        }
    }

    /// Sets the held calls, and the change that the first one makes if it changes a file.
    pub(crate) fn set_asks<'c>(
        &mut self,
        held: impl IntoIterator<Item = &'c ProposedCall>,
        preview: Option<Arc<FilePreview>>,
    ) {
        let open = self.asks.set(held, preview, self.now);
        self.explaining &= open;
    }

    /// Whether the reason of a denial is being written.
    pub(crate) fn is_explaining(&self) -> bool {
        self.explaining
    }

    /// Handles a decision on a call.
    pub(crate) fn answered(&mut self, call: &CallId) {
        self.asks.remove(call, self.now);
        self.explaining = false;
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: Key) -> Option<Action> {
        if key.ctrl && key.code == Code::Char('c') {
            return self.control_c();
        }
        self.leaving = false;
        let rewinding = std::mem::take(&mut self.rewinding);
        if let Some(wish) = self.decide(&key) {
            return wish;
        }
        let empty = self.composer.text().is_empty() && !self.explaining;
        if empty && key.code == Code::Char('?') && !key.ctrl && !key.alt {
            self.tell(&command::keys());
            return None;
        }
        if key.alt && key.code == Code::Up {
            return (!self.waiting.is_empty()).then_some(Action::Recall);
        }
        match self.composer.key(key.clone()) {
            Edit::Submit(text) => self.submit(&text),
            Edit::Cut { bytes } => {
                self.complain(&format!("message too long: {bytes} bytes were dropped"));
                None
            }
            Edit::Changed => None,
            Edit::None if key.code == Code::Esc && empty && !self.is_at_work() => {
                self.rewinding = !rewinding;
                rewinding.then_some(Action::Do(Command::Undo(1)))
            }
            Edit::None => self.own_key(&key),
        }
    }

    /// Handles a key for an open approval; `None` if there is none.
    #[expect(clippy::option_option, reason = "a key that is taken may wish for nothing")]
    fn decide(&mut self, key: &Key) -> Option<Option<Action>> {
        if self.explaining || key.ctrl || key.alt || !self.composer.text().is_empty() {
            return None;
        }
        match self.asks.key(&key.code, self.now)? {
            Pressed::Decided(proposed, verdict) => Some(Some(Action::Answer { proposed, verdict })),
            Pressed::Why => {
                self.explaining = true;
                Some(None)
            }
            Pressed::Shown => Some(None),
        }
    }

    /// Interrupts on the first press and exits on the second.
    fn control_c(&mut self) -> Option<Action> {
        if std::mem::replace(&mut self.leaving, true) {
            return Some(Action::Quit);
        }
        if self.is_at_work() {
            return Some(Action::Interrupt);
        }
        if !self.composer.text().is_empty() {
            self.leaving = false;
            self.composer.set_text("");
        }
        None
    }

    /// Handles a key that the editor does not use.
    fn own_key(&mut self, key: &Key) -> Option<Action> {
        match key.code {
            Code::Esc if self.explaining => {
                self.explaining = false;
                self.composer.set_text("");
                None
            }
            Code::Esc => self.is_at_work().then_some(Action::Interrupt),
            Code::Enter if self.explaining => self.explained(""),
            Code::Char('d') if key.ctrl && self.composer.text().is_empty() => Some(Action::Quit),
            Code::Char('l') if key.ctrl => Some(Action::Wipe),
            Code::BackTab => self.about.mode.is_some().then_some(Action::NextMode),
            Code::Char('t') if key.alt => Some(Action::Do(Command::Thinking(Thinking::Next))),
            Code::PageUp | Code::PageDown => {
                self.tell(SCROLLING);
                None
            }
            Code::Char('g') if key.ctrl => Some(Action::Draft),
            Code::Char('t') if key.ctrl => Some(Action::Transcript),
            Code::Char('v') if key.ctrl => Some(Action::PasteImage),
            Code::Char('z') if key.ctrl => Some(Action::Suspend),
            Code::Char('o') if key.ctrl => {
                self.talk.show_calls(1);
                None
            }
            Code::Char(_)
            | Code::Enter
            | Code::Tab
            | Code::Backspace
            | Code::Delete
            | Code::Left
            | Code::Right
            | Code::Up
            | Code::Down
            | Code::Home
            | Code::End
            | Code::Paste(_) => None,
        }
    }

    fn explained(&mut self, reason: &str) -> Option<Action> {
        self.explaining = false;
        let (proposed, verdict) = self.asks.deny(reason)?;
        Some(Action::Answer { proposed, verdict })
    }

    fn submit(&mut self, text: &str) -> Option<Action> {
        if self.explaining {
            return self.explained(text);
        }
        match command::read(text) {
            Said::Text(text) if text.is_empty() => None,
            Said::Text(text) => Some(Action::Say(text)),
            Said::Run(line) => Some(Action::Run(line)),
            Said::Unknown(line) => Some(Action::Guess(line)),
            Said::Misused(written) => {
                self.complain(&format!("usage: {written}"));
                None
            }
            Said::Command(Command::Calls(count)) => {
                self.talk.show_calls(count);
                None
            }
            Said::Command(Command::Quit) => Some(Action::Quit),
            Said::Command(command) => Some(Action::Do(command)),
        }
    }
}

/// Tokens of a request and its response.
fn context_tokens(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write, usage.output];
    usage.input.map(|_| parts.into_iter().flatten().sum())
}

/// Columns for text. The last column stays empty because terminals wrap there in different ways.
fn room(columns: usize) -> usize {
    columns.saturating_sub(1).max(1)
}
