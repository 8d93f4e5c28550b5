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
use super::waiting::Waiting;
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
    /// Reason of the wait, on a terminal.
    waiting: Option<Waiting>,
    /// Whether a line in place is shown below everything else.
    status_shown: bool,
    /// Whether only the answer and problems are shown.
    quiet: bool,
}

/// Maximum number of tracked running tools of a backend.
const OPEN_TOOLS: usize = 256;

/// Maximum number of displayed lines that a failed tool wrote to standard error.
const STDERR_LINES: usize = 3;

impl<A: Write, P: Write> Human<A, P> {
    pub(crate) fn new(answer: A, progress: P, on: AnswerOn) -> Self {
        Self {
            answer: Answer::new(answer, on),
            progress,
            handed_off: None,
            backend_tools: Vec::new(),
            status: None,
            waiting: None,
            status_shown: false,
            quiet: false,
        }
    }

    /// Adds a progress line that is updated in place, which requires a terminal.
    pub(crate) fn with_status(self, status: Option<Status>) -> Self {
        Self { status, ..self }
    }

    /// Adds a line, updated in place, of what the run waits for. Requires a terminal.
    pub(crate) fn with_waiting(self, is_shown: bool) -> Self {
        Self { waiting: is_shown.then(Waiting::default), ..self }
    }

    /// Shows only the answer and problems.
    pub(crate) fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Shows the progress, unless text is being shown.
    fn show_status(&mut self) {
        if let Some(status) = &self.status {
            self.show_in_place(&status.line());
        }
    }

    /// Shows a line that the next output replaces, unless text is being shown.
    fn show_in_place(&mut self, line: &str) {
        if self.answer.is_inside_line() {
            return;
        }
        self.hide_status();
        let _ = write!(self.progress, "{DIM}{line}{DIM:#}");
        let _ = self.progress.flush();
        self.status_shown = true;
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
        if self.quiet { Ok(()) } else { self.line(style, mark, text) }
    }

    /// Writes a line, even when quiet.
    fn line(&mut self, style: Paint, mark: &str, text: &str) -> io::Result<()> {
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
            Some((style, mark, text)) => self.note(style, mark, &(text + &stderr_of(&event.kind))),
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
                if let Some(waiting) = &mut self.waiting {
                    waiting.see(event);
                }
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

    fn wait(&mut self, seconds: u32) -> io::Result<()> {
        let Some(waiting) = &self.waiting else { return Ok(()) };
        let line = waiting.line(seconds);
        let status = self.status.as_ref().filter(|status| status.has_begun()).map(Status::line);
        self.show_in_place(&status.map_or(line.clone(), |status| format!("{status} {line}")));
        Ok(())
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
            self.line(BAD, "!", &why)?;
        }
        if let Some(fault) = &end.persist_failed {
            self.line(BAD, "!", &format!("session not saved completely: {}", one_line(fault)))?;
        }
        let style = match end.outcome() {
            Outcome::Completed => GOOD,
            Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred => NOTE,
            Outcome::Failed => BAD,
        };
        let (outcome, summary) = (end.outcome(), summary(end));
        if outcome == Outcome::Completed {
            return self.note(style, outcome.as_str(), &summary);
        }
        self.line(style, outcome.as_str(), &summary)
    }
}

/// The last lines that a failed tool wrote to standard error, one per line.
fn stderr_of(kind: &EventKind) -> String {
    let EventKind::ToolFailed { outcome, .. } = kind else { return String::new() };
    let mut texts = outcome.content.iter().filter_map(|block| block.as_text());
    let Some((_, stderr)) = texts.next_back().and_then(|text| text.rsplit_once("\nstderr:\n")) else {
        return String::new();
    };
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(STDERR_LINES));
    last.fold(String::new(), |text, line| text + &format!("\n  {DIM}{}{DIM:#}", one_line(line)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(fields: &str) -> Seen {
        let line = format!(r#"{{"seq":0,"at":0,"turn":1,"iteration":1,{fields},"origin":{{}}}}"#);
        Seen::Event(serde_json::from_str(&line).unwrap())
    }

    #[test]
    fn waiting_is_one_line_in_place() {
        let mut progress = Vec::new();
        let mut human = Human::new(Vec::new(), &mut progress, AnswerOn::Pipe).with_waiting(true);
        human.see(&event(r#""type":"model_step_started","agent":"desk","model":"m""#)).unwrap();
        human.wait(1).unwrap();
        human.wait(2).unwrap();
        human.see(&event(r#""type":"persist_failed","message":"full""#)).unwrap();
        drop(human);
        let erase = erase_line();
        let expected = format!(
            "{DIM}… m · 1 s{DIM:#}{erase}{DIM}… m · 2 s{DIM:#}{erase}{BAD}!{BAD:#} session not saved: full\n"
        );
        assert_eq!(String::from_utf8(progress).unwrap(), expected);
    }

    #[test]
    fn nothing_waits_without_a_terminal() {
        let mut progress = Vec::new();
        Human::new(Vec::new(), &mut progress, AnswerOn::Pipe).wait(9).unwrap();
        assert_eq!(progress, b"");
    }
}
