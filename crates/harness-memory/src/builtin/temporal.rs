//! Temporal facts: the date of today, and what was said to be true at which time.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::port::BoxFuture;
use harness_core::tool::{ArgumentFault, RetryClass};
use harness_core::{Json, Millis, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments;
use super::buffer::Buffer;
use super::text::{fenced, listed};
use crate::MemoryError;
use crate::layer::{
    AppendAsk, Appended, Called, Execution, Hook, Layer, LayerCx, LayerDef, Placement, RecallAsk, Recalled,
    Scope, Spawned, StoreAsk, Update,
};

/// Finds facts with their times in texts.
pub trait FactFinder: Send + Sync {
    /// The facts of `texts` (the oldest first) as pairs of a time, written so that texts sort as times do
    /// (`2025-01-02`, `2025-01-02T10:00`), and what is true of it. `now` is today's date and time.
    ///
    /// # Errors
    /// The texts are kept, and it is asked again with the next ones.
    fn extract<'a>(
        &'a self,
        texts: &'a [String],
        now: Time,
        cx: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, MemoryError>>;

    /// Answers a question from the facts that are known; `None` leaves it to the layer, which answers with
    /// all of them.
    ///
    /// # Errors
    /// The model reads it.
    fn search<'a>(
        &'a self,
        _query: &'a str,
        _facts: &'a BTreeMap<String, Vec<String>>,
        _cx: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Option<String>, MemoryError>> {
        Box::pin(async { Ok(None) })
    }
}

/// The date and the time of day in the view, and facts by the time they belong to.
#[derive(Clone, derive_more::Debug)]
pub struct TemporalFacts {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    #[debug(skip)]
    finder: Option<Arc<dyn FactFinder>>,
    /// Tokens of text after which facts are extracted. Default 2,000.
    pub threshold: u64,
    /// Stored facts; the oldest are dropped first. Default 200.
    pub kept: usize,
    /// Minutes of local time ahead of UTC. Default 0.
    pub utc_offset: i32,
    grounded: bool,
    ledger: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    facts: BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    waiting: Buffer,
    version: u64,
    /// Error of the last extraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl State {
    /// Adds facts that are not known yet, and drops the oldest beyond `most`.
    fn learn(&mut self, found: Vec<(String, String)>, most: usize) {
        for (time, fact) in found {
            let known = self.facts.entry(time).or_default();
            if !known.contains(&fact) {
                known.push(fact);
            }
        }
        let count: usize = self.facts.values().map(Vec::len).sum();
        for _ in most..count {
            if let Some(mut oldest) = self.facts.first_entry() {
                if !oldest.get().is_empty() {
                    oldest.get_mut().remove(0);
                }
                if oldest.get().is_empty() {
                    oldest.remove();
                }
            }
        }
    }

    /// `[time] fact`, the newest first.
    fn lines(&self) -> impl Iterator<Item = String> {
        let newest = self.facts.iter().rev();
        newest.flat_map(|(time, facts)| facts.iter().rev().map(move |fact| format!("[{time}] {fact}")))
    }
}

#[derive(Deserialize, JsonSchema)]
struct SearchArguments {
    /// Words to search for.
    query: String,
}

impl TemporalFacts {
    /// The date and time in UTC, and no facts: threshold 2,000 tokens, 200 facts kept.
    pub fn new() -> Self {
        let hooks = [Hook::Init, Hook::Append, Hook::Recall, Hook::Store, Hook::Spawn];
        let minute = Some(Millis(60_000));
        let def = LayerDef::new("temporal", 80, hooks)
            .with_scope(Scope::Resource)
            .with_range(0, 200)
            .with_placement(Placement::Live)
            .with_limit(Hook::Append, minute)
            .with_limit(Hook::Store, minute);
        Self { def, finder: None, threshold: 2_000, kept: 200, utc_offset: 0, grounded: true, ledger: false }
    }

    /// Extracts facts from the conversation, and adds the function `searchMemory`.
    #[must_use]
    pub fn with_finder(self, finder: Arc<dyn FactFinder>) -> Self {
        let search = arguments::function::<SearchArguments>(
            "searchMemory",
            "Looks up what was said to be true at some time, for example when something happened or is planned.",
        );
        let def = self.def.with_function(search.with_class(RetryClass::Pure));
        Self { finder: Some(finder), def, ..self }
    }

    /// Omits date and time. The layer can then be anchored, because it rarely changes.
    #[must_use]
    pub fn ungrounded(self) -> Self {
        Self { grounded: false, def: self.def.with_placement(Placement::Auto), ..self }
    }

    /// Shows the facts, newest first, in up to 800 tokens.
    #[must_use]
    pub fn with_ledger(self) -> Self {
        Self { ledger: true, def: self.def.with_range(0, 800), ..self }
    }

    /// Looks for facts when enough texts wait.
    async fn learned(&self, mut state: State, cx: &LayerCx) -> Result<Update, MemoryError> {
        if let Some(finder) = &self.finder
            && state.waiting.buffer_tokens >= self.threshold
        {
            match finder.extract(&state.waiting.buffer, cx.now, cx).await {
                Ok(found) => {
                    state.learn(found, self.kept);
                    state.waiting.clear();
                    state.version += 1;
                    state.failed = None;
                }
                Err(fault) if fault.is_config() => return Err(fault),
                Err(fault) => state.failed = Some(fault.to_string()),
            }
        }
        Update::set(&state)
    }

    fn date_block(&self, now: Time) -> String {
        let line = date_line(Time(now.0.saturating_add(i64::from(self.utc_offset) * 60_000)));
        let rule = "Work out relative dates (today, tomorrow, last week) from this date and time.";
        fenced("current_datetime", &format!("{line}\n{rule}"))
    }
}

/// `Now: 2025/03/09 (Sun) 07:05`.
fn date_line(local: Time) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let days = local.0.div_euclid(86_400_000).rem_euclid(7);
    let day = usize::try_from(days).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"");
    let iso = local.iso();
    let (date, clock) = iso.split_once('T').unwrap_or((&iso, ""));
    let minutes = clock.get(..5).unwrap_or(clock);
    format!("Now: {} ({day}) {minutes}", date.replace('-', "/"))
}

