//! Lines in, lines out, with bounds.

use std::sync::Arc;

use agent_client_protocol::{Error, RawJsonRpcMessage, TransportFrame};
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures_util::StreamExt as _;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use crate::error::AcpError;

/// The method of the messages that count against the bound of what waits to be written.
const COUNTED: &str = "session/update";

/// Reads messages until the client disconnects. A line longer than `most` bytes is skipped, and
/// answered with an error like an invalid message.
pub(crate) async fn read(
    mut from: impl AsyncBufRead + Unpin,
    most: usize,
    to: UnboundedSender<TransportFrame>,
) -> Result<(), AcpError> {
    let mut line = Vec::new();
    loop {
        let read = line_of(&mut from, &mut line, most).await.map_err(|source| AcpError::Read { source })?;
        let frame = match read {
            Line::End => return Ok(()),
            Line::Whole if line.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Whole => match std::str::from_utf8(&line) {
                Ok(text) => TransportFrame::parse_json(text.trim()),
                Err(_) => malformed(Error::parse_error().data("a message is not UTF-8")),
            },
            Line::TooLong => {
                let why = format!("a message is longer than {most} bytes, and was passed over");
                malformed(Error::invalid_request().data(why))
            }
        };
        if to.unbounded_send(frame).is_err() {
            return Ok(());
        }
    }
}

fn malformed(error: Error) -> TransportFrame {
    TransportFrame::Malformed { raw: String::new(), error }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads one line, and keeps no more than `most` bytes of it.
async fn line_of(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    most: usize,
) -> std::io::Result<Line> {
    line.clear();
    let (mut any, mut too_long) = (false, false);
    loop {
        let available = from.fill_buf().await?;
        if available.is_empty() {
            return Ok(match (any, too_long) {
                (false, _) => Line::End,
                (true, true) => Line::TooLong,
                (true, false) => Line::Whole,
            });
        }
        any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let (piece, used) = match end {
            Some(end) => (available.get(..end).unwrap_or_default(), end + 1),
            None => (available, available.len()),
        };
        if line.len() + piece.len() > most {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(piece);
        }
        from.consume(used);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

/// Writes messages until there are no more, and gives back a permit for each update that is written.
pub(crate) async fn write(
    mut messages: UnboundedReceiver<TransportFrame>,
    mut to: impl AsyncWrite + Unpin,
    permits: Arc<Semaphore>,
) -> Result<(), AcpError> {
    while let Some(frame) = messages.next().await {
        let counted = matches!(
            &frame,
            TransportFrame::Single(RawJsonRpcMessage::Notification(note)) if &*note.method == COUNTED
        );
        let written = put(&mut to, &frame).await;
        if counted {
            permits.add_permits(1);
        }
        if let Err(source) = written {
            // Nothing can be told any more: whoever waits for room must not wait for ever.
            permits.close();
            messages.close();
            return gone(source);
        }
    }
    to.flush().await.or_else(gone_io)
}

async fn put(to: &mut (impl AsyncWrite + Unpin), frame: &TransportFrame) -> std::io::Result<()> {
    let mut line = match frame.to_json() {
        Ok(line) => line,
        Err(error) => {
            tracing::warn!(%error, "a message to the client could not be written as JSON");
            return Ok(());
        }
    };
    line.push('\n');
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}

fn gone_io(source: std::io::Error) -> Result<(), AcpError> {
    gone(source)
}

/// Treats a client that no longer reads as disconnected, which is not an error.
fn gone(source: std::io::Error) -> Result<(), AcpError> {
    if source.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(AcpError::Write { source }) }
}
