//! The stop decision: an ordered list of gates, then stall, then limits; otherwise the run continues.

use harness_core::Time;
use harness_core::outcome::StopMode;

use super::decision::{StopCode, StopDecision, TurnOutcome};
use super::feedback::Feedback;
use super::report::{ControlReport, GateJudgement, GateReport, ItemsSummary, OpenItem, RunStatus};
use super::spec::{ControlSpec, StallReaction};
use super::state::{ControlState, TurnSeen};
use crate::contract::{Facts, FactsAsk, FactsFound, FoundSchemas, GapReport, TaskContract, Verification};
use crate::work::{ItemStatus, WorkItem};

/// Confidence of a report without one.
const CONFIDENCE: f64 = 0.8;

/// Input of a decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionCx<'a> {
    /// Configuration of the run.
    pub spec: &'a ControlSpec,
    /// Stop mode.
    pub mode: StopMode,
    /// Number of the finished turn, starting at 1.
    pub turn: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Requested facts, from [`ControlState::asks`].
    pub asked: &'a FactsAsk,
    /// Findings about them.
    pub found: &'a FactsFound,
    /// Time of the decision.
    pub now: Time,
}

/// Refusal of an end by a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Code of the decision, unless the run stops for a different reason.
    pub code: StopCode,
    /// Feedback to the model.
    pub feedback: Feedback,
    /// Gaps of the contract, if it refused.
    pub gaps: Option<GapReport>,
}

impl Refusal {
    fn new(code: StopCode, feedback: Feedback) -> Self {
        Self { code, feedback, gaps: None }
    }

    /// Refusal by a check of the application.
    pub(crate) fn by_gate(gate: impl Into<String>, reason: impl Into<String>) -> Self {
        let feedback = Feedback::HookBlock { gate: gate.into(), reason: reason.into() };
        Self::new(StopCode::AgentStopHookBlocked, feedback)
    }
}

impl ControlState {
    /// Evaluates the gates of the control, in order: signal, contract, acceptability, control invariant, work
    /// items. The first unmet gate refuses; later gates are not evaluated.
    ///
    /// Without a refusal, the checks of the application follow; record their judgements with
    /// [`ControlState::note_gate`].
    pub fn judge(&mut self, at: &DecisionCx<'_>, outcome: TurnOutcome) -> Option<Refusal> {
        self.gates.clear();
        // The report shows the coverage even if an earlier gate refuses.
        let verification = at.spec.contract.as_ref().and_then(|contract| self.verify(at, contract));
        let mut refusal = self.judge_signal(at, outcome);
        if let (Some(contract), Some(verification)) = (&at.spec.contract, &verification) {
            refusal = self.in_turn(refusal, "contract", |state| state.judge_contract(contract, verification));
            if at.mode == StopMode::StrictAutomation {
                refusal = self.in_turn(refusal, "acceptability", |state| state.judge_report(contract));
            }
        }
        if at.spec.work.is_some() {
            refusal = self.in_turn(refusal, "control_invariant", Self::judge_audits);
            refusal = self.in_turn(refusal, "work_items", |state| state.judge_items(at.mode));
        }
        refusal
    }

    /// Records the judgement of a check of the application.
    pub fn note_gate(&mut self, report: GateReport) {
        self.gates.push(report);
    }

    /// Last judgements of the gates.
    pub(crate) fn gates(&self) -> &[GateReport] {
        &self.gates
    }

    /// Evaluates a gate, unless an earlier one refused, and records its judgement.
    fn in_turn(
        &mut self,
        refused: Option<Refusal>,
        gate: &str,
        judge: impl FnOnce(&Self) -> (Option<Refusal>, Vec<String>),
    ) -> Option<Refusal> {
        if refused.is_some() {
            self.gates.push(GateReport::new(gate, GateJudgement::NotAsked));
            return refused;
        }
        let (refusal, evidence) = judge(self);
        let judgement = if refusal.is_some() { GateJudgement::Refused } else { GateJudgement::Accepted };
        let why = refusal.as_ref().map(|refusal| refusal.feedback.summary());
        self.gates.push(GateReport { why, evidence, ..GateReport::new(gate, judgement) });
        refusal
    }

