//! The listener of a front end for workers.

use std::io;
use std::net::SocketAddr;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use harness::core::Cancel;
use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;

use super::hub::RelayHub;
use super::{PATH, Push, Token};

/// Bytes of a batch, at most. 4 MiB.
const BODY: usize = 4 << 20;

/// Characters of a token, at least.
const SHORTEST: usize = 16;

/// Reason why deltas cannot be sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// An address is not a URL.
    #[error("`{0}` is not the URL of a front end; use one such as http://127.0.0.1:8788")]
    Url(String),
    /// Any client could send deltas.
    #[error("{0} is not a loopback address, so the relay listener needs a token")]
    Open(SocketAddr),
    /// The token can be guessed.
    #[error("the relay token has fewer than 16 characters, or others than visible ASCII")]
    WeakToken,
    /// The listener failed.
    #[error("the relay listener cannot accept connections: {0}")]
    Listener(#[from] io::Error),
}

impl RelayError {
    /// A stable code, for example `deltas.url`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Url(_) => "deltas.url",
            Self::Open(_) => "deltas.open",
            Self::WeakToken => "deltas.weak_token",
            Self::Listener(_) => "deltas.listener",
        }
    }
}

#[derive(Clone)]
struct Listening {
    hub: RelayHub,
    token: Option<Token>,
}

impl RelayHub {
    /// Checks that a listener is protected: a token has at least 16 characters of visible ASCII, and is required on addresses that others
    /// reach.
    ///
    /// # Errors
    /// [`RelayError::Open`]; [`RelayError::WeakToken`].
    pub fn check(address: SocketAddr, token: Option<&str>) -> Result<(), RelayError> {
        match token {
            None if !address.ip().is_loopback() => Err(RelayError::Open(address)),
            Some(token) if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(RelayError::WeakToken)
            }
            None | Some(_) => Ok(()),
        }
    }

    /// Receives batches of workers until `cancel` fires.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`RelayError::Listener`].
    pub async fn serve(
        &self,
        listener: TcpListener,
        token: Option<String>,
        cancel: Cancel,
    ) -> Result<(), RelayError> {
        Self::check(listener.local_addr()?, token.as_deref())?;
        let state = Listening { hub: self.clone(), token: token.map(Token::from) };
        let routes = Router::new().route(PATH, post(take)).with_state(state);
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "replies to a worker may be delayed");
            }
        });
        let serving = axum::serve(listener, routes);
        tokio::select! {
            served = serving => Ok(served?),
            () = cancel.cancelled() => Ok(()),
        }
    }
}

async fn take(State(Listening { hub, token }): State<Listening>, request: Request) -> Response {
    if !is_permitted(token.as_ref(), request.headers()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    // Pages in a browser on this machine cannot send this type without a permission.
    if request.headers().get(header::CONTENT_TYPE).is_none_or(|of| of != "application/json") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match serde_json::from_slice::<Push>(&body) {
        Ok(push) => Json(hub.take(push)).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn is_permitted(token: Option<&Token>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let given =
        headers.get(header::AUTHORIZATION).and_then(|given| given.as_bytes().strip_prefix(b"Bearer "));
    given.is_some_and(|given| given.ct_eq(token.expose_secret().as_bytes()).into())
}
