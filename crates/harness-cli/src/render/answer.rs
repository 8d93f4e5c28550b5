//! The answer on standard output.

use std::io::{self, Write};

use harness::core::OpId;

use super::harmless::harmless;
use super::line::{Line, Styling};
use super::markdown::MarkdownStream;
use super::screen::{Frame, Screen};
use crate::terminal::{self, Out, Stream};

/// Target of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerOn {
    /// A terminal with styles: Markdown, while it streams.
    Styled {
        /// Its columns and rows.
        size: fn() -> (usize, usize),
    },
    /// A terminal without styles: the text, while it streams.
    Terminal,
    /// A pipe or file: the text while it streams, and nothing else.
    Pipe,
    /// A pipe or file that receives only the final answer; without one, the last text.
    PipeAtEnd,
    /// A pipe or file that receives only an answer that its output schema accepts; without one, nothing.
    PipeAccepted,
}

impl AnswerOn {
    /// Detects the kind of standard output.
    pub(crate) fn stdout() -> Self {
        if !Stream::Out.is_terminal() {
            Self::Pipe
        } else if Stream::Out.has_styles() {
            Self::Styled { size }
        } else {
            Self::Terminal
        }
    }

    /// Target for a run of many turns, whose texts are not the answer before the end.
    pub(crate) fn at_end(self) -> Self {
        match self {
            Self::Pipe => Self::PipeAtEnd,
            Self::Styled { .. } | Self::Terminal | Self::PipeAtEnd | Self::PipeAccepted => self,
        }
    }

    /// Target for a run whose answers an output schema validates.
    pub(crate) fn accepted(self) -> Self {
        match self {
            Self::Pipe | Self::PipeAtEnd => Self::PipeAccepted,
            Self::Styled { .. } | Self::Terminal | Self::PipeAccepted => self,
        }
    }

    /// Writer for such answers.
    pub(crate) fn out(self) -> Out {
        match self {
            Self::Styled { .. } => terminal::drawing(),
            Self::Terminal | Self::Pipe | Self::PipeAtEnd | Self::PipeAccepted => terminal::payload(),
        }
    }
}

/// Columns and rows of the terminal; 80 and 24 if unknown.
pub(crate) fn size() -> (usize, usize) {
    match crossterm::terminal::size() {
        Ok((columns @ 1.., rows @ 1..)) => (columns.into(), rows.into()),
        Ok(_) | Err(_) => (80, 24),
    }
}

/// Shows answers.
pub(super) struct Answer<W: Write> {
    screen: Screen<W>,
    on: AnswerOn,
    /// Operation whose text was shown last, and that text.
    streamed: Option<(OpId, String)>,
    /// Its part that is not final yet.
    markdown: Option<MarkdownStream>,
    /// Whether the cursor is inside a line of shown text.
    inside_line: bool,
}

impl<W: Write> Answer<W> {
    pub(super) fn new(out: W, on: AnswerOn) -> Self {
        let screen = Screen::new(out, Styling::Colour);
        Self { screen, on, streamed: None, markdown: None, inside_line: false }
    }

    /// Whether text is being shown, below which nothing else can be drawn.
    pub(super) fn is_inside_line(&self) -> bool {
        self.inside_line
    }

    /// Adds text of an operation.
    pub(super) fn more(&mut self, op: OpId, text: &str) -> io::Result<()> {
        if self.streamed.as_ref().is_none_or(|(shown, _)| *shown != op) {
            self.end_line()?;
            self.streamed = Some((op, String::new()));
        }
        if let Some((_, shown)) = &mut self.streamed {
            shown.push_str(text);
        }
        match self.on {
            AnswerOn::Pipe => self.raw(text),
            AnswerOn::PipeAtEnd | AnswerOn::PipeAccepted => Ok(()),
            AnswerOn::Terminal => self.raw(&harmless(text)),
            AnswerOn::Styled { size } => self.styled(text, size()),
        }
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.screen.print(text)?;
        self.inside_line = !text.ends_with('\n');
        Ok(())
    }

    /// Final lines scroll; lines that may still change are redrawn below, as far as there is room.
    fn styled(&mut self, text: &str, (columns, rows): (usize, usize)) -> io::Result<()> {
        // The last column stays free, because terminals differ in what they do there.
        let width = columns.saturating_sub(1);
        let markdown = self.markdown.get_or_insert_with(|| MarkdownStream::new(width, Styling::Colour));
        markdown.set_width(width);
        let lines = markdown.push(text);
        let mut open = markdown.partial();
        open.drain(..open.len().saturating_sub(rows.saturating_sub(1).max(1)));
        let cursor = (open.len().saturating_sub(1), open.last().map_or(0, Line::width));
        self.inside_line = !open.is_empty();
        self.screen.draw(&lines, &Frame { rows: open, cursor }, columns)
    }

