//! The control of a run, fed by its turns.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RunPhase, RunSpec, RunState};
use crate::control::{
    ControlSpec, ControlState, Deciding, Feedback, GateJudgement, GateReport, Moment, Refusal, StopCode,
    StopDecision, TurnOutcome, Used,
};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::limits::{Amount, Limit, Reached};
use crate::machine::{Boundary, Cx, Effect, Op, Pending, Reply, Shared, Start};
use crate::message::Message;
use crate::outcome::{End, Evidence, Outcome, Stop, StopReason, Waiver};
use crate::port::{FactsAsk, FactsFound, Judgement};
use crate::time::Time;
use crate::transcript::{Plan, Span};
use crate::turn::{TurnState, guidance_message, reason_of};

/// What of the control belongs to one run.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Control {
    state: ControlState,
    /// What the turn that is judged came to, and what was found out about it.
    judged: Option<Box<Judged>>,
    /// The guidance of the latest request, and whose request that was.
    tail: Option<Tail>,
}

/// A turn that is judged.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Judged {
    outcome: TurnOutcome,
    asked: Arc<FactsAsk>,
    found: Box<FactsFound>,
    /// Whether the source of facts answered.
    is_found: bool,
    /// The limit that lets no further turn begin.
    limit: Option<Reached>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tail {
    turn: u32,
    iteration: u32,
    message: Option<Arc<Message>>,
}

impl Control {
    pub(super) fn new(spec: &ControlSpec, ledger: Option<crate::work::WorkLedger>) -> Self {
        let state = ControlState::new(spec).with_ledger(ledger.unwrap_or_default());
        Self { state, ..Self::default() }
    }

    pub(super) fn state(&self) -> &ControlState {
        &self.state
    }

    /// Takes note of the messages that were appended since the last time.
    fn fold(&mut self, spec: &ControlSpec, cx: &mut Cx<'_>) {
        let Some(appended) = cx.sh.appended.as_mut().map(std::mem::take) else { return };
        let (mut changed, before) = (Vec::new(), self.state.ledger().delivered());
        for (at, piece) in appended.iter().enumerate() {
            let to = appended.get(at + 1).map_or(cx.log.len(), |next| next.from);
            for (message, event) in cx.log.range(piece.from..to).zip(piece.event..) {
                changed.extend(self.state.note_message(spec, event, message));
            }
        }
        if changed.is_empty() {
            return;
        }
        let items = self.state.ledger().items();
        let closed = items.iter().filter(|item| item.status.is_closed()).count() as u64;
        let total = items.len() as u64;
        let mut changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
        changed.sort_unstable();
        changed.dedup();
        cx.event(|| EventKind::WorkItemsChanged { changed, closed, total });
        let ledger = self.state.ledger();
        if ledger.delivered() != before {
            let deliverables = || ledger.deliverables().into_iter().map(Into::into).collect();
            cx.event(|| EventKind::DeliverablesUpdated { deliverables: deliverables() });
        }
    }

    /// Puts the guidance behind a request of `messages` of the transcript.
    fn under_guidance(&self, shared: &Shared, messages: usize, plan: &mut Option<Plan>) {
        let current = |tail: &&Tail| (tail.turn, tail.iteration) == (shared.turn, shared.iteration);
        let Some(message) = self.tail.as_ref().filter(current).and_then(|tail| tail.message.as_ref()) else {
            return;
        };
        let made = Span::Made([Arc::clone(message)].into());
        let spans: Arc<[Span]> = match plan {
            Some(plan) => plan.spans.iter().cloned().chain([made]).collect(),
            None => [Span::Kept(0..messages), made].into(),
        };
        *plan = Some(Plan { spans });
    }
}

