//! Kind `openrouter-request`: what the adapters send, seen by a loopback server.

use serde_json::{Value, json};

use super::server::Server;
use super::vectors::{self, Play};
use super::{execution, model};
use crate::turn::compare::same;
use crate::turn::convert::{Done, at};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// How each adapter is asked to send one request; what comes of it is not looked at.
const ADAPTERS: &[(&str, Play)] =
    &[("execution", execution::play), ("model", model::play), ("single-shot", model::ask)];

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, check)
}

fn check(vector: &Value) -> Done<()> {
    let play = vectors::of_adapter(ADAPTERS, vector)?;
    let answer = r#"{"id":"r","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}"#;
    let server =
        Server::start(&[json!({ "headers": { "content-type": "application/json" }, "body": answer })])?;
    play(vector, &server.url)?;
    let seen = server.seen();
    let expected = at(vector, "expected");
    same("requestCount", at(expected, "requestCount"), &json!(seen.len()))?;
    let Some(request) = seen.first() else { return Ok(()) };
    same("method", at(expected, "method"), &json!(request.method))?;
    for (name, value) in at(expected, "headers").as_object().into_iter().flatten() {
        same(&format!("headers.{name}"), value, &json!(request.header(name)))?;
    }
    same("body", at(expected, "body"), &request.body()?)
}
