//! What the control of a run knows: plain data, part of the run's state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use harness_core::ToolName;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use serde::{Deserialize, Serialize};

use super::decision::{StopDecision, TurnOutcome};
use super::progress::{Fingerprint, ProgressTracker};
use super::report::{CompletionReport, GateReport};
use super::spec::ControlSpec;
use crate::contract::{Coverage, EvidenceIndex, FactsAsk, Verifier};
use crate::work::{ItemChange, ItemId, ItemStatus, WorkLedger};

/// How many tools' calls are counted apart.
const TOOLS: usize = 512;
/// How many texts of a completion report's lists are kept, and how many characters of each.
const LISTED: usize = 50;
const TEXT: usize = 2_000;
/// How many bytes of the texts of a turn are looked at for progress, about.
const SAID: usize = 64 << 10;

/// Tools that only look at the work items.
const LOOKS: [&str; 2] = ["work_item_list", "work_item_get"];

/// What the control of a run knows: the evidence, what of the contract is met, the work items, what was told,
/// and how long nothing has changed. A fold over the messages of the run; bounded.
///
/// The run machine keeps it. Whoever decides for a loop of their own feeds it the messages
/// ([`ControlState::note_message`]), says how each turn ended and asks [`ControlState::judge`] and
/// [`ControlState::decide`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlState {
    pub(super) evidence: EvidenceIndex,
    pub(super) coverage: Option<Coverage>,
    pub(super) ledger: WorkLedger,
    /// How often each tool was called.
    usage: BTreeMap<ToolName, u64>,
    /// Turns in a row without a call that were answered by a prompt to go on.
    pub(super) silent: u32,
    /// Ends without the signal in a row.
    pub(super) retries: u32,
    pub(super) progress: ProgressTracker,
    /// Whether the model was told that nothing changes.
    pub(super) nudged: bool,
    /// Instructions that are told only once, and were.
    pub(super) told: BTreeSet<String>,
    pub(super) completion: Option<CompletionReport>,
    /// Revisions that were skipped without a note. Strict automation does not accept them.
    pub(super) unexplained: BTreeSet<ItemId>,
    pub(super) turn: TurnSeen,
    /// The calls of the latest answer, whose results follow.
    calls: Vec<Arc<ToolCall>>,
    /// The text of the last answer that has any.
    pub(super) response: Option<String>,
    /// What the gates said last.
    pub(super) gates: Vec<GateReport>,
    pub(super) last: Option<StopDecision>,
    /// What spares work; nothing rests on it.
    #[serde(skip)]
    pub(super) verifier: Verifier,
}

/// What was seen of the turn that runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TurnSeen {
    /// A tool other than the signal was called.
    pub(super) called: bool,
    /// One of them does more than look at the work items.
    pub(super) worked: bool,
    /// The event of the signal's result.
    pub(super) signal: Option<u64>,
    /// Calls with digests of their arguments and results, for the fingerprint.
    results: Fingerprint,
    /// Items that changed.
    changed: BTreeSet<ItemId>,
    /// The status that items which changed had before the turn; new items have none.
    before: BTreeMap<ItemId, ItemStatus>,
    /// The texts of its answers.
    said: String,
}

impl ControlState {
    /// Nothing is known yet of a run with these settings.
    pub fn new(spec: &ControlSpec) -> Self {
        let threshold = spec.stall.as_ref().map_or(2, |stall| stall.threshold);
        Self {
            evidence: spec.contract.as_ref().map(EvidenceIndex::of).unwrap_or_default(),
            coverage: spec.contract.as_ref().map(Coverage::of),
            progress: ProgressTracker::new(usize::try_from(threshold).unwrap_or(usize::MAX)),
            ..Self::default()
        }
    }

    /// The same with the work items of an earlier run.
    #[must_use]
    pub fn with_ledger(self, ledger: WorkLedger) -> Self {
        Self { ledger, ..self }
    }

    /// The same after so many ends in a row without the signal.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The work items as the results of the work tools told them.
    pub fn ledger(&self) -> &WorkLedger {
        &self.ledger
    }