impl RunState {
    /// Lets the turn take a step. A request that it makes gets the guidance of the moment.
    pub(super) fn in_turn(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        step: impl FnOnce(&mut TurnState, &mut Cx<'_>) -> Option<End>,
    ) -> Option<End> {
        let before = cx.fx.as_slice().len();
        let end = step(&mut self.turn, cx);
        if let (Some(settings), Some(control)) = (&spec.control, &mut self.control) {
            control.guide(settings, spec, cx, (before, self.started_at));
        }
        end
    }

    /// The request that `pending` stands for, as it was made.
    pub(super) fn guided(&self, cx: &Cx<'_>, mut op: Op) -> Op {
        if let (Some(control), Op::Model { plan, .. }) = (&self.control, &mut op) {
            control.under_guidance(cx.sh, cx.log.len(), plan);
        }
        op
    }

    /// A controlled turn is over.
    pub(super) fn decide_controlled(
        &mut self,
        settings: &ControlSpec,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        end: End,
    ) -> Option<End> {
        self.phase = RunPhase::Decide;
        self.count_calls(spec, cx);
        let control = self.control.get_or_insert_default();
        control.fold(settings, cx);
        let outcome =
            outcome_of(settings, &mut control.state, &end, || run_limit(spec, cx, self.started_at).is_some());
        let limit = match outcome {
            TurnOutcome::Ended(_) => None,
            TurnOutcome::Done { .. } | TurnOutcome::Working { .. } | TurnOutcome::Silent => {
                limit_of(spec, cx, self.started_at)
            }
        };
        self.judging = Some(Arc::new(end));
        let asked = Arc::new(match outcome {
            TurnOutcome::Done { .. } | TurnOutcome::Ended(StopCode::Budget) => control.state.asks(settings),
            TurnOutcome::Working { .. } | TurnOutcome::Silent => {
                if limit.is_some() || control.state.is_about_to_stall(settings) {
                    control.state.asks(settings)
                } else {
                    FactsAsk::default()
                }
            }
            TurnOutcome::Ended(_) => FactsAsk::default(),
        });
        let asks = !asked.is_empty();
        control.judged =
            Some(Box::new(Judged { outcome, asked, found: Box::default(), is_found: false, limit }));
        if asks {
            self.ask_facts(cx);
            return None;
        }
        self.judge(settings, spec, cx)
    }

    fn ask_facts(&mut self, cx: &mut Cx<'_>) {
        if let Some(op) = self.facts_op() {
            cx.perform(Pending::Facts, op);
        }
        self.judge_within(cx);
    }

    /// The question for facts.
    pub(super) fn facts_op(&self) -> Option<Op> {
        let judged = self.control.as_ref()?.judged.as_ref()?;
        Some(Op::Facts { ask: Arc::clone(&judged.asked) })
    }

    pub(super) fn on_facts(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, reply: Reply) -> Option<End> {
        let settings = Arc::clone(spec.control.as_ref()?);
        // A source that gives no answer knows nothing.
        let found = if let Reply::Facts(found) = reply { cx.tolerate(found) } else { None };
        let control = self.control.as_mut()?;
        let judged = control.judged.as_mut()?;
        judged.is_found = found.is_some();
        judged.found = found.unwrap_or_default();
        self.judge(&settings, spec, cx)
    }

    /// Asks the control's own gates, then those of the application.
    fn judge(&mut self, settings: &ControlSpec, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let Control { state, judged, .. } = &mut **self.control.as_mut()?;
        let judged = judged.as_ref()?;
        let outcome = judged.outcome;
        let at = deciding(settings, spec, cx, judged);
        let is_last = judged.limit.is_some() || state.is_about_to_stall(settings);
        let (claims, looks) = match outcome {
            TurnOutcome::Done { .. } => (true, true),
            TurnOutcome::Working { .. } | TurnOutcome::Silent => (false, is_last),
            TurnOutcome::Ended(code) => (false, code == StopCode::Budget),
        };
        // What could not be found out says nothing about a contract that nobody claims to be met.
        let looks = looks && (claims || judged.asked.is_empty() || judged.is_found);
        let refusal = if looks { state.judge(&at, outcome) } else { None };
        if claims {
            for report in state.gates().to_vec() {
                tell_gate(cx, &report);
            }
            if refusal.is_none() && !cx.ports.stop_gates.is_empty() {
                return self.ask_gate(spec, cx, 0);
            }
        }
        self.conclude(settings, spec, cx, refusal)
    }

    /// A stop gate of the application judged the end of a controlled turn.
    pub(super) fn on_controlled_judgement(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        gate: (u32, GateName),
        judgement: Judgement,
    ) -> Option<End> {
        let settings = Arc::clone(spec.control.as_ref()?);
        let (gate, name) = gate;
        let said = match &judgement {
            Judgement::Accept => GateJudgement::Accepted,
            Judgement::Waive { .. } if spec.mode == super::StopMode::Interactive => GateJudgement::Waived,
            Judgement::Waive { .. } | Judgement::Continue { .. } => GateJudgement::Refused,
        };
        let why = match judgement {
            Judgement::Accept => None,
            Judgement::Waive { why: text } | Judgement::Continue { guidance: text } => Some(text),
        };
        let control = self.control.as_mut()?;
        control.state.note_gate(GateReport { why: why.clone(), ..GateReport::new(name.clone(), said) });
        if said == GateJudgement::Refused {
            let refusal = Refusal::by_gate(name.as_str(), why.unwrap_or_default());
            return self.conclude(&settings, spec, cx, Some(refusal));
        }
        if said == GateJudgement::Waived {
            self.waived.push(Waiver::new(name, why.unwrap_or_default()));
        }
        if (gate as usize) + 1 < cx.ports.stop_gates.len() {
            return self.ask_gate(spec, cx, gate + 1);
        }
        self.conclude(&settings, spec, cx, None)
    }

    /// Decides, tells the decision, and acts on it.
    fn conclude(
        &mut self,
        settings: &ControlSpec,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        refusal: Option<Refusal>,
    ) -> Option<End> {
        let control = self.control.as_mut()?;
        let judged = control.judged.take()?;
        let at = deciding(settings, spec, cx, &judged);
        let limit = judged.limit.map(|reached| code_of(reached.limit));
        let decision = control.state.decide(&at, judged.outcome, refusal, limit);
        if let Some(turns) = decision.stall_turns {
            cx.event(|| EventKind::StallDetected { turns });
        }
        let told = Box::new(decision.clone());
        cx.event(|| EventKind::StopDecided { decision: told });
        if decision.stops {
            return self.stop_controlled(settings, cx, decision, judged.limit);
        }
        let text = decision.feedback.as_ref().map(|told| told.message(settings, control.state.ledger()));
        self.go_on_controlled(spec, cx, decision.feedback.zip(text))
    }

    fn go_on_controlled(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        feedback: Option<(Feedback, String)>,
    ) -> Option<End> {
        let judged = self.judging.take()?;
        self.waived.clear();
        self.usage.merge(&judged.usage);
        self.iterations = self.iterations.saturating_add(judged.iterations);
        self.boundary(cx, RunPhase::Decide, Boundary::Decide);
        cx.sh.turn += 1;
        cx.sh.iteration = 0;
        let mut start = Start { agent: judged.agent.clone(), ..Start::default() };
        if let Some((feedback, text)) = feedback {
            let feedback = Box::new(feedback);
            cx.event(|| EventKind::FeedbackGiven { feedback });
            start.prompt.push(guidance_message(text));
        }
        self.begin_turn(spec, cx, start)
    }

    fn stop_controlled(
        &mut self,
        settings: &ControlSpec,
        cx: &mut Cx<'_>,
        decision: StopDecision,
        limit: Option<Reached>,
    ) -> Option<End> {
        let control = self.control.as_ref()?;
        let report = Box::new(control.state.report(settings, decision));
        let waived_signal = report.decision.waived;
        let judged = Arc::make_mut(self.judging.as_mut()?);
        if report.decision.code == StopCode::AgentDone {
            // What the signal answers is no answer to the user.
            let summary = report.completion.as_ref().map(|completion| completion.summary.clone());
            judged.answer = report.response.clone().or(summary);
        }
        let code = report.decision.code;
        judged.control = Some(report);
        if waived_signal {
            self.waived.insert(0, Waiver::new("signal".into(), "the completion signal was not given"));
        }
        let stop = match (code, limit) {
            (StopCode::AgentDone, _) if self.waived.is_empty() => Some(StopReason::AnswerFinalized.into()),
            (StopCode::AgentDone, _) => Some(StopReason::CompletionWaived.into()),
            (StopCode::Stalled, _) => Some(StopReason::Stalled.into()),
            (StopCode::MaxTurns | StopCode::Budget, Some(reached)) => {
                let reason = reason_of(reached.limit);
                cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
                Some(Stop::new(reason, Evidence::Limit(reached)))
            }
            _ => None,
        };
        self.stop(cx, stop)
    }

    /// The run is cancelled while a controlled turn is judged.
    pub(super) fn cancel_controlled(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        let settings = Arc::clone(spec.control.as_ref()?);
        cx.sh.pending.clear();
        cx.fx.push(Effect::AbortAll);
        let judged = self.control.as_mut()?.judged.as_mut()?;
        judged.outcome = TurnOutcome::Ended(StopCode::Cancelled);
        Arc::make_mut(self.judging.as_mut()?).stop = stop;
        self.conclude(&settings, spec, cx, None)
    }
}

impl Control {
    /// Puts the guidance of the moment behind the request among the effects from `before` on, if there is one.
    fn guide(
        &mut self,
        settings: &ControlSpec,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        (before, began): (usize, Time),
    ) {
        let is_request = |effect: &Effect| matches!(effect, Effect::Perform(_, Op::Model { .. }));
        let Some(at) = cx.fx.as_slice().iter().skip(before).position(is_request) else { return };
        self.fold(settings, cx);
        let (turn, iteration) = (cx.sh.turn, cx.sh.iteration);
        let is_new = self.tail.as_ref().is_none_or(|tail| (tail.turn, tail.iteration) != (turn, iteration));
        if is_new {
            let mut moment = Moment::of_turn(turn, spec.limits.turns);
            moment.compactions = cx.sh.compactions;
            moment.used = used(spec, cx, began);
            let offer = match cx.fx.as_slice().get(before + at) {
                Some(Effect::Perform(_, Op::Model { offer, .. })) => Some(Arc::clone(offer)),
                Some(_) | None => None,
            };
            moment.offered =
                offer.iter().flat_map(|offer| offer.tools.iter().map(|tool| &tool.name)).collect();
            let guidance = self.state.guidance(settings, &moment);
            let message = guidance.as_ref().map(|guidance| Arc::clone(&guidance.message));
            self.tail = Some(Tail { turn, iteration, message });
            if let Some(guidance) = guidance {
                let (sections, tokens) = (guidance.sections, guidance.tokens);
                cx.event(|| EventKind::GuidanceInjected { sections, tokens });
            }
        }
        if let Some(Effect::Perform(_, Op::Model { plan, .. })) = cx.fx.as_mut_slice().get_mut(before + at) {
            self.under_guidance(cx.sh, cx.log.len(), plan);
        }
    }
}

fn deciding<'a>(settings: &'a ControlSpec, spec: &RunSpec, cx: &Cx<'_>, judged: &'a Judged) -> Deciding<'a> {
    Deciding {
        spec: settings,
        mode: spec.mode,
        turn: cx.sh.turn,
        max_turns: spec.limits.turns,
        asked: &judged.asked,
        found: &judged.found,
        now: cx.now,
    }
}

