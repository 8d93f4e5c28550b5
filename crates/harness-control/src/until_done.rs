//! The control of a run that continues until its work is done.

use std::collections::BTreeSet;
use std::sync::Arc;

use harness_core::limits::{Limit, Reached};
use harness_core::message::Message;
use harness_core::outcome::Waiver;
use harness_core::port::{Checked, CheckedAs, Control, Review, RunNext, RunProgress, RunStop, TurnEnd};
use harness_core::run::Run;
use harness_core::{End, Json, Outcome, StopReason};
use serde::{Deserialize, Serialize};

use super::decide::{DecisionCx, Refusal};
use super::decision::{StopCode, StopDecision, TurnOutcome};
use super::event::ControlEvent;
use super::report::{GateJudgement, GateReport};
use super::spec::ControlSpec;
use super::state::ControlState;
use crate::contract::{FactsAsk, FactsFound};
use crate::work::{ItemId, WorkLedger};

/// Control of a run that continues until its work is done, with evidence.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_control::{ControlSpec, SignalSpec, UntilDone};
/// use harness_core::Origin;
/// use harness_core::run::{Run, RunSpec};
/// use harness_core::transcript::Transcript;
///
/// let spec = ControlSpec::default().with_signal(SignalSpec::default());
/// let run = Run::new(Arc::new(RunSpec::default()), Origin::default(), Transcript::default())
///     .with_control(Box::new(UntilDone::new(spec)));
/// ```
#[derive(Debug)]
pub struct UntilDone {
    spec: Arc<ControlSpec>,
    state: ControlState,
    /// Review of the current turn.
    review: TurnReview,
    /// Work items that changed since the last event.
    changed: BTreeSet<ItemId>,
    /// Deliverables of the last event.
    delivered: Vec<(ItemId, u32)>,
    events: Vec<ControlEvent>,
}

/// Review of a turn.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TurnReview {
    outcome: Option<TurnOutcome>,
    asked: FactsAsk,
    /// Refusal of the end. Snapshots are never taken between review and decision.
    #[serde(skip)]
    refusal: Option<Refusal>,
}

#[derive(Serialize)]
struct SavedRef<'a> {
    state: &'a ControlState,
    #[serde(rename = "judged")]
    review: &'a TurnReview,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    state: ControlState,
    #[serde(rename = "judged")]
    review: TurnReview,
}

impl UntilDone {
    /// Creates the control of one run.
    pub fn new(spec: impl Into<Arc<ControlSpec>>) -> Self {
        let spec = spec.into();
        let state = ControlState::new(&spec);
        let (review, changed, events) = (TurnReview::default(), BTreeSet::new(), Vec::new());
        Self { spec, state, review, changed, delivered: Vec::new(), events }
    }

    /// Starts with an existing state.
    #[must_use]
    pub fn with_state(self, state: ControlState) -> Self {
        Self { delivered: state.ledger().delivered(), state, ..self }
    }

    /// State of the control.
    pub fn state(&self) -> &ControlState {
        &self.state
    }
}

impl ControlState {
    /// State of a run's control; `None` unless it is [`UntilDone`].
    pub fn of(run: &Run) -> Option<Self> {
        run.control().save().to::<Saved>().ok().map(|saved| saved.state)
    }
}

impl WorkLedger {
    /// Work items of a run, for the work tools of a resumed run, including changes since its state was saved; `None`
    /// unless its control is [`UntilDone`].
    pub fn of(run: &Run) -> Option<Self> {
        let mut items = ControlState::of(run)?.ledger().clone();
        run.since_saved().filter_map(|message| message.as_tool_result()).for_each(|result| {
            items.fold(result);
        });
        Some(items)
    }
}

impl Control for UntilDone {
    fn observe(&mut self, event: u64, message: &Message) {
        self.changed.extend(self.state.note_message(&self.spec, event, message));
    }

    fn guide(&mut self, at: &RunProgress) -> Option<Arc<Message>> {
        let guidance = self.state.guidance(&self.spec, at)?;
        let (sections, tokens) = (guidance.sections, guidance.tokens);
        let text = guidance.message.joined_text();
        self.events.push(ControlEvent::GuidanceInjected { sections, tokens, text });
        Some(guidance.message)
    }

