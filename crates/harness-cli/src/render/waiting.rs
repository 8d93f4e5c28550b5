//! Line of what a run waits for.

use harness::core::event::{Event, EventKind};
use harness::core::{CallId, ToolName};

use super::harmless::one_line;

/// Maximum number of tracked running tools.
const OPEN_TOOLS: usize = 256;

/// Reason why a run waits: a model, tools, or something else.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    model: Option<String>,
    tools: Vec<(CallId, ToolName)>,
}

impl Waiting {
    /// Handles an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others neither start nor end a wait")]
    pub(super) fn see(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ModelStepStarted { agent, model, .. } => {
                let name = model.as_ref().map_or(agent.as_str(), |model| model.as_str());
                self.model = Some(one_line(name));
            }
            EventKind::ModelStepFinished { .. } | EventKind::ModelStepFailed { .. } => self.model = None,
            EventKind::ToolStarted { call } if self.tools.len() < OPEN_TOOLS => {
                self.tools.push((call.id.clone(), call.name.clone()));
            }
            EventKind::ToolFinished { call, .. } | EventKind::ToolFailed { call, .. } => {
                self.tools.retain(|(id, _)| *id != call.id);
            }
            EventKind::TurnFinished { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// The line after `seconds` without output: `… find_order, track_parcel · 3 s`.
    pub(super) fn line(&self, seconds: u32) -> String {
        let what = match (self.tools.as_slice(), &self.model) {
            ([], Some(model)) => model.clone(),
            ([], None) => "working".to_owned(),
            (tools, _) => {
                let names: Vec<_> = tools.iter().take(3).map(|(_, name)| one_line(name.as_str())).collect();
                let more = tools.len().saturating_sub(names.len());
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                names.join(", ") + &more
            }
        };
        format!("… {what} · {seconds} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(events: &[&str], expected: &str) {
        let mut waiting = Waiting::default();
        for fields in events {
            let line = format!(r#"{{"seq":0,"at":0,"turn":1,"iteration":1,{fields},"origin":{{}}}}"#);
            waiting.see(&serde_json::from_str(&line).unwrap());
        }
        assert_eq!(waiting.line(3), expected);
    }

    fn tool(kind: &str, id: u32) -> String {
        let outcome = r#""outcome":{"status":"success"},"durationMs":1,"#;
        let outcome = if kind == "tool_finished" { outcome } else { "" };
        format!(r#"{outcome}"type":"{kind}","call":{{"id":"c{id}","name":"find","arguments":{{}}}}"#)
    }

    #[test]
    fn line_names_the_model_or_the_running_tools() {
        check(&[], "… working · 3 s");
        let model = r#""type":"model_step_started","agent":"desk","model":"m""#;
        check(&[model], "… m · 3 s");
        check(&[r#""type":"model_step_started","agent":"desk""#], "… desk · 3 s");
        let started: Vec<String> = (1..=5).map(|id| tool("tool_started", id)).collect();
        let started: Vec<&str> = started.iter().map(String::as_str).collect();
        check(&[&[model], &started[..1]].concat(), "… find · 3 s");
        check(&started, "… find, find, find and 2 more · 3 s");
        check(&[started[0], &tool("tool_finished", 1)], "… working · 3 s");
    }
}