/// What a turn came to. One that its own limits ended goes on in the next, while the run's are not reached.
fn outcome_of(
    settings: &ControlSpec,
    state: &mut ControlState,
    end: &End,
    is_run_over: impl FnOnce() -> bool,
) -> TurnOutcome {
    let over = state.turn_over(settings);
    match (end.outcome(), end.reason()) {
        (Outcome::Completed, _) => over,
        (Outcome::NeedsClarification | Outcome::AwaitingApproval, _) => {
            TurnOutcome::Ended(StopCode::AwaitingInput)
        }
        (Outcome::Failed, StopReason::Cancelled) => TurnOutcome::Ended(StopCode::Cancelled),
        (Outcome::Failed, _) => TurnOutcome::Ended(StopCode::Failed),
        (Outcome::Deferred, StopReason::ContextOverflow) => TurnOutcome::Ended(StopCode::ContextOverflow),
        (Outcome::Deferred, StopReason::BackendDeferred) => TurnOutcome::Ended(StopCode::BackendDeferred),
        (Outcome::Deferred, _) if is_run_over() => TurnOutcome::Ended(StopCode::Budget),
        (Outcome::Deferred, _) if over == (TurnOutcome::Done { signal: true }) => over,
        (Outcome::Deferred, _) => TurnOutcome::Working { productive: true },
    }
}

