//! Kind `openrouter-request`: what the adapters send, seen by a loopback server.

use serde_json::json;

use super::server::Server;
use super::words::{Reply, RequestVector};
use crate::Done;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Response of the server; its result is not compared.
const ANSWER: &str = r#"{"id":"r","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}"#;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(|vector| check(&vector)).into()
}

fn check(RequestVector { adapter, config, input, expected, .. }: &RequestVector) -> Done<()> {
    let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
    let reply = Reply { headers, body: ANSWER.to_owned(), ..Reply::default() };
    let server = Server::start(vec![reply])?;
    adapter.play(config, Some(input), &server.url)?;
    let seen = server.seen();
    same("requestCount", &json!(expected.request_count), &json!(seen.len()))?;
    let Some(request) = seen.first() else { return Ok(()) };
    same("method", &expected.method, &json!(request.method))?;
    for (name, value) in &expected.headers {
        same(&format!("headers.{name}"), value, &json!(request.header(name)))?;
    }
    same("body", &expected.body, &request.body()?)
}
