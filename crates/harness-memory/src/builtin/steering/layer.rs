//! The layer that asks the rules.

use std::sync::Arc;

use harness_core::message::Message;
use serde::{Deserialize, Serialize};

use super::super::text::fenced;
use super::background::Background;
use super::judge::{Case, JudgeMode, Unclear};
use super::rule::{LedgerEntry, SteerAsk, SteerPoint, SteeringRule, Test};
use crate::MemoryError;
use crate::layer::{
    Decided, Decision, Execution, Guides, Hook, Layer, LayerCx, LayerDef, OnToolGateError, Placement,
    RecallAsk, Recalled, Spawned, ToolAsk, Update,
};

/// Asks rules about tool calls and answers: a denial ends the round, guidance is gathered.
///
/// ```
/// use harness_memory::builtin::steering::{SteerPoint, Steering, SteeringRule};
/// use harness_memory::layer::Decision;
///
/// let no_pushes = SteeringRule::code("no-pushes", |ask| {
///     let SteerPoint::Tool(tool) = ask.point else { return Decision::Allow };
///     if tool.call.arguments.text().contains("git push") {
///         return Decision::deny("pushing is not allowed; show the diff instead");
///     }
///     Decision::Allow
/// });
/// let polite = SteeringRule::judged("polite", "The answer must not be rude.").for_answers();
/// let layer = Steering::new([no_pushes, polite]);
/// # let _ = layer;
/// ```
#[derive(Clone, Debug)]
pub struct Steering {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    rules: Vec<SteeringRule>,
    /// Ledger entries that are kept, the newest. Default 100.
    pub most_entries: usize,
    /// Further calls of a judge whose response is not a verdict. Default 1.
    pub max_retries: u32,
    unclear: Unclear,
    background: Background,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    ledger: Vec<LedgerEntry>,
    /// Objections that wait to be shown: rule and text.
    pending_async: Vec<(Arc<str>, String)>,
}

impl Steering {
    /// Applies `rules` in order.
    pub fn new(rules: impl IntoIterator<Item = SteeringRule>) -> Self {
        let hooks =
            [Hook::Init, Hook::Recall, Hook::BeforeTool, Hook::AfterModel, Hook::Spawn, Hook::Dispose];
        let def = LayerDef::new("steering", 90, hooks).with_range(0, 500).with_placement(Placement::Live);
        Self {
            def,
            rules: rules.into_iter().collect(),
            most_entries: 100,
            max_retries: 1,
            unclear: Unclear::Allow,
            background: Background::default(),
        }
    }

    /// Fails closed: an unclear or missing verdict denies.
    #[must_use]
    pub fn gating(mut self) -> Self {
        self.def.on_tool_gate_error = OnToolGateError::Deny;
        Self { unclear: Unclear::Deny, ..self }
    }

    /// The verdict of all rules on `point`.
    async fn judged(
        &self,
        point: SteerPoint<'_>,
        ledger: &[LedgerEntry],
        cx: &LayerCx,
    ) -> Result<Decision, MemoryError> {
        let mut guides = Guides::default();
        for rule in self.rules.iter().filter(|rule| rule.points.contains(&point.hook())) {
            let decision = match &rule.test {
                Test::Predicate(decide) => decide(&SteerAsk { point, ledger, cx }),
                Test::Judge { mode, prompt, model } => {
                    if !cx.has_model() {
                        return Err(missing_model(&rule.id));
                    }
                    let mut case = Case::new(Arc::clone(&rule.id), prompt, model.clone(), point);
                    case.max_retries = self.max_retries;
                    case.unclear = self.unclear;
                    if *mode == JudgeMode::Async {
                        self.background.begin(case, cx);
                        continue;
                    }
                    case.decide(cx).await?
                }
            };
            if let Some(denied) = guides.add(decision) {
                return Ok(denied);
            }
        }
        Ok(guides.decision())
    }

    fn noted(&self, mut state: State, entry: LedgerEntry) -> Result<Update, MemoryError> {
        state.ledger.push(entry);
        let surplus = state.ledger.len().saturating_sub(self.most_entries);
        state.ledger.drain(..surplus);
        Update::set(&state)
    }
}

fn missing_model(rule: &str) -> MemoryError {
    MemoryError::config(
        "MISSING_CALL_MODEL",
        format!("steering: rule `{rule}` is judged by a model, but none was given to the layers"),
    )
}

impl Layer for Steering {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let fresh = self.background.objections(&cx.execution.id);
        let mut state: State = cx.state_as()?;
        if fresh.is_empty() && state.pending_async.is_empty() {
            return Ok(Recalled::nothing());
        }
        state.pending_async.extend(fresh);
        let rendered = |count: usize| {
            let lines = state.pending_async.iter().take(count).map(|(rule, text)| format!("[{rule}] {text}"));
            fenced("steering_feedback", &lines.collect::<Vec<_>>().join("\n"))
        };
        let fits = |count: &usize| ask.budget == 0 || cx.tokenize(&rendered(*count)) <= ask.budget;
        // What does not fit waits for the next view; the first is shown even so, or it would wait for ever.
        let count = (1..=state.pending_async.len()).rev().find(fits).unwrap_or(1);
        let text = rendered(count);
        state.pending_async.drain(..count);
        Ok(Recalled::text(text).with_state(Update::set(&state)?))
    }

    async fn before_tool(&self, ask: &ToolAsk, cx: &LayerCx) -> Result<Decided, MemoryError> {
        let state: State = cx.state_as()?;
        let decision = self.judged(SteerPoint::Tool(ask), &state.ledger, cx).await?;
        let entry = LedgerEntry::ToolCall {
            name: ask.def.name.to_string(),
            action: decision.action().to_owned(),
            at: cx.now,
        };
        Ok(Decided::from(decision).with_state(self.noted(state, entry)?))
    }

    async fn after_model(&self, answer: &Arc<Message>, cx: &LayerCx) -> Result<Decided, MemoryError> {
        let state: State = cx.state_as()?;
        let decision = self.judged(SteerPoint::Answer(answer), &state.ledger, cx).await?;
        let entry = LedgerEntry::ModelTurn { action: decision.action().to_owned(), at: cx.now };
        Ok(Decided::from(decision).with_state(self.noted(state, entry)?))
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        let mut state: State = cx.state_as()?;
        state.pending_async.clear();
        match Update::set(&state)? {
            Update::Set(state) => Ok(Some(Spawned::state(state))),
            Update::Keep | Update::Clear => Ok(None),
        }
    }

    async fn dispose(&self, cx: &LayerCx) -> Result<(), MemoryError> {
        self.background.release(&cx.execution.id);
        Ok(())
    }
}
