//! The events of the Gemini CLI (`--output-format stream-json`).

use crate::seam::piece_at;
use harness_core::message::Usage;
use harness_core::{Json, JsonObject};

use super::output::{AgentOutput, event_of, note};
use crate::execution::ExecutionSink;
use crate::local::output::{OutputReader, ParsedOutput, Reading};

pub(super) struct Gemini {
    told: AgentOutput,
    /// The last event of a run.
    result: Option<JsonObject>,
    /// Whether deltas of a message have arrived.
    writing: bool,
}

impl Gemini {
    pub(super) fn new(told: AgentOutput) -> Self {
        Self { told, result: None, writing: false }
    }

    fn message(&mut self, event: &JsonObject, sink: &dyn ExecutionSink) {
        if event.text("role").as_deref() != Some("assistant") {
            return;
        }
        let piece = event.to::<bool>("delta").unwrap_or(false);
        if !(piece && self.writing) {
            self.told.begin_message(sink);
        }
        self.writing = piece;
        self.told.say(piece_at(event, "content"), sink);
    }

    fn end(&mut self, result: JsonObject, sink: &dyn ExecutionSink) {
        let stats = result.object("stats").unwrap_or_default();
        let mut usage = Usage::default();
        usage.cache_read = stats.to("cached");
        let all = stats.to::<u64>("input_tokens");
        let uncached = all.map(|all| all.saturating_sub(usage.cache_read.unwrap_or(0)));
        usage.input = stats.to("input").or(uncached);
        usage.output = stats.to("output_tokens");
        usage.total_tokens = stats.to("total_tokens");
        if usage.all_tokens() > 0 {
            self.told.uses(usage, sink);
        }
        self.result = Some(result);
    }
}

impl OutputReader for Gemini {
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading {
        let Some(event) = event_of(line, sink) else { return Reading::GoOn };
        match event.text("type").as_deref() {
            Some("init") => {
                self.told.session.id = event.text("session_id").unwrap_or_default();
                self.told.fact("model", event.get("model").cloned());
            }
            Some("message") => self.message(&event, sink),
            Some("tool_use") => {
                self.writing = false;
                let input = event.get("parameters").cloned().unwrap_or_else(Json::empty_object);
                let (id, name) = (event.text("tool_id"), event.text("tool_name"));
                self.told.call(&id.unwrap_or_default(), &name.unwrap_or_default(), input, sink);
            }
            Some("tool_result") => {
                self.writing = false;
                let error = event.object("error").unwrap_or_default().text("message");
                let failed = error.is_some() || event.text("status").as_deref() != Some("success");
                let output = event.text("output").filter(|output| !output.is_empty()).or(error);
                let id = event.text("tool_id").unwrap_or_default();
                self.told.result(&id, &output.unwrap_or_default(), failed, sink);
            }
            Some("result") => self.end(event, sink),
            _ => note(line, sink),
        }
        Reading::GoOn
    }

    fn finish(self: Box<Self>, ended_well: bool) -> Option<ParsedOutput> {
        let Some(result) = self.result else {
            return (!ended_well).then(|| self.told.parsed(None, None));
        };
        if result.text("status").as_deref() == Some("success") {
            return Some(self.told.parsed(None, None));
        }
        let words = result.object("error").unwrap_or_default().text("message").unwrap_or_default();
        let failure = self.told.failure(&words, None);
        Some(self.told.parsed(None, Some(failure)))
    }
}
