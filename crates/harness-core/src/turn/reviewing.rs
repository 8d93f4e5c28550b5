//! Reviews an answer: layers see it, checks judge it, layers learn from it. Then the turn acts on it.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::asking::continue_broken;
use super::calling::{Batch, not_run_outcome, requested};
use super::checks::Checked;
use super::draining::Then;
use super::stage::{Stage, Step, WAIT, enter, stop};
use super::state::{TurnCx, drain, invariant, or_stop, unexpected};
use super::viewing::Viewing;
use crate::decide::{Answered, CheckDecision, Point, Subject};
use crate::event::EventKind;
use crate::machine::{Cx, Op, Pending, Reply};
use crate::message::{AssistantMessage, FinishReason, Invalid, Message, ModelOutput};
use crate::outcome::{Evidence, Fault, FaultSource, StopReason};
use crate::port::Prepared;
use crate::time::Millis;

/// The kind of an invalid output whose form is wrong.
const WRONG_FORM: &str = "schema_mismatch";

/// How far an answer has come.
#[derive(Debug)]
pub(super) enum Reviewing {
    /// It is not in the transcript; layers look at it first.
    New(Arc<Message>),
    /// Checks judge it, the text of tools that end the turn, or an invalid answer.
    Checks,
    /// It is the last message of the transcript, and layers learn from it.
    Learning,
    /// It is the last message of the transcript, and counts.
    Accepted,
}

