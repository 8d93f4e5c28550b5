//! Kind `openrouter-response`: what the adapters make of a loopback server's replies.

use serde_json::{Value, json};

use super::server::Server;
use super::vectors::{self, Play};
use super::{execution, model};
use crate::turn::compare::same;
use crate::turn::convert::{Done, at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// How each adapter is asked, and its result in the source's form.
const ADAPTERS: &[(&str, Play)] =
    &[("execution", execution::play), ("model", model::play), ("single-shot", model::ask)];

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, check)
}

fn check(vector: &Value) -> Done<()> {
    let play = vectors::of_adapter(ADAPTERS, vector)?;
    let server = Server::start(list(vector, "replies"))?;
    let refused = text(vector, "transport") == "connection-refused";
    let url = if refused { Server::nowhere()? } else { server.url.clone() };
    let mut got = play(vector, &url)?;
    let expected = at(vector, "expected");
    same("requestCount", at(expected, "requestCount"), &json!(server.seen().len()))?;
    vectors::settle_free_texts(at(expected, "result"), &mut got);
    same("result", at(expected, "result"), &got)
}