    fn review(&mut self, turn: &TurnEnd<'_>, facts: Option<&Json>) -> Review {
        if facts.is_none() {
            let outcome = self.outcome_of(turn);
            let asked =
                if self.verifies(turn, outcome) { self.state.asks(&self.spec) } else { FactsAsk::default() };
            self.review = TurnReview { outcome: Some(outcome), asked, refusal: None };
            if !self.review.asked.is_empty() {
                return Review::NeedsFacts(Json::of(&self.review.asked).unwrap_or_default());
            }
        }
        self.judge(turn, facts.and_then(|facts| facts.to().ok()))
    }

    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext {
        let review = std::mem::take(&mut self.review);
        let outcome = match review.outcome {
            _ if turn.end.reason() == StopReason::Cancelled => TurnOutcome::Ended(StopCode::Cancelled),
            _ if turn.end.reason() == StopReason::ClarificationRequired => {
                TurnOutcome::Ended(StopCode::AwaitingInput)
            }
            Some(outcome) => outcome,
            None => self.outcome_of(turn),
        };
        let refused = checks.last().filter(|check| check.verdict == CheckedAs::Refused);
        let refusal = refused
            .map(|check| Refusal::by_gate(check.check.as_str(), check.why.clone().unwrap_or_default()));
        for check in checks {
            self.state.note_gate(report_of(check));
        }
        let limit = limit_of(turn, outcome);
        let nothing = FactsFound::default();
        let at = decision_cx(&self.spec, turn, &review.asked, &nothing);
        let refusal = review.refusal.or(refusal);
        let decision = self.state.decide(&at, outcome, refusal, limit.map(|reached| code_of(reached.limit)));
        self.events.push(ControlEvent::StopDecided { decision: Box::new(decision.clone()) });
        if decision.stops {
            return RunNext::Stop(self.stop(decision, limit, checks));
        }
        let feedback = decision.feedback.as_ref();
        RunNext::Continue(feedback.map(|feedback| feedback.message(&self.spec, self.state.ledger())))
    }

    fn take_events(&mut self) -> Vec<Json> {
        let changed = std::mem::take(&mut self.changed);
        let items = self.items_changed(&changed);
        let events = std::mem::take(&mut self.events);
        items.into_iter().chain(events).map(|event| event.to_json()).collect()
    }

    fn save(&self) -> Json {
        Json::of(&SavedRef { state: &self.state, review: &self.review }).unwrap_or_default()
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        let Saved { state, review } = saved.to()?;
        (self.delivered, self.state, self.review) = (state.ledger().delivered(), state, review);
        Ok(())
    }
}

impl UntilDone {
    /// Outcome of a turn. After a limit of the turn, the run continues unless a limit of the run is reached.
    fn outcome_of(&mut self, turn: &TurnEnd<'_>) -> TurnOutcome {
        let (over, end): (_, &End) = (self.state.turn_over(&self.spec), turn.end);
        match (end.outcome(), end.reason()) {
            (Outcome::Completed, _) => over,
            (Outcome::NeedsClarification | Outcome::AwaitingApproval, _) => {
                TurnOutcome::Ended(StopCode::AwaitingInput)
            }
            (Outcome::Failed, StopReason::Cancelled) => TurnOutcome::Ended(StopCode::Cancelled),
            (Outcome::Failed, _) => TurnOutcome::Ended(StopCode::Failed),
            (Outcome::Deferred, StopReason::ContextOverflow) => TurnOutcome::Ended(StopCode::ContextOverflow),
            (Outcome::Deferred, StopReason::BackendDeferred) => TurnOutcome::Ended(StopCode::BackendDeferred),
            (Outcome::Deferred, _) if turn.is_spent || end.stop.is_over_shared_budget() => {
                TurnOutcome::Ended(StopCode::Budget)
            }
            (Outcome::Deferred, _) if over == (TurnOutcome::Done { signal: true }) => over,
            (Outcome::Deferred, _) => TurnOutcome::Working { productive: true },
        }
    }

    /// Whether the contract is verified: the turn claims the end, or may be the last one.
    fn verifies(&self, turn: &TurnEnd<'_>, outcome: TurnOutcome) -> bool {
        match outcome {
            TurnOutcome::Done { .. } => true,
            TurnOutcome::Working { .. } | TurnOutcome::Silent => {
                turn.limit.is_some() || self.state.is_about_to_stall(&self.spec)
            }
            TurnOutcome::Ended(code) => code == StopCode::Budget,
        }
    }

