//! Kind `openrouter-response`: what the adapters make of a loopback server's replies.

use serde_json::json;

use super::server::Server;
use super::vectors;
use super::words::{ChatTransport, ResponseVector};
use crate::Done;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

fn check(vector: ResponseVector) -> Done<()> {
    let ResponseVector { adapter, config, input, transport, replies, expected, .. } = vector;
    let server = Server::start(replies)?;
    let url = match transport {
        Some(ChatTransport::ConnectionRefused) => Server::nowhere()?,
        None => server.url.clone(),
    };
    let mut got = adapter.play(&config, input.as_ref(), &url)?;
    same("requestCount", &json!(expected.request_count), &json!(server.seen().len()))?;
    vectors::settle_free_texts(&expected.result, &mut got);
    same("result", &expected.result, &got)
}
