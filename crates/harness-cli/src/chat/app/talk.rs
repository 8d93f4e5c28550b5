//! The conversation as lines: finished lines, and the answer and calls in progress.

use std::collections::VecDeque;

use harness::core::event::{Event, EventKind};
use harness::core::message::{AssistantMessage, Block, Message, ToolCall, UserMessage};
use harness::core::port::DeltaPart;
use harness::core::tool::ToolOutcome;
use harness::core::{CallId, End, Outcome, StopReason, Time};

use super::calls::{self, Calls, Over, shown_call};
use super::edits;
use super::notes;
use crate::chat::attach;
use crate::render::line::{Line, Look, Styling, Text};
use crate::render::markdown::MarkdownStream;
use crate::render::{BAD, BOLD, DIM, GOOD, NOTE, why};
use crate::terminal::Paint;

/// Maximum number of lines waiting to be drawn; older ones are dropped with a notice. They wait only while the
/// terminal does not accept output.
const MOST_LINES: usize = 100_000;

/// Maximum size in bytes of an answer that is compared with its stream.
const MOST_STREAMED: usize = 4 << 20;

/// Maximum number of shown lines of a command's output.
const MOST_SHOWN: usize = 400;

/// Lines of a message of the user that is shown in full, for example with a long paste.
const LONG_MESSAGE: usize = 40;

/// Shown lines of a longer message.
const MESSAGE_START: usize = 10;

/// Kind of the last block. Steps follow each other directly; a blank line separates all other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    User,
    Answer,
    Step,
    Told,
}

/// An answer in progress.
struct Answer {
    markdown: MarkdownStream,
    streamed: String,
    /// Whether some of its lines are finished.
    begun: bool,
}

/// Lines of the conversation: the finished ones, the answer in progress and running calls.
pub(super) struct Talk {
    styling: Styling,
    width: usize,
    finished: VecDeque<Line>,
    last: Kind,
    answer: Option<Answer>,
    /// Start of the model call in flight.
    asking: Option<Time>,
    /// End of the model's reasoning.
    thought: String,
    pub(super) calls: Calls,
    /// Handoff call that was already shown.
    handed_off: Option<CallId>,
    /// The last answer without white space.
    answered: String,
}

impl Talk {
    pub(super) fn new(styling: Styling, width: usize) -> Self {
        Self {
            styling,
            width,
            finished: VecDeque::new(),
            last: Kind::Nothing,
            answer: None,
            asking: None,
            thought: String::new(),
            calls: Calls::default(),
            handed_off: None,
            answered: String::new(),
        }
    }

    pub(super) fn styling(&self) -> Styling {
        self.styling
    }

