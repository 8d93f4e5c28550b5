//! Human-readable output: the answer on standard output, everything else on standard error.

use std::io::{self, Write};

use harness::control::{ControlEvent, StopCode, StopDecision};
use harness::core::End;
use harness::core::event::{Event, EventKind, Seen};
use harness::core::port::DeltaPart;
use harness::core::{CallId, Evidence, OpId, Outcome, ToolName};

use super::Render;
use super::answer::{Answer, AnswerOn};
use super::event_line::{called, event_line, stalled};
use super::harmless::{harmless, one_line};
use super::status::Status;
use super::style::{BAD, DIM, GOOD, NOTE};
use crate::terminal::{Paint, erase_line};

/// Shows a run to a user.
pub(crate) struct Human<A: Write, P> {
    answer: Answer<A>,
    progress: P,
    /// Handoff call that was already shown.
    handed_off: Option<CallId>,
    /// Running tools of a backend.
    backend_tools: Vec<(CallId, ToolName)>,
    /// Progress of the run, on a terminal.
    status: Option<Status>,
    /// Whether its line is shown below everything else.
    status_shown: bool,
}

/// Maximum number of tracked running tools of a backend.
const OPEN_TOOLS: usize = 256;

impl<A: Write, P: Write> Human<A, P> {
    pub(crate) fn new(answer: A, progress: P, on: AnswerOn) -> Self {
        Self {
            answer: Answer::new(answer, on),
            progress,
            handed_off: None,
            backend_tools: Vec::new(),
            status: None,
            status_shown: false,
        }
    }

    /// Adds a progress line that is updated in place, which requires a terminal.
    pub(crate) fn with_status(self, status: Option<Status>) -> Self {
        Self { status, ..self }
    }

    /// Shows the progress, unless text is being shown.
    fn show_status(&mut self) {
        if self.answer.is_inside_line() {
            return;
        }
        self.hide_status();
        if let Some(status) = &self.status {
            let _ = write!(self.progress, "{DIM}{}{DIM:#}", status.line());
            let _ = self.progress.flush();
            self.status_shown = true;
        }
    }

    fn hide_status(&mut self) {
        if std::mem::take(&mut self.status_shown) {
            let _ = self.progress.write_all(erase_line().as_bytes());
            let _ = self.progress.flush();
        }
    }

    /// A delta of an answer.
    pub(crate) fn part(&mut self, op: OpId, part: &DeltaPart) -> io::Result<()> {
        match part {
            DeltaPart::Text(text) => self.text(op, text),
            DeltaPart::BackendToolStarted { id, name, input } => {
                if self.backend_tools.len() < OPEN_TOOLS {
                    self.backend_tools.push((id.clone(), name.clone()));
                }
                self.note(DIM, "→", &called(name, input))
            }
            DeltaPart::BackendToolFinished { id, output, failed } => {
                let open = self.backend_tools.iter().position(|(open, _)| open == id);
                let name = open.map(|at| self.backend_tools.swap_remove(at).1);
                let name = one_line(name.as_ref().map_or("a tool", |name| name.as_str()));
                let (style, mark) = if *failed { (BAD, "✗") } else { (GOOD, "✓") };
                self.note(style, mark, &format!("{name} {DIM}{}{DIM:#}", one_line(output.trim())))
            }
            DeltaPart::Note(text) => self.note(NOTE, "•", &one_line(text)),
            DeltaPart::Thinking(_) | DeltaPart::CallStarted { .. } | DeltaPart::CallArguments { .. } | _ => {
                Ok(())
            }
        }
    }

    /// Adds text of the answer.
    fn text(&mut self, op: OpId, text: &str) -> io::Result<()> {
        self.hide_status();
        self.answer.more(op, text)
    }

    /// Writes a progress line. A failure to write is not an error of the run.
    fn note(&mut self, style: Paint, mark: &str, text: &str) -> io::Result<()> {
        self.answer.end_line()?;
        // In one piece, because others write to standard error, too.
        let erase = if std::mem::take(&mut self.status_shown) { erase_line() } else { String::new() };
        let _ = writeln!(self.progress, "{erase}{style}{mark}{style:#} {text}");
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let EventKind::TurnStarted { agent, .. } = &event.kind {
            return self.note(DIM, "•", &format!("{DIM}{agent}{DIM:#}"));
        }
        if let EventKind::HandedOff { call, from, to, .. } = &event.kind {
            self.handed_off = Some(call.clone());
            return self.note(NOTE, "↪", &format!("{from} → {to}"));
        }
        if let Some(ControlEvent::StopDecided { decision }) = ControlEvent::of(&event.kind) {
            return self.decided(&decision);
        }
        match event_line(&event.kind) {
            Some(_) if self.tells_of_handoff(&event.kind) => Ok(()),
            Some((style, mark, text)) => self.note(style, mark, &text),
            None => Ok(()),
        }
    }

