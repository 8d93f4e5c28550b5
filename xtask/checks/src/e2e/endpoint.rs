//! A model endpoint on the loopback interface that answers from a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::json;

use xtask::fault::{Fault, Result};

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the endpoint does with one request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// Streams this text.
    Text(&'static str),
    /// Asks for one call of the tool with this name, without arguments, under this id.
    Call { id: &'static str, name: &'static str },
    /// The same, with arguments.
    CallWith { id: &'static str, name: &'static str, arguments: &'static str },
    /// Keeps the connection open and says nothing.
    Silence,
}

/// A running endpoint. Requests beyond its script are refused.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// The address to give as `--base-url`.
    pub(super) url: String,
    requests: Receiver<()>,
}

impl Endpoint {
    /// Listens on a free port; each request in turn gets the next answer of the script.
    pub(super) fn start(script: &'static [Answer]) -> Result<Self> {
        let failed = |e| Fault::because("loopback endpoint", e);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let url = format!("http://{}/v1", listener.local_addr().map_err(failed)?);
        let (seen, requests) = channel();
        std::thread::spawn(move || serve(&listener, script, &seen));
        Ok(Self { url, requests })
    }

    /// Listens on a free port until the program ends; each request gets the answer that its body asks for.
    pub(super) fn by(answer: fn(&str) -> Answer) -> Result<Self> {
        let failed = |e| Fault::because("loopback endpoint", e);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let url = format!("http://{}/v1", listener.local_addr().map_err(failed)?);
        let (_, requests) = channel();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                // A client may be killed at any moment.
                if let Ok(body) = read_request(&stream)
                    && let Some(events) = answer(&body).events()
                {
                    drop(write_answer(&mut stream, &events));
                }
            }
        });
        Ok(Self { url, requests })
    }

    /// Waits until one more request has arrived.
    pub(super) fn wait_for_request(&self) -> Result<()> {
        self.requests.recv_timeout(PATIENCE).map_err(|e| Fault::because("waiting for a model request", e))
    }
}

/// Ends when the script is used up and every client that got silence is gone.
fn serve(listener: &TcpListener, script: &[Answer], seen: &Sender<()>) {
    let mut silent = Vec::new();
    for answer in script {
        let Ok((mut stream, _)) = listener.accept() else { return };
        if read_request(&stream).is_err() || seen.send(()).is_err() {
            return;
        }
        match answer.events() {
            // A client that has been killed cannot be answered, which is nobody's fault.
            Some(events) => drop(write_answer(&mut stream, &events)),
            None => silent.push(stream),
        }
    }
    for mut stream in silent {
        drop(std::io::copy(&mut stream, &mut std::io::sink()));
    }
}

/// Reads a request; gives its body.
fn read_request(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    Ok(body)
}

fn write_answer(stream: &mut TcpStream, events: &str) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(events.as_bytes())?;
    stream.flush()
}

impl Answer {
    /// The answer as an event stream; none for silence.
    fn events(self) -> Option<String> {
        let (delta, reason) = match self {
            Self::Silence => return None,
            Self::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
            Self::Call { id, name } => return Self::CallWith { id, name, arguments: "{}" }.events(),
            Self::CallWith { id, name, arguments } => {
                let function = json!({ "name": name, "arguments": arguments });
                let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
                (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
            }
        };
        let chunk = |delta, reason| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
            json!({ "id": "r", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice] })
        };
        let (first, last) = (chunk(delta, json!(null)), chunk(json!({}), json!(reason)));
        Some(format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn ask(endpoint: &Endpoint) -> String {
        let address = endpoint.url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address).unwrap();
        let body = r#"{"model":"m"}"#;
        let request =
            format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        endpoint.wait_for_request().unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_answered_in_the_order_of_the_script() {
        let endpoint =
            Endpoint::start(&[Answer::Call { id: "c1", name: "note" }, Answer::Text("done")]).unwrap();
        let call = ask(&endpoint);
        assert!(call.contains(r#""id":"c1""#) && call.contains(r#""finish_reason":"tool_calls""#), "{call}");
        let text = ask(&endpoint);
        assert!(text.contains(r#""content":"done""#) && text.ends_with("data: [DONE]\n\n"), "{text}");
    }
}
