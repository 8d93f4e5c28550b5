//! The only access to standard output and standard error.
//!
//! No other code writes to either; clippy enforces it. Text of models, tools, servers, files and arguments is made
//! harmless here, and known or likely API keys become `***`. Styles of the program are [`Paint`], which foreign text
//! cannot imitate.
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
    /// Whether it is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    /// Whether styles are shown: on a capable terminal, unless the environment or `--color` decides otherwise.
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

/// Kind of text, which decides what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Errors, hints, progress and logs: harmless, redacted, with bounded lines.
    Message,
    /// Human-readable output of a command: like messages, with unbounded lines.
    Text,
    /// Content of an approval: like messages, but only known API keys are masked, because what merely looks like one may
    /// be what the decision is about.
    Question,
    /// JSON: unsafe characters are escaped, so that the value is unchanged.
    Json,
    /// An answer or the content of a file: harmless on a terminal, unchanged in a pipe or file.
    Payload,
    /// Lines of a [`Screen`](crate::render::screen::Screen), which are harmless by their type.
    Drawing,
}

/// A writer to a stream. Each write is one text: a character must not be split over two writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    stream: Stream,
    kind: Kind,
}

/// Errors, hints, progress and logs on standard error.
pub(crate) fn messages() -> Out {
    Out { stream: Stream::Err, kind: Kind::Message }
}

/// Approval prompts on standard error; nothing is cut.
pub(crate) fn questions() -> Out {
    Out { stream: Stream::Err, kind: Kind::Question }
}

/// Human-readable output on standard output.
pub(crate) fn text() -> Out {
    Out { stream: Stream::Out, kind: Kind::Text }
}

/// A human-readable text as [`text`] writes it.
pub(crate) fn shown_text(text: &str) -> String {
    write::text(text, Stream::Out.has_styles())
}

/// JSON on standard output.
pub(crate) fn json() -> Out {
    Out { stream: Stream::Out, kind: Kind::Json }
}

/// Answers and contents of files on standard output.
pub(crate) fn payload() -> Out {
    Out { stream: Stream::Out, kind: Kind::Payload }
}

/// Lines of a screen on standard output.
pub(crate) fn drawing() -> Out {
    Out { stream: Stream::Out, kind: Kind::Drawing }
}

/// JSON lines of a protocol on standard output.
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

    /// Writes at once, so that the text is not split and other writers cannot interleave.
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