    fn judge_signal(&mut self, at: &DecisionCx<'_>, outcome: TurnOutcome) -> Option<Refusal> {
        let signal = at.spec.signal.as_ref()?;
        let strict = at.mode == StopMode::StrictAutomation;
        let given = outcome == TurnOutcome::Done { signal: true };
        // Without a contract, strict automation does not accept a signal without a summary.
        let is_blank = || self.completion.as_ref().is_none_or(|report| report.summary.trim().is_empty());
        if given && !(strict && at.spec.contract.is_none() && is_blank()) {
            let evidence = self.turn.signal.iter().map(u64::to_string).collect();
            self.gates.push(GateReport { evidence, ..GateReport::new("signal", GateJudgement::Accepted) });
            return None;
        }
        let claims = matches!(outcome, TurnOutcome::Done { .. });
        let (retry, max_retries) = (self.retries.saturating_add(u32::from(claims)), signal.retries);
        let waives = claims && !strict && retry > max_retries;
        let judgement = if waives { GateJudgement::Waived } else { GateJudgement::Refused };
        let why = Some(format!("`{}` was not called", signal.tool));
        self.gates.push(GateReport { why, ..GateReport::new("signal", judgement) });
        let code = if strict && retry > max_retries {
            StopCode::WorkCompleteRequiredStrict
        } else {
            StopCode::WorkCompleteNotCalled
        };
        (!waives).then(|| Refusal::new(code, Feedback::WorkCompleteMissing { retry, max_retries }))
    }

    fn verify(&mut self, at: &DecisionCx<'_>, contract: &TaskContract) -> Option<Verification> {
        let coverage = self.coverage.as_mut()?;
        if self.patterns.is_empty() {
            self.patterns = contract.patterns();
        }
        let schemas = FoundSchemas { asked: &at.asked.schemas, found: at.found };
        let facts = Facts {
            files: &at.found.files,
            data: &at.found.data,
            work: &self.ledger,
            custom: &at.found.checks,
            schemas: &schemas,
            patterns: Some(&self.patterns),
            now: at.now,
            ..Facts::new(&self.evidence)
        };
        Some(contract.verify(coverage, &facts))
    }

    fn judge_contract(
        &self,
        contract: &TaskContract,
        verification: &Verification,
    ) -> (Option<Refusal>, Vec<String>) {
        let Some(coverage) = &self.coverage else { return (None, Vec::new()) };
        if verification.satisfied {
            let required = contract.required_outputs.iter().filter(|output| !output.optional);
            let proofs = required.filter_map(|output| coverage.coverage.get(&output.id)?.evidence.last());
            return (None, proofs.map(|evidence| evidence.event_ref.clone()).collect());
        }
        let gaps = contract.gaps(coverage);
        let why =
            |id: &str| verification.results.iter().find(|(known, _)| known == id).map(|(_, found)| found);
        let descriptions = gaps.unmet_requirements.iter().map(|unmet| {
            let why = why(&unmet.id).map(|found| found.message.as_str()).unwrap_or_default();
            super::state::bounded(&format!("{}: {} ({why})", unmet.id, unmet.description))
        });
        let feedback = Feedback::ContractGap {
            unmet: verification.unmet.clone(),
            questions: gaps.unanswered_questions.clone(),
            descriptions: descriptions.collect(),
        };
        let refusal = Refusal { gaps: Some(gaps), ..Refusal::new(StopCode::ContractNotSatisfied, feedback) };
        (Some(refusal), Vec::new())
    }

