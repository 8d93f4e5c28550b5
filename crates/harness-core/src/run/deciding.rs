//! A turn is over: whether the run goes on.
//!
//! The control reviews the turn, with facts where it wants some; the checks of the end are asked about one that it
//! believes; then it decides.

use std::sync::Arc;

use super::{RunPhase, RunSpec, RunState};
use crate::decide::{Answered, CheckDecision, CheckVerdict, Point, Subject};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::json::Json;
use crate::limits::{Amount, Limit, Reached};
use crate::machine::{Cx, Effect, Op, Pending, Reply, Start};
use crate::message::{AssistantMessage, Message};
use crate::outcome::{End, Fault, FaultSource, Outcome, Stop, StopMode, StopReason};
use crate::port::{Checked, CheckedAs, Review, RunNext, RunStop, TurnEnd};
use crate::time::{Millis, Time};
use crate::turn::guidance_message;

/// A turn whose end is judged.
#[derive(Debug)]
pub(super) struct Judging {
    pub(super) end: Arc<End>,
    /// The limit that lets no further turn begin.
    limit: Option<Reached>,
    /// Whether a limit of the run other than its turns is reached.
    is_spent: bool,
    /// The facts that are asked for.
    ask: Option<Arc<Json>>,
    /// Whether the model gave a signal that the work is done.
    pub(super) signalled: bool,
    /// Whether a check that asks for more work is let go.
    waives: bool,
    /// What the checks said.
    checks: Vec<Checked>,
    /// When the question that was asked last is cut off.
    pub(super) by: Option<Time>,
}

impl Judging {
    fn turn<'a>(&'a self, spec: &RunSpec, cx: &Cx<'_>) -> TurnEnd<'a> {
        TurnEnd {
            turn: cx.sh.turn,
            max_turns: spec.limits.turns,
            mode: spec.mode,
            nudges: spec.nudges,
            limit: self.limit,
            is_spent: self.is_spent,
            now: cx.now,
            ..TurnEnd::new(&self.end)
        }
    }
}

impl RunState {
    /// A turn is over.
    pub(super) fn decide(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, end: End) -> Option<End> {
        self.phase = RunPhase::Decide;
        self.count_calls(cx);
        self.observe(cx);
        let spent = run_limit(spec, cx, self.started_at);
        self.judging = Some(Box::new(Judging {
            end: Arc::new(end),
            limit: turn_limit(spec, cx).or(spent),
            is_spent: spent.is_some(),
            ask: None,
            signalled: false,
            waives: false,
            checks: Vec::new(),
            by: None,
        }));
        self.review(spec, cx, None)
    }

    fn review(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, facts: Option<&Json>) -> Option<End> {
        let judging = self.judging.as_mut()?;
        let review = self.control.get_mut().review(&judging.turn(spec, cx), facts);
        match review {
            Review::NeedsFacts(ask) if facts.is_none() && may_go_on(&judging.end) => {
                judging.ask = Some(Arc::new(ask));
                self.emit_control(cx);
                self.ask(spec, cx, Pending::Facts);
                None
            }
            Review::Done { signalled, waives, own } => {
                (judging.signalled, judging.waives) = (signalled, waives);
                self.emit_control(cx);
                emit_checks(cx, &own);
                self.ask_check(spec, cx, 0)
            }
            Review::Refused(own) => {
                self.emit_control(cx);
                emit_checks(cx, &own);
                self.conclude(spec, cx)
            }
            Review::NeedsFacts(_) | Review::NotDone => {
                self.emit_control(cx);
                self.conclude(spec, cx)
            }
        }
    }

    /// Asks for what an end is judged on.
    fn ask(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, pending: Pending) {
        if let Some(op) = self.judging_op(spec, cx, pending) {
            cx.perform(pending, op);
        }
        self.judge_within(cx);
    }

    /// The question that `pending` stands for.
    pub(super) fn judging_op(&self, spec: &RunSpec, cx: &Cx<'_>, pending: Pending) -> Option<Op> {
        let judging = self.judging.as_ref()?;
        if let Pending::Check(_, check) = pending {
            let progress = self.progress(spec, cx, self.turn.standing(cx).prepared);
            let (end, progress) = (Arc::clone(&judging.end), Arc::new(progress));
            return Some(Op::Check { check, subject: Box::new(Subject::End { end, progress }) });
        }
        judging.ask.clone().filter(|_| pending == Pending::Facts).map(|ask| Op::Facts { ask })
    }

    /// Sets when the question that was just asked is cut off.
    pub(super) fn judge_within(&mut self, cx: &Cx<'_>) {
        let own = cx.ports.facts_within.map(|span| cx.now.after(span));
        if let Some(judging) = &mut self.judging {
            let own = own.filter(|_| judging.ask.is_some());
            judging.by = [own, cx.sh.budgets.deadline()].into_iter().flatten().min();
        }
    }

    /// Cuts the question off whose time is over. Its answer, or that there is none, still comes.
    pub(super) fn cut_judging_off(&mut self, cx: &mut Cx<'_>) {
        let Some(judging) = &mut self.judging else { return };
        if judging.by.is_some_and(|by| by <= cx.now) {
            judging.by = None;
            cx.emit(Effect::AbortAll);
        }
    }

    pub(super) fn on_facts(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, reply: Reply) -> Option<End> {
        // A source that gives no answer knows nothing.
        let found = if let Reply::Facts(found) = reply { cx.tolerate(found) } else { None };
        if let Some(judging) = &mut self.judging {
            judging.ask = None;
        }
        self.review(spec, cx, Some(&found.unwrap_or_default()))
    }

