//! Vectors of kind `orchestrator`: a thread, its script, and its observers.
//!
//! `world` is what one vector plays in, `play` performs its actions, `script` answers for the model, `tools` for
//! the tools, `wire` converts the events of the thread to the source's.

pub(crate) mod engine;
mod play;
mod script;
mod sessions;
mod tools;
mod wire;
mod words;
mod world;

use serde_json::{Map, Value, json};

use super::subset::matches;
use crate::Done;
use crate::case::{Case, block_on};
use crate::driver::{Driver, Threads};
use crate::vector::Vector;
use crate::verdict::Verdict;
use play::Player;
use words::Input;
use world::World;

/// Runs the one vector of the file.
pub(super) fn run(vector: &Vector, driver: &dyn Driver) -> Verdict {
    check(vector, driver).into()
}

fn check(vector: &Vector, driver: &dyn Driver) -> Done<()> {
    let Case { input, mut expect, .. } = Case::of(vector)?;
    let got = if driver.threads() == Some(Threads::OnEngine) {
        // Its log takes the place of a file; the transcript is what is in it.
        expect.as_object_mut().map(|expect| expect.remove("session"));
        engine::played(input)?
    } else {
        block_on(played(input))??
    };
    loosen(&mut expect, false);
    matches("expect", &expect, &got)
}

/// An expected beginning of a human-readable text matches any text.
fn loosen(expected: &mut Value, of_error: bool) {
    match expected {
        Value::Object(map) => {
            let of_error = of_error || map.get("isError") == Some(&Value::Bool(true));
            for (key, value) in map {
                let is_free =
                    matches!(key.as_str(), "errorMessage" | "message") || (of_error && key == "text");
                if is_free && value.as_str().is_some_and(|text| text.starts_with("$prefix:")) {
                    *value = json!("$nonempty");
                }
                loosen(value, of_error);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| loosen(value, of_error)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn played(input: Input) -> Done<Value> {
    let Input { options, model_script, actions } = input;
    let mut player = Player::new(World::new(options, model_script)?);
    let mut got = Map::new();
    if let Err(errors) = player.construct().await {
        got.insert("construct_error".to_owned(), errors);
        return Ok(Value::Object(got));
    }
    got.insert("construct_error".to_owned(), Value::Null);
    let mut steps = Vec::new();
    for action in &actions {
        steps.push(player.step(action).await?);
    }
    player.world.broken()?;
    got.insert("steps".to_owned(), json!(steps));
    got.insert("requests".to_owned(), json!(player.world.requests()));
    got.insert("transcript".to_owned(), player.transcript().await?);
    player.close().await;
    player.world.sessions.report(&mut got).await?;
    Ok(Value::Object(got))
}
