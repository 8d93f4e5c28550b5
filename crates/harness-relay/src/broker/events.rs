//! The broker's stream of events: a WebSocket that is opened again where it broke.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use harness_core::display::shortened;
use harness_core::redact::KnownSecrets;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::api::{self, KEY};
use super::connection::Connection;
use super::transport::BrokerConfig;
use crate::event::{RelayEvent, RelayEventKind, RelayEventSender};
use crate::fault::RelayFault;
use crate::transport::Since;

const CALL: &str = "GET /ws";

/// Bytes of an event, at most.
const LONGEST: usize = 16 * 1024 * 1024;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A broker sends a ping every 30 s; one that is silent for longer than this is gone.
const SILENCE: Duration = Duration::from_secs(75);

/// The highest number that a broker written in another language can hold: no event comes after it, so none
/// is sent again.
const NO_REPLAY: u64 = (1 << 53) - 1;

/// A ping that the broker answers after its stored events; some versions never do.
const MARK: &[u8] = b"caught-up";

/// Silence after which the stored events of a broker that does not count them are complete.
const PAUSE: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<TcpStream>;

/// A subscription while it runs.
pub(super) struct Stream {
    pub(super) connection: Connection,
    pub(super) config: BrokerConfig,
    pub(super) sender: RelayEventSender,
    /// Number of the last event sent, or the first event to send.
    pub(super) since: Since,
    /// The newest event that was stored before; `None` when it is not known.
    pub(super) goal: Option<u64>,
}

/// Reason why a socket is no longer read.
enum Broken {
    /// The subscription was dropped.
    Unwanted,
    Lost(String),
}

impl Stream {
    /// Opens the socket. What follows is wanted from here on.
    pub(super) async fn open(&self) -> Result<Socket, RelayFault> {
        let unreachable = |reason: String| RelayFault::Unreachable {
            address: self.connection.address(),
            call: CALL,
            reason,
        };
        let opened = tokio::time::timeout(HANDSHAKE, self.handshake()).await;
        match opened {
            Err(_) => Err(unreachable("it did not answer in time".to_owned())),
            Ok(Ok(socket)) => Ok(socket),
            Ok(Err(Error::Http(response))) => {
                let status = response.status().as_u16();
                Err(RelayFault::Refused { call: CALL, status, message: "no events are given".to_owned() })
            }
            Ok(Err(fault)) => Err(unreachable(fault.to_string())),
        }
    }

    async fn handshake(&self) -> Result<Socket, Error> {
        let since = match self.since {
            Since::Seq(seq) => seq,
            Since::Now => NO_REPLAY,
        };
        let address = self.connection.address();
        let mut request = format!("ws://{address}/ws?sinceSeq={since}").into_client_request()?;
        let key = api::header(&self.connection).map_err(|fault| Error::HttpFormat(fault.into()))?;
        request.headers_mut().insert(KEY, key);
        let stream = TcpStream::connect(&address).await?;
        let limits = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
        let (mut socket, _) = client_async_with_config(request, stream, Some(limits)).await?;
        socket.send(Message::Ping(Bytes::from_static(MARK))).await?;
        Ok(socket)
    }

    /// Sends events until the subscription is dropped or the broker is lost.
    pub(super) async fn run(mut self, mut socket: Socket) {
        let mut first = true;
        if self.is_level() && !self.caught_up(&mut first).await {
            return;
        }
        loop {
            let reason = match self.read(&mut socket, &mut first).await {
                Broken::Unwanted => return,
                Broken::Lost(reason) => reason,
            };
            tracing::debug!(reason, "the relay's events broke off");
            socket = match self.reopen(reason).await {
                Ok(socket) => socket,
                Err(reason) => {
                    self.sender.send(RelayEvent::closed(reason)).await;
                    return;
                }
            };
            let back = RelayEvent { seq: None, kind: RelayEventKind::Reconnected };
            if !self.sender.send(back).await {
                return;
            }
        }
    }

    /// Opens the socket again where it broke, after growing waits.
    async fn reopen(&self, mut reason: String) -> Result<Socket, String> {
        let mut wait = self.config.first_wait;
        for _ in 0..self.config.reconnects {
            if self.connection.is_gone() {
                return Err("the broker is no longer running".to_owned());
            }
            tokio::select! {
                () = self.sender.closed() => return Err("the subscription was dropped".to_owned()),
                () = tokio::time::sleep(wait) => {}
            }
            match self.open().await {
                Ok(socket) => return Ok(socket),
                Err(fault @ RelayFault::Refused { .. }) => return Err(fault.to_string()),
                Err(fault) => reason = fault.to_string(),
            }
            wait = (wait * 2).min(self.config.longest_wait);
        }
        Err(reason)
    }

    async fn read(&mut self, socket: &mut Socket, first: &mut bool) -> Broken {
        loop {
            let unsure = *first && self.goal.is_none();
            let patience = if unsure { PAUSE } else { SILENCE };
            let message = tokio::select! {
                () = self.sender.closed() => return Broken::Unwanted,
                message = tokio::time::timeout(patience, socket.next()) => message,
            };
            let text = match message {
                Err(_) if unsure => {
                    if !self.caught_up(first).await {
                        return Broken::Unwanted;
                    }
                    continue;
                }
                Err(_) => return Broken::Lost("the broker was silent for too long".to_owned()),
                Ok(None | Some(Ok(Message::Close(_)))) => {
                    return Broken::Lost("the broker closed the connection".to_owned());
                }
                Ok(Some(Err(fault))) => return Broken::Lost(fault.to_string()),
                Ok(Some(Ok(Message::Text(text)))) => text,
                Ok(Some(Ok(Message::Pong(mark)))) => {
                    if mark == MARK && unsure && !self.caught_up(first).await {
                        return Broken::Unwanted;
                    }
                    continue;
                }
                Ok(Some(Ok(Message::Binary(bytes)))) => String::from_utf8_lossy(&bytes).into_owned().into(),
                Ok(Some(Ok(Message::Ping(_) | Message::Frame(_)))) => continue,
            };
            if !self.pass(&text).await {
                return Broken::Unwanted;
            }
            if *first && self.is_level() && !self.caught_up(first).await {
                return Broken::Unwanted;
            }
        }
    }

    /// Whether all stored events were sent, as far as that is known.
    fn is_level(&self) -> bool {
        match self.since {
            Since::Now => true,
            Since::Seq(sent) => self.goal.is_some_and(|goal| sent >= goal),
        }
    }

    /// Sends, once, the end of the stored events; false without a subscriber.
    async fn caught_up(&self, first: &mut bool) -> bool {
        *first = false;
        self.sender.send(RelayEvent::caught_up()).await
    }

    /// Sends an event, unless it was sent before; false without a subscriber.
    async fn pass(&mut self, text: &str) -> bool {
        let Some(event) = RelayEvent::parse(text) else {
            // It may have been an expected reply.
            let shown = quoted(text, self.connection.key.expose());
            let reason = format!("the broker sent an invalid event: `{shown}`");
            self.sender.send(RelayEvent::closed(reason)).await;
            return false;
        };
        if let Some(seq) = event.seq {
            if matches!(self.since, Since::Seq(sent) if seq <= sent) {
                return true;
            }
            self.since = Since::Seq(seq);
        }
        self.sender.send(event).await
    }
}

/// The beginning of what cannot be read: on one line, and without the key.
fn quoted(text: &str, key: &str) -> String {
    const SHOWN: usize = 200;
    let mut known = KnownSecrets::new(1, "[key]");
    known.add(key);
    let text = known.text(text);
    shortened(&text.replace(char::is_control, " "), SHOWN)
}
