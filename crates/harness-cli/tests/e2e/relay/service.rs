//! A stand-in for the hosted service that brokers want to reach when they start.
//!
//! It agrees to everything and carries nothing: all messages of the checks stay on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;

/// How long a broker may take over a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a request's body, at most.
const LONGEST: usize = 1 << 20;

/// Starts the service and gives its URL; it serves until the program ends.
pub(super) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A broker that goes away in the middle is its own affair.
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}")
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    if wants_events(&stream)? {
        hold(stream);
        return Ok(());
    }
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; usize::min(length, LONGEST)];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let answer = json!({ "ok": true, "data": data(&path, &body) }).to_string();
    let length = answer.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    (&stream).write_all(format!("{head}{answer}").as_bytes())
}

/// Whether the request, which is left unread, is for the stream of events.
fn wants_events(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; 64];
    let read = stream.peek(&mut start)?;
    Ok(start.get(..read).is_some_and(|start| start.starts_with(b"GET /v1/ws")))
}

/// A stream on which nothing ever happens. Without one, a broker that starts agents waits for it in the end.
fn hold(stream: TcpStream) {
    let quiet = stream.set_read_timeout(None);
    if let (Ok(()), Ok(mut socket)) = (quiet, tungstenite::accept(stream)) {
        while socket.read().is_ok() {}
    }
}

/// What is made, under the name that the request gives.
fn data(path: &str, body: &Value) -> Value {
    const MADE: &str = "2026-01-01T00:00:00.000Z";
    let path = path.split('?').next().unwrap_or_default();
    let name = body.get("name").and_then(Value::as_str).unwrap_or("general");
    if path == "/v1/workspaces" {
        json!({ "workspace_id": "ws_local", "api_key": "rk_live_local", "created_at": MADE })
    } else if path.starts_with("/v1/agents") {
        json!({ "id": format!("agent_{name}"), "name": name, "token": format!("at_{name}"), "status": "online",
                "created_at": MADE, "cli": "sh", "task": "", "channel": null, "already_existed": false })
    } else if path.starts_with("/v1/channels") {
        json!({ "id": format!("channel_{name}"), "name": name, "channel_type": 0, "is_archived": false })
    } else {
        json!({})
    }
}

#[test]
fn what_a_broker_makes_has_its_name() {
    assert_eq!(data("/v1/agents?x=1", &json!({ "name": "w" }))["token"], "at_w");
    assert_eq!(data("/v1/channels/general/join", &json!({}))["name"], "general");
    assert_eq!(data("/v1/dm", &json!({})), json!({}));
}