impl Reviewing {
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        match self {
            Self::New(answer) if turn.cx.ports.layers.is_some() => {
                let (answer, standing) = (Arc::clone(answer), Box::new(turn.standing()));
                turn.cx.perform(Pending::AfterModel, Op::AfterModel { answer, standing });
                WAIT
            }
            Self::New(_) => match self.take_new() {
                Some(answer) => self.check(turn, answer),
                None => WAIT,
            },
            Self::Checks => WAIT,
            Self::Learning | Self::Accepted => self.act(turn),
        }
    }

    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (Pending::AfterModel, Reply::AfterModel(result)) => self.on_after_model(turn, result),
            (Pending::Check(point, check), Reply::Check(asked)) => {
                self.on_check(turn, (point, check), *asked)
            }
            (Pending::LayerStore, Reply::Noted(result)) => {
                turn.cx.tolerate(result);
                self.act(turn)
            }
            (Pending::NoteApproval, Reply::ApprovalNoted(result)) => on_approval_noted(turn, result),
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    fn on_after_model(&mut self, turn: &mut TurnCx<'_>, result: Result<Option<String>, Fault>) -> Step {
        let guidance = turn.cx.tolerate(result).flatten();
        match (self.take_new(), guidance) {
            (Some(answer), Some(guidance)) => answer_again(turn, &answer, guidance),
            (Some(answer), None) => self.check(turn, answer),
            (None, _) => WAIT,
        }
    }

    /// Takes an answer that is not in the transcript.
    pub(super) fn take_new(&mut self) -> Option<Arc<Message>> {
        if !matches!(self, Self::New(_)) {
            return None;
        }
        if let Self::New(answer) = std::mem::replace(self, Self::Accepted) { Some(answer) } else { None }
    }

    /// Shows an answer to the checks, if there are any.
    fn check(&mut self, turn: &mut TurnCx<'_>, answer: Arc<Message>) -> Step {
        if turn.cx.ports.next_check(Point::Answer, 0).is_some()
            && let Some(subject) = subject_of(turn, &answer)
            && turn.start_checks(Point::Answer, |_| subject)
        {
            *self = Self::Checks;
            return WAIT;
        }
        self.accept(turn, answer)
    }

    fn on_check(&mut self, turn: &mut TurnCx<'_>, at: (Point, u32), asked: Answered<CheckDecision>) -> Step {
        let (subject, guidance) = match turn.on_check(at, asked)? {
            Checked::Running => return WAIT,
            Checked::Accepted(subject) => (subject, None),
            Checked::Guidance(subject, guidance) => (subject, Some(guidance)),
            Checked::Invalid(subject, reason) => return self.on_wrong_form(turn, subject, reason),
        };
        *self = Self::Accepted;
        match (subject, guidance) {
            (Subject::Answer { message: Some(answer), .. }, Some(guidance)) => {
                answer_again(turn, &answer, guidance)
            }
            (Subject::Answer { message: Some(answer), .. }, None) => self.accept(turn, answer),
            (Subject::Answer { text, message: None, .. }, _) => {
                turn.data.answer = Some(text);
                turn.stop_with_answer()
            }
            (Subject::Invalid { invalid, .. }, guidance) => after_invalid(turn, *invalid, guidance),
            (Subject::Prompt(_) | Subject::Result { .. } | Subject::End { .. }, _) => WAIT,
        }
    }

    /// An answer does not match its agent's schema: it is kept and counts as an invalid output.
    fn on_wrong_form(&mut self, turn: &mut TurnCx<'_>, subject: Subject, reason: String) -> Step {
        *self = Self::Accepted;
        if let Subject::Answer { message: Some(answer), .. } = subject {
            append_answer(turn, answer);
        }
        turn.data.invalid += 1;
        after_invalid(turn, Invalid { kind: Some(WRONG_FORM.to_owned()), ..Invalid::new(reason) }, None)
    }

    /// Takes an answer that nothing speaks against into the transcript.
    fn accept(&mut self, turn: &mut TurnCx<'_>, answer: Arc<Message>) -> Step {
        let counts = |message: &AssistantMessage| !matches!(message.output(), ModelOutput::Invalid(_));
        if turn.cx.ports.layers.is_some() && answer.as_assistant().is_some_and(counts) {
            append_answer(turn, Arc::clone(&answer));
            *self = Self::Learning;
            let standing = Box::new(turn.standing());
            turn.cx.perform(Pending::LayerStore, Op::LayerStore { answer, standing });
            return WAIT;
        }
        append_answer(turn, answer);
        self.act(turn)
    }

    /// Does what the answer asks for that is the last message of the transcript.
    fn act(&mut self, turn: &mut TurnCx<'_>) -> Step {
        *self = Self::Accepted;
        if turn.spec.continue_broken > 0
            && let Some(code) = check_whole(turn)?
        {
            return continue_broken(turn, code);
        }
        let Some(last) = turn.cx.log.last() else { return WAIT };
        let Some(answer) = last.as_assistant() else {
            return invariant("the last message is not an answer");
        };
        match answer.output() {
            ModelOutput::ToolRequest => {
                let (calls, at) = (answer.tool_calls(), turn.cx.log.len().saturating_sub(1));
                enter(Stage::Calling(Batch::new(calls, at, turn.spec, turn.data.tools())))
            }
            ModelOutput::FinalAnswer => {
                turn.data.answer = Some(last.joined_text());
                drain(Then::Complete)
            }
            ModelOutput::Clarification { question } => {
                turn.cx.event(|| EventKind::ClarificationRequested { question: question.clone() });
                turn.data.answer = Some(question);
                stop(StopReason::ClarificationRequired, Evidence::None)
            }
            ModelOutput::ApprovalRequest(request) if turn.cx.ports.approver => {
                let request = Box::new(request);
                turn.cx.perform(Pending::NoteApproval, Op::NoteApproval { request });
                WAIT
            }
            ModelOutput::ApprovalRequest(request) => {
                on_approval_noted(turn, Ok(Box::new(Prepared { request, continuation: None })))
            }
            ModelOutput::Refusal { reason } => {
                turn.data.answer = Some(reason.to_owned());
                stop(StopReason::ModelRefused, Evidence::None)
            }
            ModelOutput::Invalid(invalid) => {
                answer_last_unrun(&mut turn.cx, "the answer that asked for it was not usable");
                self.on_invalid(turn, invalid)
            }
        }
    }

    fn on_invalid(&mut self, turn: &mut TurnCx<'_>, invalid: Invalid) -> Step {
        turn.data.invalid += 1;
        let subject = |turn: &TurnCx<'_>| Subject::Invalid {
            invalid: Box::new(invalid.clone()),
            progress: turn.data.progress(&turn.cx),
        };
        if !turn.start_checks(Point::Invalid, subject) {
            return after_invalid(turn, invalid, None);
        }
        *self = Self::Checks;
        WAIT
    }

    /// The turn ends while an answer is looked at. One that checks look at comes into no transcript.
    pub(super) fn abandon(self, turn: &mut TurnCx<'_>) {
        const WHY: &str = "the turn had ended";
        match self {
            Self::New(answer) => {
                turn.cx.append_one(Arc::clone(&answer));
                answer_unrun(&mut turn.cx, &answer, WHY);
            }
            Self::Learning => answer_last_unrun(&mut turn.cx, WHY),
            Self::Checks => {
                if let Some(Subject::Answer { message: Some(answer), .. }) = turn.data.checked.as_deref() {
                    let duration = turn.cx.now.since(turn.data.last_step.asked_at);
                    turn.cx.event(|| step_finished(answer.as_assistant(), duration));
                }
            }
            Self::Accepted => {}
        }
    }
}

/// Appends an answer that came too late to be acted on.
pub(super) fn keep_answer(turn: &mut TurnCx<'_>, answer: Arc<Message>) {
    if answer.as_assistant().is_some() {
        append_answer(turn, answer);
        answer_last_unrun(&mut turn.cx, "the turn had ended");
    }
}

/// The approver has taken note of the model's own request.
fn on_approval_noted(turn: &mut TurnCx<'_>, result: Result<Box<Prepared>, Fault>) -> Step {
    let Prepared { request, continuation } = *or_stop(result)?;
    turn.cx.event(|| requested(&request, None));
    turn.data.replaced = continuation;
    stop(StopReason::ApprovalRequired, Evidence::Approval(request))
}

/// The subject of checks of an answer; `None` for calls and refusals.
fn subject_of(turn: &TurnCx<'_>, answer: &Arc<Message>) -> Option<Subject> {
    let text = match answer.as_assistant()?.output() {
        ModelOutput::FinalAnswer => answer.joined_text(),
        ModelOutput::Clarification { question } => question,
        ModelOutput::ToolRequest
        | ModelOutput::ApprovalRequest(_)
        | ModelOutput::Refusal { .. }
        | ModelOutput::Invalid(_) => return None,
    };
    let (agent, output) = (turn.data.agent_id(), turn.data.output());
    Some(Subject::Answer { text, agent, message: Some(Arc::clone(answer)), output })
}

