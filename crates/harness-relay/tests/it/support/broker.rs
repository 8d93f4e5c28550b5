//! A broker on the loopback interface: HTTP calls and a WebSocket of events, as far as a client needs them.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use harness_relay::{BrokerConfig, BrokerTransport, Connection};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// The key of every test; no test may find it anywhere but in the header.
pub(crate) const KEY: &str = "br_do-not-show-me";

/// A broker with a script: what it answers to calls, and its events.
pub(crate) struct FakeBroker {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Events by number, from 1; the first `forgotten` ones are not told any more.
    events: Vec<String>,
    forgotten: usize,
    /// Raised to end all sockets.
    generation: u64,
    refuse_sockets: bool,
    calls: Vec<String>,
    /// Status and body of the next calls; `{}` afterwards.
    answers: Vec<(u16, String)>,
}

impl FakeBroker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::new(&format!("http://{}", self.address), KEY).unwrap()
    }

    /// A transport that does not wait long.
    pub(crate) fn transport(&self) -> BrokerTransport {
        let mut config = BrokerConfig::default();
        config.first_wait = std::time::Duration::from_millis(1);
        config.lease = std::time::Duration::from_millis(1);
        config.reconnects = 5;
        BrokerTransport::attach(self.connection(), config).unwrap()
    }

    fn change(&self, f: impl FnOnce(&mut State)) {
        f(&mut self.shared.state.lock());
        self.shared.changed.send_modify(|count| *count += 1);
    }

    /// The next call is answered so.
    pub(crate) fn answer(&self, status: u16, body: &str) {
        self.change(|state| state.answers.push((status, body.to_owned())));
    }

    /// Something happens.
    pub(crate) fn tell(&self, name: &str) {
        self.change(|state| {
            let seq = state.events.len() + 1;
            state.events.push(format!(r#"{{"kind":"{name}","seq":{seq}}}"#));
        });
    }

    /// Sends exactly this.
    pub(crate) fn send(&self, text: &str) {
        self.change(|state| state.events.push(text.to_owned()));
    }

    /// So many events from the beginning are not told any more.
    pub(crate) fn forget(&self, events: usize) {
        self.change(|state| state.forgotten = events);
    }

    /// Ends all sockets, and takes new ones or not.
    pub(crate) fn break_off(&self, for_good: bool) {
        self.change(|state| {
            state.generation += 1;
            state.refuse_sockets = for_good;
        });
    }

    /// The calls so far, sockets included: `METHOD PATH BODY`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.shared.state.lock().calls.clone()
    }

    pub(crate) async fn until_calls(&self, holds: impl Fn(&[String]) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        while !holds(&self.calls()) {
            changes.changed().await.unwrap();
        }
    }
}

impl Shared {
    fn called(&self, call: String) {
        self.state.lock().calls.push(call);
        self.changed.send_modify(|count| *count += 1);
    }
}

/// One connection: sockets are told from calls by their path.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut seen = vec![0; 8 * 1024];
    let head = loop {
        let read = stream.peek(&mut seen).await.unwrap_or(0);
        let text = String::from_utf8_lossy(&seen[..read]).into_owned();
        if read == 0 || text.contains("\r\n\r\n") {
            break text;
        }
        tokio::task::yield_now().await;
    };
    let target = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if head.is_empty() {
        return;
    }
    assert!(head.contains(KEY), "every request carries the key");
    if let Some(since) = target.strip_prefix("GET /ws?sinceSeq=") {
        let since: u64 = since.parse().unwrap();
        shared.called(target.clone());
        if !shared.state.lock().refuse_sockets {
            socket(stream, since, shared).await;
        }
    } else {
        call(stream, &target, shared).await;
    }
}

async fn call(mut stream: TcpStream, target: &str, shared: Arc<Shared>) {
    let mut bytes = Vec::new();
    let (start, length) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        break (end + 4, length.unwrap_or(0_usize));
    };
    while bytes.len() < start + length {
        stream.read_buf(&mut bytes).await.unwrap();
    }
    let body = String::from_utf8_lossy(&bytes[start..]).into_owned();
    let (status, answer) = {
        let mut state = shared.state.lock();
        if state.answers.is_empty() { (200, "{}".to_owned()) } else { state.answers.remove(0) }
    };
    shared.called(format!("{target} {body}").trim_end().to_owned());
    let length = answer.len();
    let reply = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
    );
    let _ = stream.write_all(reply.as_bytes()).await;
}

/// Tells stored events, then new ones, until the sockets are ended.
async fn socket(stream: TcpStream, since: u64, shared: Arc<Shared>) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let generation = shared.state.lock().generation;
    let mut changes = shared.changed.subscribe();
    let mut next = usize::try_from(since).unwrap();
    let forgotten = shared.state.lock().forgotten;
    if next < forgotten {
        let newest = shared.state.lock().events.len();
        let gap = format!(
            r#"{{"kind":"replay_gap","requestedSinceSeq":{next},"oldestAvailable":{},"seq":{newest}}}"#,
            forgotten + 1
        );
        socket.send(Message::text(gap)).await.unwrap();
        next = forgotten;
    }
    if next > shared.state.lock().events.len() {
        next = shared.state.lock().events.len();
    }
    loop {
        let waiting = {
            let state = shared.state.lock();
            if state.generation != generation {
                return;
            }
            state.events[next..].to_vec()
        };
        next += waiting.len();
        for event in waiting {
            if socket.send(Message::text(event)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            message = socket.next() => if !matches!(message, Some(Ok(_))) { return },
            woken = changes.changed() => if woken.is_err() { return },
        }
    }
}