    /// Whether a blank line separates the finished lines from the lines in progress.
    pub(super) fn wants_gap(&self) -> bool {
        !matches!(self.last, Kind::Nothing | Kind::Step)
    }

    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width;
        if let Some(answer) = &mut self.answer {
            answer.markdown.set_width(width);
        }
    }

    /// Takes the lines finished since the last call.
    pub(super) fn take_finished(&mut self) -> Vec<Line> {
        self.finished.drain(..).collect()
    }

    /// Lines of the answer that may still change.
    pub(super) fn coming(&self) -> Vec<Line> {
        let Some(answer) = &self.answer else { return Vec::new() };
        let mut lines = answer.markdown.partial();
        if !answer.begun && !lines.is_empty() && self.last != Kind::Nothing {
            lines.insert(0, Line::new());
        }
        lines
    }

    /// Start of a model call without text so far, and the end of its reasoning.
    pub(super) fn thinking(&self) -> Option<(Time, &str)> {
        let quiet = self.answer.as_ref().is_none_or(|answer| answer.streamed.is_empty());
        self.asking.filter(|_| quiet).map(|since| (since, self.thought.as_str()))
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's list is open; a note says what else matters"
    )]
    pub(super) fn see_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ModelStepStarted { .. } => {
                self.end_answer();
                self.asking = Some(event.at);
            }
            EventKind::ModelStepFailed { .. } => drop(self.end_answer()),
            EventKind::MessageAppended { message, .. } => self.see_message(message),
            EventKind::ToolStarted { call } => self.calls.start(call, event.at),
            EventKind::HandedOff { call, from, to, .. } => {
                self.handed_off = Some(call.clone());
                self.calls.forget(call);
                self.step(NOTE, "↪", &format!("{from} → {to}"));
            }
            EventKind::ToolFinished { call, outcome, duration, .. } => {
                self.calls.finish(call, outcome, *duration);
                if self.handed_off.as_ref() != Some(&call.id) {
                    self.finished_call(call, outcome, &duration.to_string());
                }
            }
            EventKind::ToolFailed { call, outcome, duration, ran, .. } => {
                self.calls.finish(call, outcome, *duration);
                let why = outcome.error.as_ref().map_or("", |error| error.message.as_str());
                let took = if *ran { duration.to_string() } else { "did not run".to_owned() };
                self.step_line(call_line(BAD, "✗", &shown_call(call), &format!("{took}: {why}")));
            }
            EventKind::RunFinished { end } => self.see_end(end),
            other => {
                if let Some((style, mark, text)) = notes::note(other) {
                    self.step(style, mark, &text);
                }
            }
        }
    }

    pub(super) fn see_delta(&mut self, part: &DeltaPart, now: Time) {
        match part {
            DeltaPart::Text(text) => self.stream(text),
            DeltaPart::Thinking(text) => {
                self.thought.push_str(text);
                let from = self.thought.len().saturating_sub(200);
                let from = (from..self.thought.len()).find(|at| self.thought.is_char_boundary(*at));
                self.thought.drain(..from.unwrap_or(0));
            }
            DeltaPart::BackendToolStarted { id, name, input } => {
                self.calls.start_backend(id, name, input, now);
            }
            DeltaPart::BackendToolFinished { id, output, failed } => {
                if let Some((shown, took)) = self.calls.finish_backend(id, output, *failed, now) {
                    let (style, mark) = if *failed { (BAD, "✗") } else { (GOOD, "✓") };
                    self.step_line(call_line(style, mark, &shown, &took.to_string()));
                }
            }
            DeltaPart::Note(text) => self.step(NOTE, "•", text),
            DeltaPart::CallStarted { .. } | DeltaPart::CallArguments { .. } | _ => {}
        }
    }

    pub(super) fn see_update(&mut self, call: &CallId, content: &[Block]) {
        self.calls.update(call, content);
    }

    fn stream(&mut self, text: &str) {
        let (width, styling) = (self.width, self.styling);
        let answer = self.answer.get_or_insert_with(|| Answer {
            markdown: MarkdownStream::new(width, styling),
            streamed: String::new(),
            begun: false,
        });
        if answer.streamed.len() < MOST_STREAMED {
            answer.streamed.push_str(text);
        }
        let lines = answer.markdown.push(text);
        self.answer_lines(lines);
    }

    fn answer_lines(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        let begun = self.answer.as_mut().is_none_or(|answer| std::mem::replace(&mut answer.begun, true));
        if !begun || self.last != Kind::Answer {
            self.separate(Kind::Answer);
        }
        self.finish_all(lines);
    }

    /// Ends the answer and returns its text.
    fn end_answer(&mut self) -> String {
        self.asking = None;
        self.thought.clear();
        let Some(answer) = &self.answer else { return String::new() };
        let lines = answer.markdown.clone().finish();
        self.answer_lines(lines);
        self.answer.take().map(|answer| answer.streamed).unwrap_or_default()
    }

    /// Handles a message in the transcript.
    fn see_message(&mut self, message: &Message) {
        if let Message::Assistant(answer) = message {
            let streamed = self.end_answer();
            let whole = answer.joined_text();
            if squeezed(&streamed) != squeezed(&whole) {
                self.markdown(&whole);
            }
            self.answered = squeezed(&whole);
        } else if let Message::User(user) = message {
            self.user(&attach::shown(&user.content), user.origin.as_deref());
        }
    }

    /// Shows a message of the user, or a shorter form of a generated one.
    fn user(&mut self, text: &str, origin: Option<&str>) {
        self.user_start(text, origin, LONG_MESSAGE);
    }

    /// Shows a message of the user in full.
    pub(super) fn whole_user(&mut self, user: &UserMessage) {
        self.user_start(&attach::shown(&user.content), user.origin.as_deref(), usize::MAX);
    }

    /// Shows the start of a message that has more than `most` lines.
    fn user_start(&mut self, text: &str, origin: Option<&str>, most: usize) {
        if matches!(origin, Some("summary" | "hook")) {
            return self.step(DIM, "•", text);
        }
        self.separate(Kind::User);
        let prompt = Look::of(BOLD);
        let invoked = if origin == Some("skill") { invoked(text) } else { None };
        let text = invoked.as_deref().unwrap_or(text);
        let lines = text.lines().count();
        let first = if lines > most { MESSAGE_START } else { lines };
        for (number, line) in text.lines().take(first).enumerate() {
            let mut wrapped = Text::default();
            wrapped.push(line, &prompt);
            for (row, line) in wrapped.wrap(self.width.saturating_sub(2)).into_iter().enumerate() {
                let mut shown = Line::new();
                if number == 0 && row == 0 {
                    shown.push("› ", &Look::of(NOTE));
                } else {
                    shown.pad(2);
                }
                shown.append(line);
                self.finish(shown);
            }
        }
        if lines > first {
            let mut rest = Line::new();
            rest.pad(2);
            rest.push(&format!("… {} more lines", lines - first), &Look::of(DIM));
            self.finish(rest);
        }
    }

    /// Shows a whole text as Markdown.
    pub(super) fn markdown(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.separate(Kind::Answer);
        let mut markdown = MarkdownStream::new(self.width, self.styling);
        let lines = markdown.push(text);
        self.finish_all(lines.into_iter().chain(markdown.finish()));
    }

    fn see_end(&mut self, end: &End) {
        self.end_answer();
        self.calls.stop_all();
        if let Some(answer) = end.answer.as_deref()
            && squeezed(answer) != self.answered
        {
            self.markdown(answer);
        }
        if let Some(fault) = &end.persist_failed {
            self.step(BAD, "!", &format!("session not saved completely: {fault}"));
        }
        let cancelled = end.reason() == StopReason::Cancelled;
        if let Some(why) = why(&end.stop.evidence).filter(|_| !cancelled) {
            self.step(BAD, "!", &why);
        }
        match end.outcome() {
            Outcome::Completed | Outcome::NeedsClarification => {}
            Outcome::Failed if cancelled => self.step(NOTE, "■", "interrupted"),
            Outcome::AwaitingApproval | Outcome::Deferred => {
                self.step(NOTE, "■", &format!("{} ({})", end.outcome(), end.reason()));
            }
            Outcome::Failed => self.step(BAD, "■", &format!("failed ({})", end.reason())),
        }
    }

    /// Shows earlier messages to a returning user.
    pub(super) fn recall(&mut self, messages: &[std::sync::Arc<Message>]) {
        for message in messages {
            match &**message {
                Message::User(user) => self.user(&attach::shown(&user.content), user.origin.as_deref()),
                Message::Assistant(answer) => self.recall_answer(answer),
                Message::System(_) | Message::ToolResult(_) | Message::Custom(_) | _ => {}
            }
        }
    }

    fn recall_answer(&mut self, answer: &AssistantMessage) {
        self.markdown(&answer.joined_text());
        for call in answer.tool_calls() {
            self.step_line(call_line(DIM, "•", &shown_call(call), ""));
        }
    }

    /// Shows a finished step; its line breaks are kept.
    pub(super) fn step(&mut self, style: Paint, mark: &str, text: &str) {
        let mut wrapped = Text::default();
        for (number, line) in text.lines().enumerate() {
            if number > 0 {
                wrapped.break_line();
            }
            wrapped.push(line, &Look::default());
        }
        let lines = wrapped.wrap(self.width.saturating_sub(2).max(4));
        self.separate(Kind::Step);
        for (number, line) in lines.into_iter().enumerate() {
            let mut shown = Line::new();
            if number == 0 {
                shown.push(mark, &Look::of(style));
                shown.pad(1);
            } else {
                shown.pad(2);
            }
            shown.append(line);
            self.finish(shown);
        }
    }

    fn step_line(&mut self, text: Text) {
        self.separate(Kind::Step);
        let line = text.chop(self.width).into_iter().next();
        self.finish(line.unwrap_or_default());
    }

    /// Shows a notice of the chat; long lines are wrapped.
    pub(super) fn tell(&mut self, style: Paint, text: &str) {
        self.separate(Kind::Told);
        for line in text.lines() {
            let mut wrapped = Text::default();
            wrapped.push(line, &Look::of(style));
            self.finish_all(wrapped.wrap(self.width));
        }
    }

    /// Shows a call that succeeded; an edit of a file with its change.
    fn finished_call(&mut self, call: &ToolCall, outcome: &ToolOutcome, took: &str) {
        let width = self.width.saturating_sub(2).max(4);
        let Some((path, rows)) = edits::shown(call, outcome, width) else {
            return self.step_line(call_line(GOOD, "✓", &shown_call(call), took));
        };
        self.step_line(call_line(GOOD, "✓", &(call.name.to_string(), path), took));
        for row in rows {
            let mut line = Line::new();
            line.pad(2);
            line.append(row);
            self.finish(line);
        }
    }

    /// Shows a command of the user with its result.
    pub(super) fn command(&mut self, line: &str, result: &str) {
        self.separate(Kind::User);
        let mut head = Text::default();
        head.push("! ", &Look::of(NOTE));
        head.push(line, &Look::of(BOLD));
        self.finish_all(head.wrap(self.width));
        let lines = calls::indented(result, self.width, None);
        let hidden = lines.len().saturating_sub(MOST_SHOWN);
        self.finish_all(lines.into_iter().take(MOST_SHOWN));
        if hidden > 0 {
            self.finish(Line::of(DIM, &format!("… {hidden} more lines")));
        }
    }

    /// Shows a call in full.
    pub(super) fn whole_call(&mut self, call: &Over) {
        self.separate(Kind::Told);
        self.finish_all(call.lines(self.width));
    }

    /// Shows whole calls, the newest last.
    pub(super) fn show_calls(&mut self, count: usize) {
        let lines = self.calls.whole(count, self.width);
        if lines.is_empty() {
            return self.tell(DIM, "no tool calls yet");
        }
        self.separate(Kind::Told);
        self.finish_all(lines);
        self.last = Kind::Answer;
    }

    /// Adds a blank line between different kinds of blocks.
    fn separate(&mut self, kind: Kind) {
        let together = kind == Kind::Step && self.last == kind;
        if self.last != Kind::Nothing && !together {
            self.finish(Line::new());
        }
        self.last = kind;
    }

    fn finish_all(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            self.finish(line);
        }
    }

    fn finish(&mut self, line: Line) {
        if self.finished.len() >= MOST_LINES {
            self.finished.pop_front();
        }
        self.finished.push_back(line);
    }
}

/// `✓ look {"at":"left"}  12 ms`; arguments are shortened to fit.
fn call_line(style: Paint, mark: &str, call: &(String, String), took: &str) -> Text {
    let (name, arguments) = call;
    let mut line = Text::default();
    line.push(mark, &Look::of(style));
    line.push(" ", &Look::default());
    line.push(name, &Look::of(BOLD));
    let room = if took.is_empty() { String::new() } else { format!(" {took}") };
    line.push(&room, &Look::of(DIM));
    if arguments != "{}" {
        line.push(&format!(" {arguments}"), &Look::of(DIM));
    }
    line
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The command that loaded the skill of a message.
fn invoked(message: &str) -> Option<String> {
    let (name, rest) = message.strip_prefix("<skill name=\"")?.split_once('"')?;
    let (_, said) = rest.rsplit_once("\n</skill>")?;
    Some(format!("/skill:{name} {}", said.trim()))
}