    /// Evaluates the gates of the control.
    fn judge(&mut self, turn: &TurnEnd<'_>, found: Option<FactsFound>) -> Review {
        let Some(outcome) = self.review.outcome else { return Review::NotDone };
        let claims = matches!(outcome, TurnOutcome::Done { .. });
        // Without a claim, missing facts must not change the coverage.
        let is_known = claims || self.review.asked.is_empty() || found.is_some();
        if !(is_known && self.verifies(turn, outcome)) {
            return Review::NotDone;
        }
        let found = found.unwrap_or_default();
        let at = decision_cx(&self.spec, turn, &self.review.asked, &found);
        self.review.refusal = self.state.judge(&at, outcome);
        if !claims {
            return Review::NotDone;
        }
        let own = self.state.gates().iter().filter_map(check_of).collect();
        if self.review.refusal.is_some() {
            return Review::Refused(own);
        }
        Review::Done { signalled: outcome == TurnOutcome::Done { signal: true }, waives: false, own }
    }

    fn stop(&self, decision: StopDecision, limit: Option<Reached>, checks: &[Checked]) -> RunStop {
        let mut stop = RunStop::default();
        if decision.waived {
            stop.waived
                .push(Waiver { gate: "signal".into(), why: "the completion signal was not given".into() });
        }
        stop.waived.extend(checks.iter().filter_map(Checked::waiver));
        stop.stop = match (decision.code, limit) {
            (StopCode::AgentDone, _) if stop.waived.is_empty() => Some(StopReason::AnswerFinalized.into()),
            (StopCode::AgentDone, _) => Some(StopReason::CompletionWaived.into()),
            (StopCode::Stalled, _) => Some(StopReason::Stalled.into()),
            (StopCode::MaxTurns | StopCode::Budget, Some(reached)) => Some(reached.into()),
            _ => None,
        };
        let is_done = decision.code == StopCode::AgentDone;
        let report = self.state.report(&self.spec, decision);
        if is_done {
            // The answer after the signal is not addressed to the user.
            let summary = report.completion.as_ref().map(|completion| completion.summary.clone());
            stop.answer = report.response.clone().or(summary);
        }
        stop.report = Json::of(&report).ok();
        stop
    }

    /// Events of changed work items.
    fn items_changed(&mut self, changed: &BTreeSet<ItemId>) -> Vec<ControlEvent> {
        if changed.is_empty() {
            return Vec::new();
        }
        let ledger = self.state.ledger();
        let closed = ledger.items().iter().filter(|item| item.status.is_closed()).count() as u64;
        let total = ledger.items().len() as u64;
        let changed = changed.iter().map(ToString::to_string).collect();
        let mut events = vec![ControlEvent::WorkItemsChanged { changed, closed, total }];
        let delivered = ledger.delivered();
        if self.delivered != delivered {
            self.delivered = delivered;
            let deliverables = ledger.deliverables().into_iter().map(Into::into).collect();
            events.push(ControlEvent::DeliverablesUpdated { deliverables });
        }
        events
    }
}

fn decision_cx<'a>(
    spec: &'a ControlSpec,
    turn: &TurnEnd<'_>,
    asked: &'a FactsAsk,
    found: &'a FactsFound,
) -> DecisionCx<'a> {
    let (mode, max_turns, now) = (turn.mode, turn.max_turns, turn.now);
    DecisionCx { spec, mode, turn: turn.turn, max_turns, asked, found, now }
}

/// The limit that prevents another turn, unless the turn ended the run.
fn limit_of(turn: &TurnEnd<'_>, outcome: TurnOutcome) -> Option<Reached> {
    match outcome {
        TurnOutcome::Ended(_) => None,
        TurnOutcome::Done { .. } | TurnOutcome::Working { .. } | TurnOutcome::Silent => turn.limit,
    }
}

fn code_of(limit: Limit) -> StopCode {
    match limit {
        Limit::Turns => StopCode::MaxTurns,
        Limit::Context => StopCode::ContextOverflow,
        Limit::Iterations | Limit::ToolCalls | Limit::Elapsed | Limit::Tokens | Limit::Cost | _ => {
            StopCode::Budget
        }
    }
}

/// Converts the judgement of a gate for the run.
fn check_of(report: &GateReport) -> Option<Checked> {
    let verdict = match report.judgement {
        GateJudgement::Accepted => CheckedAs::Accepted,
        GateJudgement::Waived => CheckedAs::Waived,
        GateJudgement::Refused => CheckedAs::Refused,
        GateJudgement::NotAsked => return None,
    };
    Some(Checked { check: report.gate.clone(), verdict, why: report.why.clone() })
}

/// Converts the judgement of a check for the report.
fn report_of(check: &Checked) -> GateReport {
    let judgement = match check.verdict {
        CheckedAs::Accepted => GateJudgement::Accepted,
        CheckedAs::Waived => GateJudgement::Waived,
        CheckedAs::Refused => GateJudgement::Refused,
    };
    GateReport { why: check.why.clone(), ..GateReport::new(check.check.clone(), judgement) }
}