    /// Checks the model's own report against the acceptance limits.
    fn judge_report(&self, contract: &TaskContract) -> (Option<Refusal>, Vec<String>) {
        let Some(report) = &self.completion else { return (None, Vec::new()) };
        let (good, mut faults) = (&contract.acceptability, Vec::new());
        let confidence = report.confidence.unwrap_or(CONFIDENCE);
        if confidence < good.min_confidence {
            faults
                .push(format!("confidence of {confidence} is below the minimum of {}", good.min_confidence));
        }
        let open = report.open_questions.len();
        if open > good.max_known_unknowns as usize {
            let most = good.max_known_unknowns;
            faults.push(format!("{open} question(s) are open; the limit is {most}"));
        }
        let evidence = self.turn.signal.iter().map(u64::to_string).collect();
        if faults.is_empty() {
            return (None, evidence);
        }
        (Some(Refusal::new(StopCode::AcceptabilityNotMet, Feedback::Acceptability { faults })), evidence)
    }

    fn judge_audits(&self) -> (Option<Refusal>, Vec<String>) {
        let failed = self.ledger.failed_audits();
        if failed.is_empty() {
            return (None, Vec::new());
        }
        let item_ids = failed.iter().map(|audit| audit.item_id.to_string()).collect();
        let failed_checks = failed.into_iter().flat_map(|audit| audit.failed_checks).collect();
        let feedback = Feedback::ControlInvariant { failed_checks, item_ids };
        (Some(Refusal::new(StopCode::ControlInvariantViolation, feedback)), Vec::new())
    }

    fn judge_items(&self, mode: StopMode) -> (Option<Refusal>, Vec<String>) {
        let open = self.ledger.incomplete().map(|item| &item.id);
        let unexplained = self.unexplained.iter().filter(|_| mode == StopMode::StrictAutomation);
        let item_ids: Vec<_> = open.chain(unexplained).map(ToString::to_string).collect();
        if item_ids.is_empty() {
            return (None, Vec::new());
        }
        let feedback = Feedback::WorkItemsIncomplete { item_ids };
        (Some(Refusal::new(StopCode::WorkItemsIncomplete, feedback)), Vec::new())
    }

    /// Makes the decision of a turn, once. `refusal` is that of [`ControlState::judge`] or of a check of the
    /// application; `limit` is the limit that prevents another turn.
    pub fn decide(
        &mut self,
        at: &DecisionCx<'_>,
        outcome: TurnOutcome,
        refusal: Option<Refusal>,
        limit: Option<StopCode>,
    ) -> StopDecision {
        let (turn, max_turns) = (at.turn, at.max_turns);
        let first_unmet = refusal.as_ref().map(|refusal| refusal.feedback.kind());
        let mut decision = match (outcome, refusal) {
            (TurnOutcome::Ended(code), _) => StopDecision::new(code, turn, max_turns),
            (TurnOutcome::Done { .. }, None) => StopDecision::new(StopCode::AgentDone, turn, max_turns),
            (outcome, refusal) => self.decide_open(at, outcome, refusal, limit),
        };
        if decision.stops && decision.code != StopCode::AgentDone {
            decision.first_unmet = first_unmet;
        }
        let waived = self.gate("signal") == Some(GateJudgement::Waived);
        decision.waived = decision.code == StopCode::AgentDone && waived;
        decision.contract_verified = self.verified("contract");
        decision.work_items_verified = self.verified("work_items");
        self.count(at, outcome, &mut decision, waived);
        self.turn = TurnSeen::default();
        self.last = Some(decision.clone());
        decision
    }

