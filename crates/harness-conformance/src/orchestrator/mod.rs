//! Vectors of kind `orchestrator`: a thread, its script, and what everybody saw.
//!
//! `world` is what one vector plays in, `play` performs its actions, `script` answers for the model, `tools` for
//! the tools, `wire` turns what the thread tells into the source's events.

mod play;
mod script;
mod sessions;
mod tools;
mod wire;
mod world;

use serde_json::{Map, Value, json};

use super::subset::matches;
use super::turn::convert::{Done, at, list};
use crate::vector::Vector;
use crate::verdict::Verdict;
use play::Player;

/// Runs the one vector of the file.
pub(super) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Done<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let got = runtime.map_err(|e| e.to_string())?.block_on(played(at(vector, "input")))?;
    matches("expect", at(vector, "expect"), &got)
}

async fn played(input: &Value) -> Done<Value> {
    let mut player = Player::new(input)?;
    let mut got = Map::new();
    if let Err(errors) = player.construct().await {
        got.insert("construct_error".to_owned(), errors);
        return Ok(Value::Object(got));
    }
    let mut steps = Vec::new();
    for action in list(input, "actions") {
        steps.push(player.step(action).await?);
    }
    got.insert("steps".to_owned(), json!(steps));
    got.insert("requests".to_owned(), json!(player.world.requests()));
    got.insert("transcript".to_owned(), player.transcript().await?);
    player.close().await;
    player.world.sessions.report(&mut got).await?;
    Ok(Value::Object(got))
}
