//! A scripted HTTP server on the loopback interface.
//!
//! It speaks just enough HTTP/1.1 for one request per connection, so that a script can also do what
//! no well-behaved server does: hang, close without a reply, or break off anywhere.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One thing that the server does with a connection.
#[derive(Debug, Clone)]
enum Step {
    Send(Vec<u8>),
    /// Sends the bytes as often as said, or until the client hangs up.
    Repeat(Vec<u8>, usize),
    /// Waits until the test calls [`Server::go_on`].
    Wait,
    /// Waits until the client hangs up.
    Hold,
}

/// What the server does with one request; the connection is closed afterwards.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply(Vec<Step>);

impl Reply {
    /// Reads the request and closes the connection.
    pub(crate) fn close() -> Self {
        Self::default()
    }

    /// Never answers.
    pub(crate) fn hang() -> Self {
        Self::default().hold()
    }

    /// A whole reply with `content-length`.
    pub(crate) fn full(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        Self::default().send(head).send(body)
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::full(status, "content-type: application/json\r\n", body)
    }

    /// The head of an event stream that ends when the connection does.
    pub(crate) fn events() -> Self {
        Self::default().head("content-type: text/event-stream\r\n")
    }

    /// The head of a reply that ends when the connection does.
    pub(crate) fn head(self, headers: &str) -> Self {
        self.send(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n"))
    }

    /// One event of a stream.
    pub(crate) fn event(self, data: &str) -> Self {
        self.send(format!("data: {data}\n\n"))
    }

    /// One delta of choice 0.
    pub(crate) fn delta(self, delta: &str) -> Self {
        self.event(&format!(
            r#"{{"id":"gen-1","model":"example/served","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
        ))
    }

    /// The finish chunk, usage and `[DONE]`.
    pub(crate) fn finish(self, reason: &str) -> Self {
        self.event(&format!(
            concat!(
                r#"{{"id":"gen-1","model":"example/served","choices":[{{"index":0,"delta":{{}},"finish_reason":"{}"}}],"#,
                r#""usage":{{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17,"cost":0.00031,"#,
                r#""prompt_tokens_details":{{"cached_tokens":8}},"completion_tokens_details":{{"reasoning_tokens":2}}}}}}"#
            ),
            reason
        ))
        .event("[DONE]")
    }

    pub(crate) fn send(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(Step::Send(bytes.as_ref().to_vec()));
        self
    }

    pub(crate) fn repeat(mut self, bytes: impl AsRef<[u8]>, times: usize) -> Self {
        self.0.push(Step::Repeat(bytes.as_ref().to_vec(), times));
        self
    }

    pub(crate) fn wait(mut self) -> Self {
        self.0.push(Step::Wait);
        self
    }

    pub(crate) fn hold(mut self) -> Self {
        self.0.push(Step::Hold);
        self
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// `POST /path`.
    pub(crate) target: String,
    /// Header lines, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body, with its keys sorted.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body.sort_all_objects();
        body
    }
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    go_on: Notify,
    hung_up: Notify,
}

/// The server; it ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct Server {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server that answers the n-th request with the n-th reply, and all further ones with
    /// the last.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Arc<[Reply]> = replies.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let state = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&replies), Arc::clone(&state)));
            }
        });
        Self { address, shared }
    }

    /// The base URL to configure.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/v1", self.address)
    }

    /// The same server under a scheme that it does not speak.
    pub(crate) fn url_with_tls(&self) -> String {
        format!("https://{}/api/v1", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }

    /// Lets one waiting reply go on.
    pub(crate) fn go_on(&self) {
        self.shared.go_on.notify_one();
    }

    /// Waits until a client hung up on a reply that holds the connection.
    pub(crate) async fn hung_up(&self) {
        self.shared.hung_up.notified().await;
    }
}

async fn serve(mut stream: TcpStream, replies: Arc<[Reply]>, shared: Arc<Shared>) {
    let Some(seen) = read_request(&mut stream).await else { return };
    let number = {
        let mut all = shared.seen.lock();
        all.push(seen);
        all.len() - 1
    };
    let reply = replies.get(number).or(replies.last()).expect("a script has at least one reply");
    for step in &reply.0 {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(bytes).await.is_err() {
                    return;
                }
            }
            Step::Repeat(bytes, times) => {
                for _ in 0..*times {
                    if stream.write_all(bytes).await.is_err() {
                        shared.hung_up.notify_one();
                        return;
                    }
                }
            }
            Step::Wait => shared.go_on.notified().await,
            Step::Hold => {
                let mut rest = [0; 256];
                while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
                shared.hung_up.notify_one();
            }
        }
    }
    let _ = stream.shutdown().await;
}

/// The first byte of a client that speaks TLS.
const TLS_HANDSHAKE: u8 = 0x16;

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if bytes[0] == TLS_HANDSHAKE {
            // As plain servers do. The client may have hung up already.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let mut lines = text.lines();
    let target = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().ok()?;
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[head + 4..].to_vec()).ok()?;
    Some(Seen { target, headers, body })
}