    /// Asks the next check of the end, from that place on.
    fn ask_check(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, from: u32) -> Option<End> {
        match cx.ports.next_check(Point::End, from) {
            Some(check) => {
                self.ask(spec, cx, Pending::Check(Point::End, check));
                None
            }
            None => self.conclude(spec, cx),
        }
    }

    pub(super) fn on_check(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        check: u32,
        reply: Reply,
    ) -> Option<End> {
        let asked = if let Reply::Check(asked) = reply { *asked } else { unanswered() };
        let (name, verdict) = cx.take_check((check, Point::End), None, Some(spec.mode), asked);
        if let CheckVerdict::Ask(question) = verdict {
            return self.ask_user(spec, cx, question.text);
        }
        let judging = self.judging.as_mut()?;
        let check_of_end = taken(name, verdict, spec.mode, judging.waives);
        let refused = check_of_end.verdict == CheckedAs::Refused;
        judging.checks.push(check_of_end);
        if refused { self.conclude(spec, cx) } else { self.ask_check(spec, cx, check + 1) }
    }

    /// The run ends with a question to the user.
    fn ask_user(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, text: String) -> Option<End> {
        cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
        let judging = self.judging.as_mut()?;
        let mut message = AssistantMessage::clarification(&text);
        message.agent.clone_from(&judging.end.agent);
        Arc::make_mut(&mut judging.end).answer = Some(text);
        cx.append_one(Arc::new(Message::Assistant(message)));
        self.stop_judging(spec, cx, StopReason::ClarificationRequired.into())
    }

    /// Lets the control decide, and acts on it.
    fn conclude(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let judging = self.judging.take()?;
        let next = self.control.get_mut().decide(&judging.turn(spec, cx), &judging.checks);
        self.emit_control(cx);
        match next {
            RunNext::Stop(stop) => self.stop(cx, judging.end, stop),
            RunNext::Continue(_) if !may_go_on(&judging.end) => {
                self.stop(cx, judging.end, RunStop::default())
            }
            RunNext::Continue(text) => match turn_limit(spec, cx) {
                Some(reached) => {
                    let stop = RunStop { stop: Some(reached.into()), ..RunStop::default() };
                    self.stop(cx, judging.end, stop)
                }
                None => self.another_turn(cx, &judging.end, text),
            },
        }
    }

    fn another_turn(&mut self, cx: &mut Cx<'_>, judged: &End, text: Option<String>) -> Option<End> {
        self.usage.merge(&judged.usage);
        self.iterations = self.iterations.saturating_add(judged.iterations);
        cx.sh.turn += 1;
        cx.sh.iteration = 0;
        let prompt = text.map(guidance_message).into_iter().collect();
        let start = Start { prompt, agent: judged.agent.clone(), ..Start::default() };
        self.begin_turn(cx, start)
    }

    /// The run is cancelled while the end of a turn is judged.
    pub(super) fn cancel_judging(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        cx.sh.pending.clear();
        cx.emit(Effect::AbortAll);
        self.stop_judging(spec, cx, stop)
    }

    /// The run stops for this, whatever its control decides.
    fn stop_judging(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        let mut judging = self.judging.take()?;
        Arc::make_mut(&mut judging.end).stop = stop.clone();
        let next = self.control.get_mut().decide(&judging.turn(spec, cx), &judging.checks);
        self.emit_control(cx);
        let decided = match next {
            RunNext::Stop(decided) => decided,
            RunNext::Continue(_) => RunStop::default(),
        };
        self.stop(cx, judging.end, RunStop { stop: Some(stop), ..decided })
    }
}

/// What it means that the question was cut off.
fn unanswered() -> Answered<CheckDecision> {
    let fault = Fault::new(FaultSource::Gate, "interrupted", "it gave no answer in the time of the run");
    Answered { answer: Err(fault), took: Millis(0) }
}

/// How the run takes what a check said.
fn taken(check: GateName, verdict: CheckVerdict, mode: StopMode, waives: bool) -> Checked {
    let interactive = mode == StopMode::Interactive;
    let (verdict, why) = match verdict {
        CheckVerdict::Waive { why } if interactive => (CheckedAs::Waived, Some(why)),
        CheckVerdict::Continue { guidance: why } | CheckVerdict::Refuse { reason: why } if waives => {
            (CheckedAs::Waived, Some(why))
        }
        CheckVerdict::Waive { why }
        | CheckVerdict::Continue { guidance: why }
        | CheckVerdict::Refuse { reason: why } => (CheckedAs::Refused, Some(why)),
        CheckVerdict::Accept | CheckVerdict::Amend(_) | CheckVerdict::Ask(_) | CheckVerdict::Unfounded(_) => {
            (CheckedAs::Accepted, None)
        }
    };
    Checked { check, verdict, why }
}

/// Tells what the control's own checks said.
fn emit_checks(cx: &mut Cx<'_>, own: &[Checked]) {
    for check in own {
        let verdict = match check.verdict {
            CheckedAs::Accepted => "accept",
            CheckedAs::Waived => "waive",
            CheckedAs::Refused => "continue",
        };
        cx.emit_own_check(check.check.clone(), verdict, check.why.clone());
    }
}

/// Whether another turn may follow: one that waits for somebody, or failed, ends its run.
fn may_go_on(end: &End) -> bool {
    matches!(end.outcome(), Outcome::Completed | Outcome::Deferred)
}

/// The turns, when none is left.
fn turn_limit(spec: &RunSpec, cx: &Cx<'_>) -> Option<Reached> {
    let (turn, most) = (cx.sh.turn, spec.limits.turns);
    (turn >= most).then(|| Reached::new(Limit::Turns, u64::from(turn), u64::from(most)))
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