    /// Whether the event ends a handoff call.
    fn tells_of_handoff(&self, kind: &EventKind) -> bool {
        matches!(kind, EventKind::ToolFinished { call, .. } if self.handed_off.as_ref() == Some(&call.id))
    }

    /// Reason why a run continues although its end was claimed. The last line reports the stop.
    fn decided(&mut self, decision: &StopDecision) -> io::Result<()> {
        if let Some(turns) = decision.stall_turns {
            self.note(NOTE, "!", &stalled(turns))?;
        }
        if decision.stops || decision.code == StopCode::AgentWorking {
            return Ok(());
        }
        let what = match &decision.gaps {
            Some(gaps) => {
                let unmet: Vec<&str> = gaps.unmet_requirements.iter().map(|one| &*one.id).collect();
                format!(": {}", unmet.join(", "))
            }
            None => String::new(),
        };
        self.note(NOTE, "↻", &format!("not done yet ({}){}", decision.code, one_line(&what)))
    }
}

impl<A: Write + Send, P: Write + Send> Render for Human<A, P> {
    fn see(&mut self, seen: &Seen) -> io::Result<()> {
        match seen {
            Seen::Event(event) => {
                self.event(event)?;
                let is_shown = self.status.as_mut().is_some_and(|status| status.see(event));
                if is_shown || !self.status_shown && self.status.as_ref().is_some_and(Status::has_begun) {
                    self.show_status();
                }
                Ok(())
            }
            Seen::Delta(delta) => self.part(delta.op, &delta.part),
            Seen::Lagged { missed } => self.note(NOTE, "•", &format!("{missed} events were not shown")),
            _ => Ok(()),
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.hide_status();
        self.answer.end_line()
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.hide_status();
        self.status = None;
        match end.answer.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => self.answer.whole(text)?,
            None => self.answer.without_answer()?,
        }
        if let Some(why) = why(&end.stop.evidence) {
            self.note(BAD, "!", &why)?;
        }
        if let Some(fault) = &end.persist_failed {
            self.note(BAD, "!", &format!("session not saved completely: {}", one_line(fault)))?;
        }
        let style = match end.outcome() {
            Outcome::Completed => GOOD,
            Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred => NOTE,
            Outcome::Failed => BAD,
        };
        self.note(style, &format!("{}", end.outcome()), &summary(end))
    }
}

/// Evidence of a stop that the stop reason does not contain.
pub(crate) fn why(evidence: &Evidence) -> Option<String> {
    match evidence {
        Evidence::Limit(reached) => Some(super::limit::stopped(reached)),
        Evidence::Fault(fault) => Some(harmless(&fault.to_string()).into_owned()),
        Evidence::Invalid(invalid) => Some(format!("invalid model response: {}", one_line(&invalid.reason))),
        Evidence::Tool { name, code } => {
            let code = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            Some(format!("tool {}{}", one_line(name), one_line(&code)))
        }
        Evidence::Loop { tools } => {
            let tools: Vec<_> = tools.iter().map(|tool| one_line(tool)).collect();
            Some(format!("repeated tool calls without progress: {}", tools.join(", ")))
        }
        Evidence::Approval(request) => Some(format!("approval required: {}", one_line(&request.summary))),
        Evidence::Held(requests) => {
            let waiting: Vec<_> = requests.iter().map(|request| one_line(&request.summary)).collect();
            Some(format!("approval required: {}", waiting.join("; ")))
        }
        Evidence::Gate { gate, tool, reason, .. } => {
            Some(format!("gate {gate} denied {}: {}", one_line(tool.as_str()), one_line(reason)))
        }
        Evidence::Guardrail { guardrail, stage, reason } => {
            let reason = reason.as_deref().map(|r| format!(": {}", one_line(r))).unwrap_or_default();
            Some(format!("{stage} guardrail {guardrail}{reason}"))
        }
        Evidence::None | Evidence::Cancelled { .. } | Evidence::ToolResult(_) | Evidence::Density(_) => None,
        _ => None,
    }
}

/// `(answer_finalized) · 3 iterations · …`
fn summary(end: &End) -> String {
    let count = |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let mut parts = vec![format!("({})", end.reason())];
    parts.push(count(u64::from(end.iterations), "iteration"));
    parts.push(count(u64::from(end.usage.tool_calls), "tool call"));
    if end.usage.input_tokens.is_some() || end.usage.output_tokens.is_some() {
        let tokens = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        let (input, output) = (tokens(end.usage.input_tokens), tokens(end.usage.output_tokens));
        let estimated = match end.usage.estimated_tokens {
            None => "",
            Some(estimated) if estimated < end.usage.amount().tokens => " (partly estimated)",
            Some(_) => " (estimated)",
        };
        parts.push(format!("{input} + {output} tokens{estimated}"));
    }
    if let Some(cost) = end.usage.cost {
        parts.push(format!("cost {cost}"));
    }
    parts.push(end.elapsed.to_string());
    parts.join(" · ")
}
