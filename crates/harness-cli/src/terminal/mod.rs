//! The one door to standard output and standard error.
//!
//! Nothing else in the program writes to either; clippy sees to that. What a model, a tool, a server, a file or
//! an argument says becomes harmless here, whoever wrote the line that quotes it, and keys that are known or
//! look like one become `***`. The program's own styles are [`Paint`], which no text of another can imitate.
#![expect(clippy::disallowed_methods, reason = "this module is the one that writes to the terminal")]

mod input;
mod paint;
mod secrets;
mod write;

use std::io::{self, IsTerminal as _, Write};

use anstream::{AutoStream, ColorChoice};

pub(crate) use input::{discard_input, question_size};
pub(crate) use paint::{Paint, erase_line, painted};
pub(crate) use secrets::conceal;

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    /// Whether a terminal shows it.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    /// Whether styles are shown: on a terminal that has them, unless the environment or `--color` says otherwise.
    pub(crate) fn has_styles(self) -> bool {
        let choice = match self {
            Self::Out => AutoStream::choice(&io::stdout()),
            Self::Err => AutoStream::choice(&io::stderr()),
        };
        choice != ColorChoice::Never
    }

    fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Out => io::stdout().lock().write_all(bytes),
            Self::Err => io::stderr().lock().write_all(bytes),
        }
    }
}

/// What is written, and so what may stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Errors, hints, progress, logs: harmless, without secrets, lines of a bounded length.
    Message,
    /// The same without a bound: what a command prints for people.
    Text,
    /// What a person decides about: the same, and only keys that are known are masked. What merely looks like one
    /// may be what the decision is about.
    Question,
    /// JSON: what is not harmless is escaped, so that the value stays as it is.
    Json,
    /// An answer or a file's content: harmless on a terminal; a pipe or file gets its bytes.
    Payload,
    /// Lines of a [`Screen`](crate::render::screen::Screen), which are harmless by their type.
    Drawing,
}

/// A way to a stream. What is written at once is one text: a character must not be split over two writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    stream: Stream,
    kind: Kind,
}

/// Errors, hints, progress and logs, on standard error.
pub(crate) fn messages() -> Out {
    Out { stream: Stream::Err, kind: Kind::Message }
}

/// Questions, on standard error: nothing of them is cut.
pub(crate) fn questions() -> Out {
    Out { stream: Stream::Err, kind: Kind::Question }
}

/// What a command prints for people, on standard output.
pub(crate) fn text() -> Out {
    Out { stream: Stream::Out, kind: Kind::Text }
}

/// JSON on standard output.
pub(crate) fn json() -> Out {
    Out { stream: Stream::Out, kind: Kind::Json }
}

/// Answers and contents of files, on standard output.
pub(crate) fn payload() -> Out {
    Out { stream: Stream::Out, kind: Kind::Payload }
}

/// The lines of a screen, on standard output.
pub(crate) fn drawing() -> Out {
    Out { stream: Stream::Out, kind: Kind::Drawing }
}

/// The lines of JSON of a protocol, on standard output, which a program reads.
pub(crate) fn protocol() -> tokio::io::Stdout {
    tokio::io::stdout()
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        let stream = self.stream;
        match self.kind {
            Kind::Message => stream.write(write::message(&text, stream.has_styles()).as_bytes()),
            Kind::Text => stream.write(write::text(&text, stream.has_styles()).as_bytes()),
            Kind::Question => stream.write(write::question(&text, stream.has_styles()).as_bytes()),
            Kind::Json => stream.write(write::json(&text).as_bytes()),
            Kind::Payload if stream.is_terminal() => stream.write(write::plain(&text).as_bytes()),
            Kind::Payload | Kind::Drawing => stream.write(bytes),
        }
    }

    /// In one piece, so that nothing of it is split and nobody writes between its parts.
    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.stream {
            Stream::Out => io::stdout().flush(),
            Stream::Err => io::stderr().flush(),
        }
    }
}
