//! Requests and answers of HTTP/1.1, as much of it as the clients of a test server use.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

use serde_json::Value;

/// Bytes of a body that are read, at most: agents send all their instructions and tools each time.
const MOST_BODY: usize = 32 << 20;

/// Bytes of a line of the head, at most.
const MOST_LINE: u64 = 64 << 10;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// `GET`, `POST`.
    pub(super) method: String,
    /// The path, without a query.
    pub(super) path: String,
    /// The body.
    pub(super) body: String,
}

/// An answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// A JSON object.
    Json(Value),
    /// A stream of events.
    Events(String),
    /// Nothing is there.
    NotFound,
}

/// Reads a request.
pub(super) fn read(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(Error::new(ErrorKind::InvalidData, format!("no request line: {first:?}")));
    };
    let (mut length, mut chunked, mut asks_to_go_on) = (0, false, false);
    loop {
        let header = line(&mut reader)?.to_ascii_lowercase();
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            None => break,
            Some(("content-length", value)) => length = value.parse().map_err(invalid)?,
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("expect", _)) => asks_to_go_on = true,
            Some(_) => {}
        }
    }
    if asks_to_go_on {
        let mut writer = stream;
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if chunked { chunks(&mut reader)? } else { exactly(&mut reader, length)? };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Request { method, path, body: String::from_utf8(body).map_err(invalid)? })
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.take(MOST_LINE).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn exactly(reader: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    if length > MOST_BODY {
        return Err(Error::new(ErrorKind::InvalidData, format!("a body of {length} bytes")));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(reader)?, 16).map_err(invalid)?;
        body.extend(exactly(reader, size)?);
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
        if body.len() > MOST_BODY {
            return Err(Error::new(ErrorKind::InvalidData, "a body without an end"));
        }
    }
}

fn invalid(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::InvalidData, cause)
}

/// Writes an answer; the connection ends with it.
pub(super) fn write(stream: &mut TcpStream, answer: &Answer) -> Result<()> {
    let (status, kind, body) = match answer {
        Answer::Json(value) => ("200 OK", "application/json", value.to_string()),
        Answer::Events(events) => ("200 OK", "text/event-stream", events.clone()),
        Answer::NotFound => {
            let body = r#"{"error":{"message":"the test server has no such path"}}"#;
            ("404 Not Found", "application/json", body.to_owned())
        }
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}
