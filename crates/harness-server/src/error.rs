//! Errors of the server.

use std::io;
use std::net::SocketAddr;

/// Error of a server that does not start or stops early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is reachable from other machines, and there is no bearer token.
    #[error("cannot listen on {address} without a bearer token: any client on the network could use it")]
    TokenRequired {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The bearer token is too short or contains characters that a header cannot carry.
    #[error("the token has fewer than 16 characters, or others than visible ASCII")]
    WeakToken,
    /// Invalid origin of web pages.
    #[error("invalid origin `{origin}`")]
    Origin {
        /// Text that is not an origin.
        origin: String,
    },
    /// The listener failed.
    #[error("the server cannot listen: {0}")]
    Listen(#[from] io::Error),
}

impl ServerError {
    /// Stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TokenRequired { .. } => "server.token_required",
            Self::WeakToken => "server.weak_token",
            Self::Origin { .. } => "server.origin",
            Self::Listen(_) => "server.listen",
        }
    }

    /// Suggested fix.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TokenRequired { .. } => Some("give it a token, or let it listen on 127.0.0.1"),
            Self::WeakToken => {
                Some("take 32 or more characters at random, for example of `openssl rand -hex 32`")
            }
            Self::Origin { .. } => {
                Some("write scheme, name and port as browsers send them, for example https://app.example.com")
            }
            Self::Listen(_) => None,
        }
    }
}
