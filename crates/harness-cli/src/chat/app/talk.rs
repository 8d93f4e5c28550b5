//! The conversation as lines: finished lines, and the answer and calls in progress.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

use harness::core::event::{Event, EventKind};
use harness::core::message::{AssistantMessage, Block, Message, ToolCall, UserMessage};
use harness::core::port::DeltaPart;
use harness::core::tool::ToolOutcome;
use harness::core::{CallId, End, Outcome, StopReason, Time};

use super::blocks::Blocks;
use super::calls::{self, Calls, Over, shown_call};
use super::edits;
use super::notes;
use crate::chat::attach;
use crate::render::line::{Line, Look, Styling, Text};
use crate::render::markdown::MarkdownStream;
use crate::render::picture::{Picture, Protocol};
use crate::render::{BAD, BOLD, DIM, GOOD, NOTE, why};
use crate::terminal::Paint;

/// Maximum number of lines waiting to be drawn; older ones are dropped with a notice. They wait only while the
/// terminal does not accept output.
const MOST_LINES: usize = 100_000;

/// Maximum size in bytes of an answer that is compared with its stream.
const MOST_STREAMED: usize = 4 << 20;

/// Maximum size in bytes of an answer that is laid out again when the width changes.
const MOST_LAID_OUT: usize = 256 << 10;

/// Maximum number of shown lines of a command's output.
const MOST_SHOWN: usize = 400;

/// Lines of a message of the user that is shown in full, for example with a long paste.
const LONG_MESSAGE: usize = 40;

/// Shown lines of a longer message.
const MESSAGE_START: usize = 10;

/// Kind of the last block. Steps follow each other directly; a blank line separates all other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// Number of its finished lines.
    rows: usize,
}

/// Lines of the conversation: the finished ones, the answer in progress and running calls.
pub(super) struct Talk {
    styling: Styling,
    /// How the terminal shows images, if it can.
    pub(super) pictures: Option<Protocol>,
    width: usize,
    finished: VecDeque<Line>,
    blocks: Blocks,
    last: Kind,
    /// Kind of the block before those that are laid out again.
    settled: Kind,
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
            pictures: None,
            width,
            finished: VecDeque::new(),
            blocks: Blocks::default(),
            last: Kind::Nothing,
            settled: Kind::Nothing,
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

    /// Lays out the end of the conversation again, for the current width.
    pub(super) fn reflow(&mut self) -> Vec<Line> {
        self.last = self.settled;
        for (kind, lines) in self.blocks.lines(self.width) {
            self.separate(kind);
            self.finish_all(lines);
        }
        if let Some(answer) = self.answer.as_mut().filter(|answer| answer.streamed.len() <= MOST_LAID_OUT) {
            answer.markdown = MarkdownStream::new(self.width, self.styling);
            answer.rows = 0;
            let lines = answer.markdown.push(&answer.streamed);
            self.answer_lines(lines);
        }
        self.take_finished()
    }

    /// Leaves what is shown as it is, whatever width the terminal will have.
    pub(super) fn settle(&mut self) {
        self.blocks.clear();
        self.settled = self.last;
    }

    /// Takes the lines finished since the last call.
    pub(super) fn take_finished(&mut self) -> Vec<Line> {
        self.finished.drain(..).collect()
    }