    /// What of the contract is met; `None` without a contract.
    pub fn coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref()
    }

    /// Lets a requirement of the contract go, for a reason that the report shows. Whether there is one of
    /// that name.
    pub fn waive(&mut self, requirement: &str, reason: impl Into<String>) -> bool {
        self.coverage.as_mut().is_some_and(|coverage| coverage.waive(requirement, reason))
    }

    /// What the messages prove; what the contract does not ask for is not kept.
    pub fn evidence(&self) -> &EvidenceIndex {
        &self.evidence
    }

    /// Ends without the signal in a row.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// How often each tool was called in this run.
    pub fn usage(&self) -> &BTreeMap<ToolName, u64> {
        &self.usage
    }

    /// What the model reported with its signal.
    pub fn completion(&self) -> Option<&CompletionReport> {
        self.completion.as_ref()
    }

    /// The last decision.
    pub fn last_decision(&self) -> Option<&StopDecision> {
        self.last.as_ref()
    }

    /// A message of the transcript, with the number of the event that told it. Which work items it changed.
    pub fn note_message(&mut self, spec: &ControlSpec, event: u64, message: &Message) -> Vec<ItemId> {
        if spec.contract.is_some() {
            self.evidence.note_message(event, message);
        }
        match message {
            Message::Assistant(answer) => {
                self.note_answer(spec, answer);
                Vec::new()
            }
            Message::ToolResult(result) => self.note_result(spec, event, result),
            Message::System(_) | Message::User(_) | Message::Custom(_) | _ => Vec::new(),
        }
    }

    fn note_answer(&mut self, spec: &ControlSpec, answer: &AssistantMessage) {
        let text = answer.joined_text();
        if !text.is_empty() {
            if self.turn.said.len() < SAID {
                self.turn.said.push_str(&text);
            }
            self.response = Some(text);
        }
        self.calls = answer.tool_calls().cloned().collect();
        for call in &self.calls {
            let signal = is_signal(spec, &call.name);
            self.turn.called |= !signal;
            self.turn.worked |= !signal && !LOOKS.contains(&call.name.as_str());
            if let Some(count) = self.usage.get_mut(&call.name) {
                *count += 1;
            } else if self.usage.len() < TOOLS {
                self.usage.insert(call.name.clone(), 1);
            }
        }
    }

    fn note_result(&mut self, spec: &ControlSpec, event: u64, result: &ToolResultMessage) -> Vec<ItemId> {
        let call = self.calls.iter().find(|call| call.id == result.tool_call_id);
        if is_signal(spec, &result.tool_name) {
            if let Some(call) = call.filter(|_| !result.is_error) {
                self.turn.signal = Some(event);
                self.completion = Some(completion_of(call));
            }
            return Vec::new();
        }
        if let Some(call) = call.filter(|call| spec.stall.is_some() && !LOOKS.contains(&call.name.as_str())) {
            let text: String = result.content.iter().filter_map(Block::as_text).collect();
            let results = std::mem::take(&mut self.turn.results);
            self.turn.results = results.call(call.name.as_str(), &call.arguments, &text);
        }
        if spec.work.is_none() {
            return Vec::new();
        }
        let changes = self.ledger.fold(result);
        for change in &changes {
            self.note_change(change);
        }
        changes.into_iter().map(|change| change.id).collect()
    }

    fn note_change(&mut self, change: &ItemChange) {
        let id = &change.id;
        if self.turn.changed.insert(id.clone())
            && let Some(before) = change.before
        {
            self.turn.before.insert(id.clone(), before);
        }
        let Ok(item) = self.ledger.get(id) else { return };
        let is_skipped = item.status == ItemStatus::Skipped && !item.revision_of.is_empty();
        if !is_skipped || change.has_new_notes {
            self.unexplained.remove(id);
        } else if change.before != Some(ItemStatus::Skipped) {
            self.unexplained.insert(id.clone());
        }
    }

    /// A turn with an answer is over: what it came to.
    pub fn turn_over(&mut self, spec: &ControlSpec) -> TurnOutcome {
        if spec.contract.is_some() {
            self.evidence.note_turn_end();
        }
        let Some(signal) = &spec.signal else { return TurnOutcome::Done { signal: false } };
        if self.turn.signal.is_some() {
            TurnOutcome::Done { signal: true }
        } else if self.turn.called {
            TurnOutcome::Working { productive: self.turn.worked }
        } else if self.silent < signal.prompts {
            TurnOutcome::Silent
        } else {
            TurnOutcome::Done { signal: false }
        }
    }

    /// What has to be found out before the contract can be judged.
    pub fn asks(&self, spec: &ControlSpec) -> FactsAsk {
        let contract = spec.contract.as_ref();
        contract.map(|contract| contract.asks(&self.evidence, &self.ledger)).unwrap_or_default()
    }

    /// Whether nothing will have changed for too long when this turn is done with.
    pub(crate) fn is_about_to_stall(&self, spec: &ControlSpec) -> bool {
        spec.stall.is_some() && self.progress.would_stall(&self.fingerprint())
    }

    /// What the turn left behind.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let mut left = self.turn.results.clone().answer(&self.turn.said, self.turn.called);
        for item in self.turn.changed.iter().filter_map(|id| self.ledger.get(id).ok()) {
            left = left.item(item);
            match self.turn.before.get(&item.id) {
                Some(before) if *before != item.status => {
                    left = left.transition(&item.id, *before, item.status);
                }
                Some(_) | None => {}
            }
        }
        match &self.coverage {
            Some(coverage) => left.coverage(coverage),
            None => left,
        }
    }
}

fn is_signal(spec: &ControlSpec, tool: &ToolName) -> bool {
    spec.signal.as_ref().is_some_and(|signal| signal.tool == *tool)
}

/// What the arguments of the signal report; whatever is not as it should be is left out.
fn completion_of(call: &ToolCall) -> CompletionReport {
    fn texts(value: Option<&serde_json::Value>) -> Vec<String> {
        let list = value.and_then(serde_json::Value::as_array).into_iter().flatten();
        list.filter_map(serde_json::Value::as_str).take(LISTED).map(bounded).collect()
    }
    let arguments: serde_json::Value = call.arguments.to().unwrap_or_default();
    CompletionReport {
        summary: arguments
            .get("summary")
            .and_then(serde_json::Value::as_str)
            .map(bounded)
            .unwrap_or_default(),
        deliverables: texts(arguments.get("deliverables")),
        open_questions: texts(arguments.get("open_questions")),
        confidence: arguments.get("confidence").and_then(serde_json::Value::as_f64),
    }
}

/// The first characters of a text.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(TEXT).collect()
}
