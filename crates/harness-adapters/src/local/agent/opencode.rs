//! The events of opencode (`opencode run --format json`).

use crate::seam::piece_at;
use harness_core::message::{Cost, Usage};
use harness_core::{Json, JsonObject};

use super::output::{AgentOutput, cost, event_of, may_work_later, note, plus};
use crate::execution::{ExecutionError, ExecutionSink};
use crate::local::output::{OutputReader, ParsedOutput, Reading};

pub(super) struct OpenCode {
    told: AgentOutput,
    /// The sum over all steps.
    used: Usage,
    cost: Option<Cost>,
    /// Finish reason of the last step; the program does not report its own end.
    reason: Option<String>,
    failed: Option<ExecutionError>,
}

impl OpenCode {
    pub(super) fn new(told: AgentOutput) -> Self {
        Self { told, used: Usage::default(), cost: None, reason: None, failed: None }
    }

    fn tool(&mut self, part: &JsonObject, sink: &dyn ExecutionSink) {
        let (id, name) = (part.text("callID").unwrap_or_default(), part.text("tool").unwrap_or_default());
        let state = part.object("state").unwrap_or_default();
        let input = state.get("input").cloned().unwrap_or_else(Json::empty_object);
        self.told.call(&id, &name, input, sink);
        let exit =
            state.object("metadata").unwrap_or_default().get("exit").and_then(|code| code.to::<i64>().ok());
        let failed = exit.is_some_and(|code| code != 0) || state.text("status").as_deref() == Some("error");
        let output = state.text("output").or_else(|| state.text("error")).unwrap_or_default();
        self.told.result(&id, &output, failed, sink);
    }

    fn step(&mut self, part: &JsonObject, sink: &dyn ExecutionSink) {
        self.reason = Some(part.text("reason").unwrap_or_default());
        // A step that ends after an error has got over it.
        self.failed = None;
        let tokens = part.object("tokens").unwrap_or_default();
        let cache = tokens.object("cache").unwrap_or_default();
        let mut usage = Usage::default();
        usage.input = tokens.to("input");
        usage.output = tokens.to("output");
        usage.reasoning = tokens.to("reasoning");
        (usage.cache_read, usage.cache_write) = (cache.to("read"), cache.to("write"));
        usage.total_tokens = tokens.to("total").or(Some(usage.all_tokens()));
        self.used = plus(&self.used, &usage);
        if let Some(more) = cost(part.get("cost")) {
            self.cost = Some(self.cost.unwrap_or_default().plus(more));
        }
        let sum = match self.cost {
            Some(cost) => self.used.clone().with_cost(cost),
            None => self.used.clone(),
        };
        self.told.uses(sum, sink);
    }

    fn error(&mut self, event: &JsonObject) {
        let error = event.object("error").unwrap_or_default();
        let data = error.object("data").unwrap_or_default();
        let words = data.text("message").or_else(|| error.text("message")).or_else(|| error.text("name"));
        let retryable = data.to::<bool>("isRetryable").or(data.to("statusCode").map(may_work_later));
        self.failed = Some(self.told.failure(&words.unwrap_or_default(), retryable));
    }
}

impl OutputReader for OpenCode {
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading {
        let Some(event) = event_of(line, sink) else { return Reading::GoOn };
        if let Some(id) = event.text("sessionID") {
            self.told.session.id = id;
        }
        let part = event.object("part").unwrap_or_default();
        match event.text("type").as_deref() {
            Some("step_start") => {}
            Some("text") => {
                self.told.begin_message(sink);
                self.told.say(piece_at(&part, "text"), sink);
            }
            Some("reasoning") => self.told.think(piece_at(&part, "text"), sink),
            Some("tool_use") => self.tool(&part, sink),
            Some("step_finish") => self.step(&part, sink),
            Some("error") => self.error(&event),
            _ => note(line, sink),
        }
        Reading::GoOn
    }

    fn finish(mut self: Box<Self>, ended_well: bool) -> Option<ParsedOutput> {
        let no_end = self.reason.is_none() && self.failed.is_none();
        if no_end && ended_well {
            return None;
        }
        self.told.fact("stopReason", self.reason.as_deref().map(Json::string));
        Some(self.told.parsed(None, self.failed))
    }
}
