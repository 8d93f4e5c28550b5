//! Sends to front ends what a worker has.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use secrecy::ExposeSecret as _;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::outbox::Outbox;
use super::{PATH, Push, Pushed, RelayError, Token};
use crate::engine::restate::engine::url;

/// The shortest time between two batches for a front end.
const PACE: Duration = Duration::from_millis(30);
/// The longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The first and the longest pause after a request that failed.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often names of hosts are looked up.
const LOOKUP: Duration = Duration::from_secs(10);
/// Front ends, at most.
const FRONT_ENDS: usize = 64;

/// The front ends that receive deltas and notices of a worker. A name of a host with several addresses is as many front ends.
///
/// ```
/// use harness_restate::engine::restate::Relays;
///
/// let relays = Relays::new(["http://127.0.0.1:8788"])?.token("a long random text".into());
/// assert!(Relays::new(["front end"]).is_err());
/// # let _ = relays;
/// # Ok::<_, harness_restate::engine::restate::RelayError>(())
/// ```
#[derive(Clone)]
pub struct Relays {
    urls: Vec<Url>,
    token: Option<Token>,
}

impl fmt::Debug for Relays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relays").field("urls", &self.urls.len()).finish_non_exhaustive()
    }
}

impl Relays {
    /// Front ends by the URLs of their relay listeners.
    ///
    /// # Errors
    /// [`RelayError::Url`].
    pub fn new(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, RelayError> {
        let read = |text: &str| url(text).map_err(|_| RelayError::Url(text.to_owned()));
        let urls = urls.into_iter().map(|text| read(text.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { urls, token: None })
    }

    /// Sets the bearer token of the front ends. Default: none.
    #[must_use]
    pub fn token(mut self, token: String) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sends to all front ends. Addresses of their hosts are looked up from time to time.
    pub(in crate::engine::restate) async fn send(self, outbox: Arc<Outbox>) -> Infallible {
        let mut senders = JoinSet::new();
        let mut known: HashMap<(usize, SocketAddr), AbortHandle> = HashMap::new();
        loop {
            for (at, url) in self.urls.iter().enumerate() {
                let Some(addresses) = addresses(url).await else { continue };
                known.retain(|(of, address), sender| {
                    let is_current = *of != at || addresses.contains(address);
                    if !is_current {
                        sender.abort();
                    }
                    is_current
                });
                for address in addresses {
                    if known.len() >= FRONT_ENDS || known.contains_key(&(at, address)) {
                        continue;
                    }
                    let Some(front_end) = FrontEnd::new(url, address, self.token.clone()) else { continue };
                    let sender = senders.spawn(front_end.follow(Arc::clone(&outbox)));
                    known.insert((at, address), sender);
                }
            }
            while senders.try_join_next().is_some() {}
            tokio::time::sleep(LOOKUP).await;
        }
    }
}

/// The addresses of a host; `None` if they cannot be looked up now.
async fn addresses(url: &Url) -> Option<Vec<SocketAddr>> {
    let host = url.host_str()?.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, url.port_or_known_default()?)).await;
    match found {
        Ok(found) => Some(found.collect()),
        Err(error) => {
            tracing::debug!(%url, %error, "the address of a front end is not known");
            None
        }
    }
}

/// One front end.
struct FrontEnd {
    client: Client,
    url: Url,
    address: SocketAddr,
    token: Option<Token>,
}

impl FrontEnd {
    fn new(url: &Url, address: SocketAddr, token: Option<Token>) -> Option<Self> {
        let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(TIMEOUT);
        let client = client.resolve(url.host_str()?, address).build();
        let client = client.inspect_err(|error| tracing::warn!(%error, "no client for a front end")).ok()?;
        Some(Self { client, url: url.join(PATH).ok()?, address, token })
    }

    /// Sends batches for ever. A front end that fails is tried again in pauses, and gets what it missed of answers in progress.
    async fn follow(self, outbox: Arc<Outbox>) -> Infallible {
        let (mut lane, mut retry) = (outbox.lane(), RETRY.0);
        loop {
            let mut grown = pin!(outbox.grown());
            grown.as_mut().enable();
            let now = Instant::now();
            let Some(batch) = outbox.batch(&mut lane, now) else {
                let again = lane.asks_at();
                tokio::select! {
                    () = grown => {}
                    () = tokio::time::sleep_until(again.unwrap_or(now)), if again.is_some() => {}
                }
                tokio::time::sleep_until(now + PACE).await;
                continue;
            };
            match self.push(&batch.push).await {
                Ok(reply) => {
                    lane.sent(&batch, reply, Instant::now());
                    retry = RETRY.0;
                    tokio::time::sleep_until(now + PACE).await;
                }
                Err(error) => {
                    // The error names the URL, never the token.
                    if retry == RETRY.0 {
                        tracing::warn!(address = %self.address, %error, "a front end does not take deltas");
                    } else {
                        tracing::debug!(address = %self.address, %error, "a front end still takes no deltas");
                    }
                    lane.failed(batch);
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(RETRY.1);
                }
            }
        }
    }

    async fn push(&self, push: &Push) -> Result<Pushed, reqwest::Error> {
        let mut request = self.client.post(self.url.clone()).json(push);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        request.send().await?.error_for_status()?.json().await
    }
}