    /// Decides a turn without an accepted end: stall, limits, otherwise another turn.
    fn decide_open(
        &mut self,
        at: &DecisionCx<'_>,
        outcome: TurnOutcome,
        refusal: Option<Refusal>,
        limit: Option<StopCode>,
    ) -> StopDecision {
        let decision = |code| StopDecision::new(code, at.turn, at.max_turns);
        let stalled = at.spec.stall.as_ref().and_then(|stall| {
            let progress = self.progress.note(&self.fingerprint());
            self.nudged &= progress.same > 1;
            let turns = u32::try_from(progress.same).unwrap_or(u32::MAX);
            progress.stalled.then_some((turns, stall.reaction))
        });
        if let Some((turns, reaction)) = stalled {
            let nudges = reaction == StallReaction::NudgeThenStop && !self.nudged;
            let code = if nudges { limit.unwrap_or(StopCode::StallNudged) } else { StopCode::Stalled };
            self.nudged |= code == StopCode::StallNudged;
            let feedback = (code == StopCode::StallNudged).then_some(Feedback::StallNudge { turns });
            return StopDecision { stall_turns: Some(turns), feedback, ..decision(code) };
        }
        if let Some(limit) = limit {
            return decision(limit);
        }
        match (outcome, refusal) {
            (TurnOutcome::Silent, _) => {
                let max = at.spec.signal.as_ref().map_or(0, |signal| signal.prompts);
                let feedback = Feedback::Continuation { count: self.silent.saturating_add(1), max };
                StopDecision { feedback: Some(feedback), ..decision(StopCode::ContinuationPrompt) }
            }
            (TurnOutcome::Done { .. }, Some(refusal)) => StopDecision {
                feedback: Some(refusal.feedback),
                gaps: refusal.gaps,
                ..decision(refusal.code)
            },
            (TurnOutcome::Done { .. } | TurnOutcome::Working { .. } | TurnOutcome::Ended(_), _) => {
                decision(StopCode::AgentWorking)
            }
        }
    }

    /// Updates the counters of consecutive turns, unless the run stops without being done.
    fn count(
        &mut self,
        at: &DecisionCx<'_>,
        outcome: TurnOutcome,
        decision: &mut StopDecision,
        waived: bool,
    ) {
        if decision.stops && decision.code != StopCode::AgentDone {
            return;
        }
        match outcome {
            TurnOutcome::Done { signal: true } => (self.silent, self.retries) = (0, 0),
            TurnOutcome::Done { signal: false } if at.spec.signal.is_some() => {
                self.retries = self.retries.saturating_add(1);
                let missing = matches!(decision.feedback, Some(Feedback::WorkCompleteMissing { .. }));
                if missing || waived {
                    decision.retries = Some(self.retries);
                    decision.max_retries = at.spec.signal.as_ref().map(|signal| signal.retries);
                }
            }
            TurnOutcome::Working { productive } => {
                self.silent = 0;
                if productive {
                    self.retries = 0;
                }
            }
            TurnOutcome::Silent => self.silent = self.silent.saturating_add(1),
            TurnOutcome::Done { signal: false } | TurnOutcome::Ended(_) => {}
        }
    }

    fn gate(&self, name: &str) -> Option<GateJudgement> {
        self.gates.iter().find(|report| report.gate == name).map(|report| report.judgement)
    }

    fn verified(&self, gate: &str) -> Option<bool> {
        match self.gate(gate)? {
            GateJudgement::Accepted => Some(true),
            GateJudgement::Refused => Some(false),
            GateJudgement::Waived | GateJudgement::NotAsked => None,
        }
    }

    /// Builds the report of a run that stops.
    pub(crate) fn report(&self, spec: &ControlSpec, decision: StopDecision) -> ControlReport {
        let gaps = spec.contract.as_ref().zip(self.coverage.as_ref());
        let gaps = gaps.map(|(contract, coverage)| contract.gaps(coverage));
        let items = (!self.ledger.is_empty()).then(|| self.items());
        ControlReport {
            status: RunStatus::of(decision.code),
            gates: self.gates.clone(),
            coverage: self.coverage.clone(),
            unmet: gaps.filter(|gaps| !gaps.unmet_requirements.is_empty()),
            items,
            deliverables: self.ledger.deliverables(),
            completion: self.completion.clone(),
            same_turns: u32::try_from(self.progress.progress().same).unwrap_or(u32::MAX),
            response: self.response.clone(),
            decision,
        }
    }

    fn items(&self) -> ItemsSummary {
        let count = |status| self.ledger.items().iter().filter(|item| item.status == status).count();
        let open = |item: &WorkItem| OpenItem {
            id: item.id.clone(),
            title: item.title.clone(),
            status: item.status,
            to_revise: item.status.is_closed(),
        };
        ItemsSummary {
            total: self.ledger.items().len(),
            done: count(ItemStatus::Done),
            skipped: count(ItemStatus::Skipped),
            open: self.ledger.incomplete().map(open).collect(),
        }
    }
}