    /// Lines of the answer that may still change.
    pub(super) fn coming(&self) -> Vec<Line> {
        let Some(answer) = &self.answer else { return Vec::new() };
        let mut lines = answer.markdown.partial();
        if answer.rows == 0 && !lines.is_empty() && self.last != Kind::Nothing {
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
            rows: 0,
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
        let before = self.answer.as_mut().map(|answer| {
            answer.rows += lines.len();
            answer.rows - lines.len()
        });
        if before == Some(0) || self.last != Kind::Answer {
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
        let Some(answer) = self.answer.take() else { return String::new() };
        if answer.streamed.len() > MOST_LAID_OUT {
            self.settle();
        } else if answer.rows > 0 {
            let (text, styling) = (answer.streamed.clone(), self.styling);
            self.blocks.keep(Kind::Answer, answer.rows, move |width| markdown_lines(&text, width, styling));
        }
        answer.streamed
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
            self.user(user);
        } else if let Message::ToolResult(result) = message {
            self.images(&result.content);
        }
    }

    /// Shows images, if the terminal can.
    fn images(&mut self, content: &[Block]) {
        let Some(protocol) = self.pictures else { return };
        for block in content {
            if let Block::Image(image) = block
                && let Some(picture) = Picture::of(image, protocol)
            {
                self.show(Kind::Told, move |width| picture.lines(width));
            }
        }
    }

    /// Shows a message of the user, or a shorter form of a generated one.
    fn user(&mut self, user: &UserMessage) {
        self.user_start(&attach::shown(&user.content), user.origin.as_deref(), LONG_MESSAGE);
        self.images(&user.content);
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
        let invoked = if origin == Some("skill") { invoked(text) } else { None };
        let text = invoked.unwrap_or_else(|| text.to_owned());
        self.show(Kind::User, move |width| user_lines(&text, most, width));
    }

    /// Shows a whole text as Markdown.
    pub(super) fn markdown(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let (text, styling) = (text.to_owned(), self.styling);
        self.show(Kind::Answer, move |width| markdown_lines(&text, width, styling));
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
    pub(super) fn recall(&mut self, messages: &[Arc<Message>]) {
        for message in messages {
            match &**message {
                Message::User(user) => self.user(user),
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
        let mark = Line::of(style, mark);
        self.show(Kind::Step, move |width| {
            let lines = wrapped.wrap(width.saturating_sub(2).max(4)).into_iter().enumerate();
            lines.map(|(row, line)| beside(if row == 0 { mark.clone() } else { Line::new() }, line)).collect()
        });
    }

    fn step_line(&mut self, text: Text) {
        self.show(Kind::Step, move |width| vec![one_row(&text, width)]);
    }

    /// Shows a notice of the chat; long lines are wrapped.
    pub(super) fn tell(&mut self, style: Paint, text: &str) {
        let text = text.to_owned();
        self.show(Kind::Told, move |width| {
            let wrap = |line| Text::of(line, &Look::of(style)).wrap(width);
            text.lines().flat_map(wrap).collect()
        });
    }

    /// Shows a call that succeeded; an edit of a file with its change.
    fn finished_call(&mut self, call: &Arc<ToolCall>, outcome: &ToolOutcome, took: &str) {
        let Some(edit) = edits::shown(call, outcome) else {
            return self.step_line(call_line(GOOD, "✓", &shown_call(call), took));
        };
        let head = call_line(GOOD, "✓", &(call.name.to_string(), edit.path.clone()), took);
        self.show(Kind::Step, move |width| {
            let rows = edit.rows(width.saturating_sub(2).max(4));
            let rows = rows.into_iter().map(|row| beside(Line::new(), row));
            iter::once(one_row(&head, width)).chain(rows).collect()
        });
    }

    /// Shows a command of the user with its result.
    pub(super) fn command(&mut self, line: &str, result: &str) {
        let mut head = Text::of("! ", &Look::of(NOTE));
        head.push(line, &Look::of(BOLD));
        let result = result.to_owned();
        self.show(Kind::User, move |width| {
            let mut lines = head.wrap(width);
            let output = calls::indented(&result, width, None);
            let hidden = output.len().saturating_sub(MOST_SHOWN);
            lines.extend(output.into_iter().take(MOST_SHOWN));
            if hidden > 0 {
                lines.push(Line::of(DIM, &format!("… {hidden} more lines")));
            }
            lines
        });
    }

    /// Shows a call in full.
    pub(super) fn whole_call(&mut self, call: Over) {
        self.show(Kind::Told, move |width| call.lines(width));
    }

    /// Shows whole calls, the newest last.
    pub(super) fn show_calls(&mut self, count: usize) {
        let calls = self.calls.last(count);
        if calls.is_empty() {
            return self.tell(DIM, "no tool calls yet");
        }
        self.show(Kind::Answer, move |width| calls.iter().flat_map(|call| call.lines(width)).collect());
    }

    /// Shows a block, and keeps it for another width of the terminal.
    fn show(&mut self, kind: Kind, layout: impl Fn(usize) -> Vec<Line> + Send + 'static) {
        let lines = layout(self.width);
        self.separate(kind);
        self.blocks.keep(kind, lines.len(), layout);
        self.finish_all(lines);
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

/// A text as Markdown.
fn markdown_lines(text: &str, width: usize, styling: Styling) -> Vec<Line> {
    let mut markdown = MarkdownStream::new(width, styling);
    let mut lines = markdown.push(text);
    lines.extend(markdown.finish());
    lines
}

/// A message of the user; of one with more than `most` lines its start.
fn user_lines(text: &str, most: usize, width: usize) -> Vec<Line> {
    let count = text.lines().count();
    let first = if count > most { MESSAGE_START } else { count };
    let wrap = |line| Text::of(line, &Look::of(BOLD)).wrap(width.saturating_sub(2));
    let rows = text.lines().take(first).flat_map(wrap).enumerate();
    let mark = |row| if row == 0 { Line::of(NOTE, "›") } else { Line::new() };
    let mut lines: Vec<Line> = rows.map(|(row, line)| beside(mark(row), line)).collect();
    if count > first {
        let rest = Line::of(DIM, &format!("… {} more lines", count - first));
        lines.push(beside(Line::new(), rest));
    }
    lines
}

/// A line behind a mark of one column.
fn beside(mut mark: Line, line: Line) -> Line {
    mark.pad(if mark.is_empty() { 2 } else { 1 });
    mark.append(line);
    mark
}

/// The start of a text, cut to one row.
pub(super) fn one_row(text: &Text, width: usize) -> Line {
    text.chop(width).into_iter().next().unwrap_or_default()
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