impl Layer for TemporalFacts {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn on_append(&self, ask: AppendAsk, cx: &LayerCx) -> Result<Appended, MemoryError> {
        let mut state: State = cx.state_as()?;
        if self.finder.is_none() || !state.waiting.take_in(&ask.items, self.threshold, cx) {
            return Ok(Appended::items(ask.items));
        }
        let update = self.learned(state, cx).await?;
        Ok(Appended::items(ask.items).with_state(update))
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let mut blocks = Vec::new();
        let mut left = ask.budget;
        if self.grounded {
            let block = self.date_block(cx.now);
            left = left.saturating_sub(cx.tokenize(&block));
            blocks.push(block);
        }
        if self.ledger {
            let state: State = cx.state_as()?;
            blocks.extend(listed("remembered_facts", "", state.lines(), left, cx));
        }
        Ok(if blocks.is_empty() { Recalled::nothing() } else { Recalled::text(blocks.join("\n\n")) })
    }

    async fn store(&self, ask: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        let mut state: State = cx.state_as()?;
        if self.finder.is_none() || !state.waiting.take_answer(&ask.answer, self.threshold, cx) {
            return Ok(Update::Keep);
        }
        self.learned(state, cx).await
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        Ok(cx.state.clone().map(Spawned::state))
    }

    fn check_call(&self, _function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
        arguments::check::<SearchArguments>(arguments)
    }

    async fn call(&self, _function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        let SearchArguments { query } = arguments::parsed(&arguments)?;
        let state: State = cx.state_as()?;
        let found = match &self.finder {
            Some(finder) => finder.search(&query, &state.facts, cx).await?,
            None => None,
        };
        let all = || state.lines().collect::<Vec<_>>().join("\n");
        Ok(Called::text(&found.unwrap_or_else(all)))
    }
}
