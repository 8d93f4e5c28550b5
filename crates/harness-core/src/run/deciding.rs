//! Decides after a turn whether the run continues.
//!
//! The control reviews the turn, with facts if it needs some; the checks of the end judge one that it accepts; then it
//! decides.

use std::sync::Arc;

use super::{RunSpec, RunStage, RunState};
use crate::decide::{Answered, CheckDecision, CheckVerdict, Point, Subject};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::json::Json;
use crate::limits::{Amount, Limit, Reached};
use crate::machine::{Cx, Effect, Op, Pending, Phase as _, Reply, Start};
use crate::message::{AssistantMessage, Message};
use crate::outcome::{End, Fault, FaultSource, Outcome, Stop, StopMode, StopReason};
use crate::port::{Checked, CheckedAs, Review, RunNext, RunStop, TurnEnd};
use crate::time::{Millis, Time};
use crate::turn::guidance_message;

/// A turn whose end is judged.
#[derive(Debug)]
pub(super) struct Judging {
    pub(super) end: Arc<End>,
    /// The limit that permits no further turn.
    limit: Option<Reached>,
    /// Whether a limit of the run other than its turns is reached.
    is_spent: bool,
    /// Whether the model gave a signal that the work is done.
    pub(super) signalled: bool,
    /// Whether a check that asks for more work is waived.
    waives: bool,
    /// The verdicts of the checks.
    checks: Vec<Checked>,
    /// When the operation in flight is cut off.
    pub(super) by: Option<Time>,
}

impl Judging {
    fn turn<'a>(&'a self, spec: &RunSpec, cx: &Cx<'_>) -> TurnEnd<'a> {
        TurnEnd {
            end: &self.end,
            turn: cx.sh.turn,
            max_turns: spec.limits.turns,
            mode: spec.mode,
            nudges: spec.nudges,
            limit: self.limit,
            is_spent: self.is_spent,
            now: cx.now,
        }
    }

    /// Aborts the operation whose time is over. It still replies.
    pub(super) fn cut_off(&mut self, cx: &mut Cx<'_>) {
        if self.by.take_if(|by| *by <= cx.now).is_some() {
            cx.emit(Effect::AbortAll);
        }
    }
}

impl RunState {
    /// Judges the end of a turn.
    pub(super) fn decide(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, end: End) -> Option<End> {
        let end = Arc::new(end);
        self.turn.ended(cx, &end);
        self.count_calls(cx);
        self.observe(cx);
        let spent = run_limit(spec, cx, self.started_at);
        self.stage = RunStage::Deciding(Box::new(Judging {
            end,
            limit: turn_limit(spec, cx).or(spent),
            is_spent: spent.is_some(),
            signalled: false,
            waives: false,
            checks: Vec::new(),
            by: None,
        }));
        self.review(spec, cx, None)
    }

    /// Has the control review the end, with the facts that it asked for.
    fn review(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, facts: Option<&Json>) -> Option<End> {
        let RunStage::Deciding(judging) = &mut self.stage else { return None };
        let review = self.control.review(&judging.turn(spec, cx), facts);
        let may_ask = facts.is_none() && may_continue(&judging.end);
        if let Review::Done { signalled, waives, .. } = review {
            (judging.signalled, judging.waives) = (signalled, waives);
        }
        self.emit_control(cx);
        match review {
            Review::NeedsFacts(ask) if may_ask => {
                cx.perform(Pending::Facts, Op::Facts { ask: Arc::new(ask) });
                self.set_cut_off(cx, cx.ports.facts_within);
                None
            }
            Review::Done { own, .. } => {
                emit_checks(cx, &own);
                self.ask_check(spec, cx, 0)
            }
            Review::Refused(own) => {
                emit_checks(cx, &own);
                self.conclude(spec, cx)
            }
            Review::NeedsFacts(_) | Review::NotDone => self.conclude(spec, cx),
        }
    }

    /// Sets when the operation that just started is cut off.
    fn set_cut_off(&mut self, cx: &Cx<'_>, within: Option<Millis>) {
        if let RunStage::Deciding(judging) = &mut self.stage {
            let own = within.map(|span| cx.now.after(span));
            judging.by = [own, cx.sh.budgets.deadline()].into_iter().flatten().min();
        }
    }

    pub(super) fn on_facts(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, reply: Reply) -> Option<End> {
        // A source that does not reply knows nothing.
        let found = if let Reply::Facts(found) = reply { cx.tolerate(found) } else { None };
        self.review(spec, cx, Some(&found.unwrap_or_default()))
    }

