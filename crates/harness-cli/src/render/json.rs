//! Events as JSON Lines.

use std::io::{self, Write};

use harness::core::End;
use harness::core::display::mask_secrets;
use harness::core::event::Seen;
use serde::Serialize;

use super::Render;
use crate::error::CliError;

/// Events as lines; the last line is the result.
pub(crate) struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    fn line<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// The last line of a program that ended before a run started.
    pub(crate) fn error(&mut self, error: &CliError) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            r#type: &'static str,
            kind: &'a str,
            message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<String>,
        }
        let message = mask_secrets(&error.to_string()).into_owned();
        let hint = error.hint().map(|hint| mask_secrets(&hint).into_owned());
        self.line(&Line { r#type: "error", kind: error.kind(), message, hint })
    }
}

/// A JSON object with a `type` before its own fields.
#[derive(Serialize)]
struct Tagged<T> {
    r#type: &'static str,
    #[serde(flatten)]
    fields: T,
}

impl<W: Write + Send> Render for JsonLines<W> {
    fn see(&mut self, seen: &Seen) -> io::Result<()> {
        match seen {
            Seen::Event(event) => self.line(event),
            Seen::Delta(delta) => self.line(&Tagged { r#type: "delta", fields: delta }),
            Seen::Lagged { missed } => {
                #[derive(Serialize)]
                struct Missed {
                    missed: u64,
                }
                self.line(&Tagged { r#type: "lagged", fields: Missed { missed: *missed } })
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let end = end.to_json()?;
        let fields = end.text().strip_prefix('{').unwrap_or("}");
        writeln!(self.out, r#"{{"type":"result",{fields}"#)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use harness::core::event::Delta;

    use super::*;

    #[track_caller]
    fn check(seen: &Seen, expected: &str) {
        let mut out = Vec::new();
        JsonLines::new(&mut out).see(seen).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_no_event_has_a_type_of_its_own() {
        let delta: Delta =
            serde_json::from_str(r#"{"op":1,"n":2,"after":3,"part":{"text":"a\nb"}}"#).unwrap();
        let line = r#"{"type":"delta","op":1,"n":2,"after":3,"part":{"text":"a\nb"}}"#.to_owned() + "\n";
        check(&Seen::Delta(delta), &line);
        check(&Seen::Lagged { missed: 7 }, "{\"type\":\"lagged\",\"missed\":7}\n");
    }
}
