//! State of a run's control: plain data, part of the run's state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use harness_core::ToolName;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use serde::{Deserialize, Serialize};

use super::decision::{StopDecision, TurnOutcome};
use super::progress::{Fingerprint, ProgressTracker};
use super::report::{CompletionReport, GateReport};
use super::spec::ControlSpec;
use crate::contract::{Coverage, EvidenceIndex, FactsAsk, Patterns};
use crate::work::{ItemChange, ItemId, ItemStatus, WorkLedger};

/// Maximum number of tools whose calls are counted.
const TOOLS: usize = 512;
/// Maximum entries of each list in a completion report, and characters of each.
const LISTED: usize = 50;
const TEXT: usize = 2_000;
/// Approximate maximum of bytes of a turn's texts that count for progress.
const SAID: usize = 64 << 10;

/// Tools that only read work items.
const READS: [&str; 2] = ["work_item_list", "work_item_get"];

/// State of a run's control: evidence, coverage of the contract, work items, sent instructions and progress. A
/// bounded fold over the messages of the run.
///
/// [`UntilDone`](super::UntilDone) keeps it. A different loop records messages with
/// [`note_message`](ControlState::note_message), then calls [`judge`](ControlState::judge) and
/// [`decide`](ControlState::decide) after each turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlState {
    pub(super) evidence: EvidenceIndex,
    pub(super) coverage: Option<Coverage>,
    pub(super) ledger: WorkLedger,
    /// Number of calls by tool.
    pub(super) usage: BTreeMap<ToolName, u64>,
    /// Consecutive turns that were answered by a continuation prompt.
    pub(super) silent: u32,
    /// Consecutive ends without the signal.
    pub(super) retries: u32,
    pub(super) progress: ProgressTracker,
    /// Whether the model was warned of a stall.
    pub(super) nudged: bool,
    /// Instructions that were sent and are sent only once.
    #[serde(rename = "told")]
    pub(super) sent: BTreeSet<String>,
    pub(super) completion: Option<CompletionReport>,
    /// Revisions that were skipped without a note. Strict automation does not accept them.
    pub(super) unexplained: BTreeSet<ItemId>,
    pub(super) turn: TurnSeen,
    /// Calls of the latest assistant message.
    calls: Vec<Arc<ToolCall>>,
    /// Text of the last answer with text.
    pub(super) response: Option<String>,
    /// Last judgements of the gates.
    pub(super) gates: Vec<GateReport>,
    pub(super) last: Option<StopDecision>,
    /// Compiled patterns of the contract.
    #[serde(skip)]
    pub(super) patterns: Patterns,
}

/// Observations of the current turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TurnSeen {
    /// A tool other than the signal was called.
    pub(super) called: bool,
    /// One of them did more than read work items.
    pub(super) worked: bool,
    /// Event of the signal's result.
    pub(super) signal: Option<u64>,
    /// Calls with digests of arguments and results, for the fingerprint.
    results: Fingerprint,
    /// Changed items.
    changed: BTreeSet<ItemId>,
    /// Status of changed items before the turn; new items have none.
    before: BTreeMap<ItemId, ItemStatus>,
    /// Texts of its answers.
    said: String,
}

impl ControlState {
    /// Creates the state of a new run.
    pub fn new(spec: &ControlSpec) -> Self {
        let threshold = spec.stall.as_ref().map_or(2, |stall| stall.threshold);
        Self {
            evidence: spec.contract.as_ref().map(EvidenceIndex::of).unwrap_or_default(),
            coverage: spec.contract.as_ref().map(Coverage::of),
            progress: ProgressTracker::new(usize::try_from(threshold).unwrap_or(usize::MAX)),
            ..Self::default()
        }
    }

    /// Starts with the work items of an earlier run.
    #[must_use]
    pub fn with_ledger(self, ledger: WorkLedger) -> Self {
        Self { ledger, ..self }
    }

    /// Starts after a number of consecutive ends without the signal.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Work items, from the results of the work tools.
    pub fn ledger(&self) -> &WorkLedger {
        &self.ledger
    }

    /// Coverage of the contract; `None` without a contract.
    pub fn coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref()
    }

    /// Waives a requirement of the contract, for a reason that the report shows. Returns whether it exists.
    pub fn waive(&mut self, requirement: &str, reason: impl Into<String>) -> bool {
        self.coverage.as_mut().is_some_and(|coverage| coverage.waive(requirement, reason))
    }

    /// Evidence for the contract.
    pub fn evidence(&self) -> &EvidenceIndex {
        &self.evidence
    }

    /// Consecutive ends without the signal.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Last decision.
    pub fn last_decision(&self) -> Option<&StopDecision> {
        self.last.as_ref()
    }

    /// Records a message with the number of its event. Returns the work items that it changed.
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
            self.turn.worked |= !signal && !READS.contains(&call.name.as_str());
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
        if let Some(call) = call.filter(|call| spec.stall.is_some() && !READS.contains(&call.name.as_str())) {
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

    /// Ends a turn with an answer and returns its outcome.
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

    /// Facts that the contract needs.
    pub fn asks(&self, spec: &ControlSpec) -> FactsAsk {
        let contract = spec.contract.as_ref();
        contract.map(|contract| contract.asks(&self.evidence, &self.ledger)).unwrap_or_default()
    }

    /// Whether the run stalls with the current turn.
    pub(crate) fn is_about_to_stall(&self, spec: &ControlSpec) -> bool {
        spec.stall.is_some() && self.progress.would_stall(&self.fingerprint())
    }

    /// Fingerprint of the current turn.
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

/// Reads the arguments of the signal; invalid fields are omitted.
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

/// Cuts a text to its bound.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(TEXT).collect()
}