/// The limit that lets no further turn begin.
fn limit_of(spec: &RunSpec, cx: &Cx<'_>, began: Time) -> Option<Reached> {
    let (turn, most) = (cx.sh.turn, spec.limits.turns);
    let turns = Reached::new(Limit::Turns, u64::from(turn), u64::from(most));
    (turn >= most).then_some(turns).or_else(|| run_limit(spec, cx, began))
}

/// A limit of the run other than its turns, between two turns.
fn run_limit(spec: &RunSpec, cx: &Cx<'_>, began: Time) -> Option<Reached> {
    let one = Amount { iterations: 1, ..Amount::NONE };
    let budgets = &cx.sh.budgets;
    let overdue = || {
        budgets.deadline().filter(|deadline| *deadline <= cx.now)?;
        let ceiling = spec.limits.elapsed.map_or(u64::MAX, |span| span.0);
        Some(Reached::new(Limit::Elapsed, cx.now.since(began).0, ceiling))
    };
    budgets.would_reach(one).or_else(|| budgets.spent()).or_else(overdue)
}

fn code_of(limit: Limit) -> StopCode {
    match limit {
        Limit::Turns => StopCode::MaxTurns,
        Limit::Context => StopCode::ContextOverflow,
        Limit::Iterations | Limit::ToolCalls | Limit::Elapsed | Limit::Tokens | Limit::Cost => {
            StopCode::Budget
        }
    }
}

