//! Listening and routing.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, Answer, Request};
use super::plan::{Asked, Say};
use super::{anthropic, chat, gemini, responses};
use xtask::fault::{Fault, Result};

/// How long a connection may stay silent before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Listens on a free port, and answers until the program ends; gives the server's address, without a path.
pub(in crate::e2e) fn start() -> Result<String> {
    listen("127.0.0.1:0", None)
}

/// Listens, and answers until the program ends; gives the server's address, without a path.
fn listen(address: &str, log: Option<PathBuf>) -> Result<String> {
    let failed = |e| Fault::because("model server", e);
    let listener = TcpListener::bind(address).map_err(failed)?;
    let url = format!("http://{}", listener.local_addr().map_err(failed)?);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let log = log.clone();
            std::thread::spawn(move || serve_one(stream, log.as_deref()));
        }
    });
    Ok(url)
}

/// Answers one connection. A client may go away at any moment, which is nobody's fault.
fn serve_one(mut stream: TcpStream, log: Option<&Path>) {
    let patient = stream.set_read_timeout(Some(PATIENCE));
    let Ok(request) = patient.and_then(|()| http::read(&stream)) else { return };
    let answer = answer(&request);
    if let Some(log) = log {
        drop(note(log, &request, &answer));
    }
    drop(http::write(&mut stream, &answer));
}

/// The answer to a request.
fn answer(request: &Request) -> Answer {
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let said = |asked: Asked, whole: fn(&Asked, &Say) -> Value, stream: fn(&Asked, &Say) -> String| {
        let say = asked.say();
        if asked.streamed { Answer::Events(stream(&asked, &say)) } else { Answer::Json(whole(&asked, &say)) }
    };
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/messages") => said(anthropic::read(&body), anthropic::whole, anthropic::stream),
        ("POST", "/v1/messages/count_tokens") => Answer::Json(anthropic::count()),
        ("POST", "/v1/responses") => said(responses::read(&body), responses::whole, responses::stream),
        ("POST", "/v1/chat/completions") => said(chat::read(&body), chat::whole, chat::stream),
        ("GET", "/v1/models") => Answer::Json(json!({ "object": "list", "data": [], "models": [] })),
        ("POST", path) => match gemini_verb(path) {
            Some((model, "generateContent")) => {
                said(gemini::read(model, false, &body), gemini::whole, gemini::stream)
            }
            Some((model, "streamGenerateContent")) => {
                said(gemini::read(model, true, &body), gemini::whole, gemini::stream)
            }
            Some((_, "countTokens")) => Answer::Json(gemini::count()),
            Some(_) | None => Answer::NotFound,
        },
        _ => Answer::NotFound,
    }
}

/// Model and verb of a path such as `/v1beta/models/gemini-2.5-pro:generateContent`.
fn gemini_verb(path: &str) -> Option<(&str, &str)> {
    path.split_once("/models/")?.1.split_once(':')
}

/// How to serve by hand.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// The address to listen at.
    #[arg(long, default_value = "127.0.0.1:8399")]
    address: String,
    /// Append every request and its answer to this file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Serves until the program is stopped, to try agents by hand.
pub(crate) fn serve(options: &Options) -> Result<()> {
    let url = listen(&options.address, options.log.clone())?;
    println!("listening at {url}");
    loop {
        std::thread::park();
    }
}

fn note(log: &Path, request: &Request, answer: &Answer) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
    writeln!(file, "{} {}\n{}\n--> {answer:?}\n", request.method, request.path, request.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, body: &Value, expected: (&str, &str)) {
        let request = Request { method: method.into(), path: path.into(), body: body.to_string() };
        let (kind, text) = match answer(&request) {
            Answer::NotFound => ("nothing", String::new()),
            Answer::Json(value) => ("object", value.to_string()),
            Answer::Events(events) => ("events", events),
        };
        assert!(kind == expected.0 && text.contains(expected.1), "{kind}: {text}");
    }

    #[test]
    fn every_protocol_is_answered() {
        let shell = json!({ "stream": true, "tools": [{ "name": "Bash" }] });
        check("POST", "/v1/messages", &shell, ("events", "cat note.txt"));
        check("POST", "/v1/responses", &json!({ "stream": true }), ("events", "response.completed"));
        let result = json!({ "messages": [{ "role": "tool", "content": "The note says: x" }] });
        check("POST", "/v1/chat/completions", &result, ("object", "I have read it. The note says: x"));
        check("POST", "/v1beta/models/m:streamGenerateContent", &json!({}), ("events", "usageMetadata"));
        check("POST", "/v1beta/models/m:countTokens", &json!({}), ("object", "totalTokens"));
        check("GET", "/v1/unknown", &json!({}), ("nothing", ""));
    }
}
