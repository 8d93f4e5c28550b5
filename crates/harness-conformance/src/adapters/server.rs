//! A loopback server that answers from a vector's `replies`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::words::Reply;
use crate::Done;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn body(&self) -> Done<Value> {
        serde_json::from_str(&self.body).map_err(|e| format!("request body: {e}"))
    }
}

/// The server; its thread ends with the program.
#[derive(Debug)]
pub(super) struct Server {
    /// The endpoint of chat completions.
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens on a free port; the n-th request gets the n-th reply, all later ones the last; without
    /// replies all get an empty one.
    pub(super) fn start(replies: Vec<Reply>) -> Done<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        std::thread::spawn(move || serve(&listener, &replies, &log));
        Ok(Self { url: format!("http://{address}/api/v1/chat/completions"), seen })
    }

    /// URL of a closed port.
    pub(super) fn nowhere() -> Done<String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        Ok(format!("http://{address}/api/v1/chat/completions"))
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

fn serve(listener: &TcpListener, replies: &[Reply], log: &Mutex<Vec<Seen>>) {
    let (mut silent, silence) = (Vec::new(), Reply::default());
    while let Ok((mut stream, _)) = listener.accept() {
        let Some(seen) = read(&stream) else { continue };
        let number = {
            let mut log = log.lock();
            log.push(seen);
            log.len() - 1
        };
        let reply = replies.get(number).or(replies.last()).unwrap_or(&silence);
        if reply.hang {
            silent.push(stream);
        } else if !reply.close_without_reply {
            // The client may be gone already: its verdict does not depend on it.
            drop(stream.write_all(response(reply).as_bytes()));
        }
    }
}

fn response(reply: &Reply) -> String {
    let status = reply.status.unwrap_or(200);
    let lines = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let lines = lines.collect::<Vec<String>>().concat();
    let (body, length) = (&reply.body, reply.body.len());
    format!(
        "HTTP/1.1 {status} Scripted\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).ok()?;
    Some(Seen { method, headers, body })
}