    /// Asks the next check of the end, starting at `from`.
    fn ask_check(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, from: u32) -> Option<End> {
        let Some(check) = cx.ports.next_check(Point::End, from) else { return self.conclude(spec, cx) };
        let RunStage::Deciding(judging) = &self.stage else { return None };
        let progress = self.progress(spec, cx, self.turn.standing(cx).prepared);
        let subject = Subject::End { end: Arc::clone(&judging.end), progress: Arc::new(progress) };
        cx.perform(Pending::Check(Point::End, check), Op::Check { check, subject: Box::new(subject) });
        self.set_cut_off(cx, None);
        None
    }

    pub(super) fn on_check(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        check: u32,
        reply: Reply,
    ) -> Option<End> {
        let answered = if let Reply::Check(answered) = reply { *answered } else { unanswered() };
        let (name, verdict) = cx.take_check((check, Point::End), None, Some(spec.mode), answered);
        if let CheckVerdict::Ask(question) = verdict {
            return self.ask_user(spec, cx, question.text);
        }
        let RunStage::Deciding(judging) = &mut self.stage else { return None };
        let check_of_end = taken(name, verdict, spec.mode, judging.waives);
        let refused = check_of_end.verdict == CheckedAs::Refused;
        judging.checks.push(check_of_end);
        if refused { self.conclude(spec, cx) } else { self.ask_check(spec, cx, check + 1) }
    }

    /// Ends the run with a question to the user.
    fn ask_user(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, text: String) -> Option<End> {
        let RunStage::Deciding(judging) = &mut self.stage else { return None };
        cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
        let mut message = AssistantMessage::clarification(&text);
        message.agent.clone_from(&judging.end.agent);
        Arc::make_mut(&mut judging.end).answer = Some(text);
        cx.append_one(Arc::new(Message::Assistant(message)));
        self.stop_judging(spec, cx, StopReason::ClarificationRequired.into())
    }

    /// Has the control decide, and continues or stops.
    fn conclude(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let (judging, next) = self.control_decides(spec, cx)?;
        let stop = match next {
            RunNext::Stop(stop) => stop,
            RunNext::Continue(_) if !may_continue(&judging.end) => RunStop::default(),
            RunNext::Continue(text) => {
                let Some(reached) = turn_limit(spec, cx) else {
                    self.start_another(cx, &judging.end, text);
                    return None;
                };
                RunStop { stop: Some(reached.into()), ..RunStop::default() }
            }
        };
        Some(self.stop(cx, judging.end, stop))
    }

    fn control_decides(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<(Judging, RunNext)> {
        let RunStage::Deciding(judging) = std::mem::take(&mut self.stage) else { return None };
        let next = self.control.decide(&judging.turn(spec, cx), &judging.checks);
        self.emit_control(cx);
        Some((*judging, next))
    }

    fn start_another(&mut self, cx: &mut Cx<'_>, judged: &End, text: Option<String>) {
        self.usage.merge(&judged.usage);
        self.iterations = self.iterations.saturating_add(judged.iterations);
        cx.sh.turn += 1;
        cx.sh.iteration = 0;
        let prompt = text.map(guidance_message).into_iter().collect();
        self.rest_before(cx, Start { prompt, agent: judged.agent.clone(), ..Start::default() });
    }

    /// Stops a run that is cancelled while the end of a turn is judged.
    pub(super) fn cancel_judging(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        cx.sh.pending.clear();
        cx.emit(Effect::AbortAll);
        self.stop_judging(spec, cx, stop)
    }

    /// Stops the run, whatever its control decides.
    fn stop_judging(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        let RunStage::Deciding(judging) = &mut self.stage else { return None };
        Arc::make_mut(&mut judging.end).stop = stop.clone();
        let (judging, next) = self.control_decides(spec, cx)?;
        let decided = if let RunNext::Stop(decided) = next { decided } else { RunStop::default() };
        Some(self.stop(cx, judging.end, RunStop { stop: Some(stop), ..decided }))
    }
}

/// The result of a check that was cut off.
fn unanswered() -> Answered<CheckDecision> {
    let fault = Fault::new(FaultSource::Gate, "interrupted", "it did not reply within the time of the run");
    Answered { answer: Err(fault), took: Millis(0) }
}

/// The verdict of a check, for the control.
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
        CheckVerdict::Accept
        | CheckVerdict::Amend(_)
        | CheckVerdict::Invalid { .. }
        | CheckVerdict::Ask(_)
        | CheckVerdict::Unfounded(_) => (CheckedAs::Accepted, None),
    };
    Checked { check, verdict, why }
}

/// Emits the verdicts of the control's own checks.
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

/// Whether another turn may follow: one that waits for the user, or failed, ends its run.
fn may_continue(end: &End) -> bool {
    matches!(end.outcome(), Outcome::Completed | Outcome::Deferred)
}

/// The limit of turns, when none is left.
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