    /// Ends the current text, so that the next output starts on a new line.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if let (Some(markdown), AnswerOn::Styled { size }) = (self.markdown.take(), self.on) {
            self.inside_line = false;
            return self.screen.draw(&markdown.finish(), &Frame::default(), size().0);
        }
        if std::mem::take(&mut self.inside_line) {
            return self.screen.print("\n");
        }
        Ok(())
    }

    /// Shows the text that was not shown yet, if there is no answer.
    pub(super) fn without_answer(&mut self) -> io::Result<()> {
        if let (AnswerOn::PipeAtEnd, Some((_, text))) = (self.on, self.streamed.take()) {
            self.raw(&text)?;
        }
        self.end_line()
    }

    /// The text for the user, unless it was already shown.
    pub(super) fn whole(&mut self, text: &str) -> io::Result<()> {
        let streamed = self.streamed.take().is_some_and(|(_, shown)| shown.trim() == text.trim());
        if !streamed || matches!(self.on, AnswerOn::PipeAtEnd | AnswerOn::PipeAccepted) {
            self.end_line()?;
            match self.on {
                AnswerOn::Pipe | AnswerOn::PipeAtEnd | AnswerOn::PipeAccepted => self.raw(text)?,
                AnswerOn::Terminal => self.raw(&harmless(text))?,
                AnswerOn::Styled { size } => self.styled(text, size())?,
            }
        }
        self.end_line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that writes into memory.
    struct Terminal(vt100::Parser);

    impl Terminal {
        fn shows(&mut self, answer: &mut Answer<Vec<u8>>) -> String {
            self.0.process(&answer.screen.take_bytes());
            self.0.screen().contents()
        }
    }

    fn begin() -> (Answer<Vec<u8>>, Terminal) {
        let answer = Answer::new(Vec::new(), AnswerOn::Styled { size: || (20, 6) });
        (answer, Terminal(vt100::Parser::new(6, 20, 0)))
    }

    #[test]
    fn markdown_is_shown_while_it_arrives() {
        let (mut answer, mut terminal) = begin();
        answer.more(OpId(1), "It *is* a **lo").unwrap();
        assert_eq!(terminal.shows(&mut answer), "It is a **lo");
        answer.more(OpId(1), "ng** way to go.\n\n- one\n").unwrap();
        assert_eq!(terminal.shows(&mut answer), "It is a long way to\ngo.\n\n• one");
        answer.whole("It *is* a **long** way to go.\n\n- one\n").unwrap();
        assert_eq!(terminal.shows(&mut answer), "It is a long way to\ngo.\n\n• one");
        assert_eq!(terminal.0.screen().cursor_position(), (4, 0), "what follows begins a line");
    }

    #[test]
    fn what_is_told_between_stands_behind_what_was_said() {
        let (mut answer, mut terminal) = begin();
        answer.more(OpId(1), "I look.").unwrap();
        answer.end_line().unwrap();
        answer.screen.print("note\r\n").unwrap();
        answer.more(OpId(1), " I `see`.").unwrap();
        answer.more(OpId(2), "Done.").unwrap();
        answer.whole("Something else.").unwrap();
        assert_eq!(terminal.shows(&mut answer), "I look.\nnote\nI see.\nDone.\nSomething else.");
    }

    #[test]
    fn what_is_open_never_fills_more_than_the_terminal() {
        let (mut answer, mut terminal) = begin();
        for word in ["many ".repeat(40), "words".to_owned()] {
            answer.more(OpId(1), &word).unwrap();
        }
        let shown = terminal.shows(&mut answer);
        assert_eq!((shown.lines().count(), shown.lines().last()), (5, Some("words")), "{shown}");
        answer.end_line().unwrap();
        assert!(terminal.shows(&mut answer).starts_with("many many many"));
    }

    #[test]
    fn without_styles_the_text_is_shown_as_it_is() {
        let mut answer = Answer::new(Vec::new(), AnswerOn::Terminal);
        answer.more(OpId(1), "It is **bold\u{1b}").unwrap();
        answer.whole("It is **bold\u{1b}").unwrap();
        assert_eq!(answer.screen.take_bytes(), "It is **bold\u{fffd}\n".as_bytes());
        let mut answer = Answer::new(Vec::new(), AnswerOn::Pipe);
        answer.whole("# It is").unwrap();
        assert_eq!(answer.screen.take_bytes(), b"# It is\n");
    }

    #[test]
    fn fault_28_a_pipe_gets_the_text_as_it_arrives() {
        let mut answer = Answer::new(Vec::new(), AnswerOn::Pipe);
        answer.more(OpId(1), "It is\u{1b} **bo").unwrap();
        assert_eq!(answer.screen.take_bytes(), b"It is\x1b **bo");
        answer.more(OpId(1), "ld**").unwrap();
        answer.whole("It is\u{1b} **bold**").unwrap();
        assert_eq!(answer.screen.take_bytes(), b"ld**\n");
    }

    #[test]
    fn rejected_answers_are_not_written_to_a_pipe() {
        let mut answer = Answer::new(Vec::new(), AnswerOn::PipeAccepted);
        answer.more(OpId(1), "90 euros").unwrap();
        answer.more(OpId(2), "{\"euros\":").unwrap();
        answer.without_answer().unwrap();
        assert_eq!(answer.screen.take_bytes(), b"");
        answer.more(OpId(3), "{\"euros\":90}").unwrap();
        answer.whole("{\"euros\":90}").unwrap();
        assert_eq!(answer.screen.take_bytes(), b"{\"euros\":90}\n");
    }

    #[test]
    fn fault_28_a_run_of_many_turns_leaves_what_arrived_last() {
        let mut answer = Answer::new(Vec::new(), AnswerOn::PipeAtEnd);
        for (op, text) in [(1, "first"), (2, "half "), (2, "of it")] {
            answer.more(OpId(op), text).unwrap();
        }
        assert_eq!(answer.screen.take_bytes(), b"");
        answer.without_answer().unwrap();
        assert_eq!(answer.screen.take_bytes(), b"half of it\n");
    }
}
