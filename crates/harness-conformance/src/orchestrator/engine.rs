//! The thread of a vector on an engine.

use std::sync::Arc;

use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{RunOptions, SimEngine, ThreadAsk};
use harness_runtime::{DeliveryMode, Runtime};
use serde_json::{Map, Value, json};

use super::super::runtime::Ids;
use super::play::{Player, problems, word};
use super::words::{Action, Input};
use super::world::{Place, World, user_message};
use crate::Done;
use crate::driver::durable::{EngineThread, beside};
use crate::vector::Vector;

const CONFIGURATION: &str =
    "it changes the configuration of a thread of this process; a thread on an engine has that of its workers";
const IDLE: &str = "it compares the status between two runs: a thread on an engine is idle there";
const PROMPT: &str = "its prompt builder counts messages; on an engine it sees the prompt of the run, too";
const FILE: &str = "it prepares a session file, or one that fails; a thread on an engine has none";

/// Reason why a thread on an engine skips the vector.
pub(crate) fn skips(vector: &Vector) -> Option<&'static str> {
    let input = vector.value.get("input")?;
    let mut words = Vec::new();
    words_of(input, &mut words);
    let of_engine = ["prompt", "continue", "steer", "follow_up", "abort"];
    // Continuing takes a message that waits into its one run, unless steering waits, too.
    let has = |word| words.contains(&word);
    let follows = has("follow_up") && (has("steer") || !has("continue"));
    let option = |name: &str| input.pointer(&format!("/options/{name}"));
    let reasons = [
        (option("seed_file").is_some() || option("session") == Some(&json!("failing")), FILE),
        (!words.iter().all(|word| of_engine.contains(word)), CONFIGURATION),
        (follows, IDLE),
        (option("build_system_prompt") == Some(&Value::Bool(true)), PROMPT),
    ];
    reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
}

/// The words of all actions, inside of runs, too.
fn words_of<'v>(value: &'v Value, words: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            words.extend(fields.get("do").and_then(Value::as_str));
            fields.values().for_each(|value| words_of(value, words));
        }
        Value::Array(items) => items.iter().for_each(|item| words_of(item, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Plays the vector.
pub(super) fn played(input: Input) -> Done<Value> {
    let Input { options, model_script, actions } = input;
    let engine = SimEngine::new(SimFaults::default());
    let thread = EngineThread::new(&engine, "vector");
    let mut player = Player::new(World::new(options, model_script)?);
    let config = player.config(Arc::new(engine.clock()))?;
    let runtime = Runtime::builder(config, Arc::new(Ids)).build();
    player.world.set_place(Some(Place::Engine(thread.clone())));
    beside(&engine, &thread, runtime, async move {
        let mut steps = Vec::new();
        for action in &actions {
            steps.push(player.step(action).await?);
        }
        player.world.broken()?;
        let transcript = player.transcript().await?;
        let mut got = Map::new();
        got.insert("construct_error".to_owned(), Value::Null);
        got.insert("session_count".to_owned(), json!(transcript.as_array().map_or(0, Vec::len)));
        got.insert("steps".to_owned(), json!(steps));
        got.insert("requests".to_owned(), json!(player.world.requests()));
        got.insert("transcript".to_owned(), transcript);
        Ok(Value::Object(got))
    })
}

/// Performs an action, inside of a run or outside; its result in the vectors' words.
#[expect(clippy::wildcard_enum_match_arm, reason = "vectors with other actions are skipped")]
pub(super) async fn perform(thread: &EngineThread, action: &Action) -> Done<Value> {
    let message = |said| Arc::new(user_message(said));
    let waits = |said, mode| {
        let options = RunOptions::default();
        ThreadAsk::Deliver { entry: thread.name(), message: message(said), mode, wakes: false, options }
    };
    let options = RunOptions::default();
    let ask = match action {
        Action::Prompt(said) => {
            ThreadAsk::Start { entry: thread.name(), messages: vec![message(said)], resume: None, options }
        }
        Action::Continue {} => ThreadAsk::Continue { options },
        Action::Steer(said) => waits(said, DeliveryMode::BetweenRounds),
        Action::FollowUp(said) => waits(said, DeliveryMode::NextTurn),
        Action::Abort {} => ThreadAsk::Abort { reason: Some("abort".into()) },
        _ => return Err(format!("an engine has no action `{}`", word(action))),
    };
    let is_run = matches!(action, Action::Prompt(_) | Action::Continue {});
    let error = match thread.ask(ask).await {
        Ok(_) if is_run => problems(&thread.response().await?),
        Ok(_) => Value::Null,
        Err(why) => code(&why),
    };
    Ok(json!({"do": word(action), "error": error}))
}

/// A refusal, in the vectors' words.
fn code(why: &str) -> Value {
    let code = match why.split_once(':').map_or(why, |(code, _)| code) {
        "nothing_to_resume" => "last_message_is_assistant",
        code => code,
    };
    json!([{"code": code}])
}