/// The turn has an answer in the words of tools: checks look at it, if there are any.
pub(super) fn answer_with(turn: &mut TurnCx<'_>, text: String) -> Step {
    let subject = |turn: &TurnCx<'_>| {
        let (agent, output) = (turn.data.agent_id(), turn.data.output());
        Subject::Answer { text: text.clone(), agent, message: None, output }
    };
    if turn.start_checks(Point::Answer, subject) {
        return enter(Stage::Reviewing(Reviewing::Checks));
    }
    turn.data.answer = Some(text);
    drain(Then::Complete)
}

/// Looks whether the answer that is the last message is a whole one; gives why it broke off, when the turn continues
/// behind it.
fn check_whole(turn: &mut TurnCx<'_>) -> Step<Option<&'static str>> {
    let answer = turn.cx.log.last().and_then(|message| message.as_assistant());
    let Some((code, problem)) = answer.and_then(broken) else {
        turn.data.broken = 0;
        return ControlFlow::Continue(None);
    };
    answer_last_unrun(&mut turn.cx, "the answer that asked for it is incomplete");
    if turn.data.broken < turn.spec.continue_broken {
        return ControlFlow::Continue(Some(code));
    }
    stop(StopReason::RuntimeError, Evidence::Fault(Fault::new(FaultSource::Model, code, problem)))
}

/// The reason why an answer is incomplete.
fn broken(answer: &AssistantMessage) -> Option<(&'static str, String)> {
    match answer.stop_reason {
        FinishReason::Length | FinishReason::Paused | FinishReason::ContentFilter => {
            Some(("incomplete_answer", format!("the answer is incomplete: {}", answer.stop_reason.as_str())))
        }
        FinishReason::Stop | FinishReason::ToolUse => {
            let says_nothing = answer.content.iter().all(|block| block.as_text() == Some(""));
            says_nothing.then(|| ("empty_answer", "the answer is empty".to_owned()))
        }
        FinishReason::Error | FinishReason::Aborted | FinishReason::Refusal | FinishReason::Other(_) => None,
    }
}

/// Has the model answer again after an invalid answer, with `guidance` or the usual text, or stops.
fn after_invalid(turn: &mut TurnCx<'_>, invalid: Invalid, guidance: Option<String>) -> Step {
    if turn.data.invalid >= turn.spec.limits.invalid_outputs {
        let is_form = turn.data.output().is_some() && invalid.kind.as_deref() == Some(WRONG_FORM);
        let reason = if is_form { StopReason::InvalidOutput } else { StopReason::ModelInvalidResponse };
        return stop(reason, Evidence::Invalid(invalid));
    }
    turn.check_limits()?;
    let usual = || format!("Your last answer could not be used: {}. Answer again, in full.", invalid.reason);
    turn.guide(guidance.unwrap_or_else(usual));
    enter(Stage::Viewing(Viewing::default()))
}

/// The answer is kept and does not count; the model reads why, and answers again.
fn answer_again(turn: &mut TurnCx<'_>, answer: &Arc<Message>, guidance: String) -> Step {
    append_answer(turn, Arc::clone(answer));
    answer_unrun(&mut turn.cx, answer, "the answer was not accepted");
    turn.guide(guidance);
    enter(Stage::Viewing(Viewing::default()))
}

fn append_answer(turn: &mut TurnCx<'_>, answer: Arc<Message>) {
    let duration = turn.cx.now.since(turn.data.last_step.asked_at);
    // Only listeners are told about it once it is in the transcript.
    let told = turn.cx.ports.listeners.then(|| Arc::clone(&answer));
    turn.cx.append_one(answer);
    turn.cx.event(|| step_finished(told.as_deref().and_then(Message::as_assistant), duration));
}

/// `message`: what the model answered.
fn step_finished(message: Option<&AssistantMessage>, duration: Millis) -> EventKind {
    EventKind::ModelStepFinished {
        output_type: message.map_or("invalid", AssistantMessage::output_type).into(),
        usage: message.and_then(|message| message.usage.clone()),
        duration,
        first_token: None,
    }
}

/// Answers every call of `message` with a result that says why it did not run (law 1).
pub(super) fn answer_unrun(cx: &mut Cx<'_>, message: &Message, why: &str) {
    let Some(message) = message.as_assistant() else { return };
    let at = cx.now;
    let result = |call| Arc::new(Message::ToolResult(not_run_outcome(why).to_message(call, None, at)));
    let results: Vec<_> = message.tool_calls().map(|call| result(call)).collect();
    cx.append(results);
}

/// Answers every call of the last message as not run.
fn answer_last_unrun(cx: &mut Cx<'_>, why: &str) {
    if let Some(answer) = cx.log.last().cloned() {
        answer_unrun(cx, &answer, why);
    }
}