/// What is used of the run's limits.
fn used(spec: &RunSpec, cx: &Cx<'_>, began: Time) -> Vec<Used> {
    let most = spec.limits.amount;
    let Some(run) = cx.sh.budgets.outermost().map(|level| level.used()) else { return Vec::new() };
    let pairs = [
        ("turns", u64::from(cx.sh.turn), u64::from(spec.limits.turns)),
        ("model calls", u64::from(run.iterations), u64::from(most.iterations)),
        ("tool calls", u64::from(run.tool_calls), u64::from(most.tool_calls)),
        ("tokens", run.tokens, most.tokens),
        ("seconds", cx.now.since(began).0 / 1_000, spec.limits.elapsed.map_or(0, |span| span.0 / 1_000)),
    ];
    pairs.into_iter().map(|(what, used, most)| Used { what, used, most }).collect()
}

fn tell_gate(cx: &mut Cx<'_>, report: &GateReport) {
    let judgement = match report.judgement {
        GateJudgement::Accepted => "accept",
        GateJudgement::Waived => "waive",
        GateJudgement::Refused => "continue",
        GateJudgement::NotAsked => return,
    };
    let (gate, reason) = (report.gate.clone(), report.why.clone());
    cx.event(|| EventKind::StopJudged { gate, judgement: judgement.to_owned(), reason });
}
