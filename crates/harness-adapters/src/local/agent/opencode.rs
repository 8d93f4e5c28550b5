//! The events of opencode (`opencode run --format json`).

use harness_core::Json;
use harness_core::message::{Cost, Usage};

use super::output::{AgentOutput, cost, event_of, may_work_later, note, plus};
use crate::execution::{ExecutionError, ExecutionSink};
use crate::local::fields::Fields;
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

    fn tool(&mut self, part: &Fields, sink: &dyn ExecutionSink) {
        let (id, name) = (part.text("callID").unwrap_or_default(), part.text("tool").unwrap_or_default());
        let state = part.below(&["state"]);
        let input = state.json("input").cloned().unwrap_or_else(Json::empty_object);
        self.told.call(&id, &name, input, sink);
        let exit = state.below(&["metadata"]).json("exit").and_then(|code| code.to::<i64>().ok());
        let failed = exit.is_some_and(|code| code != 0) || state.text("status").as_deref() == Some("error");
        let output = state.text("output").or_else(|| state.text("error")).unwrap_or_default();
        self.told.result(&id, &output, failed, sink);
    }

    fn step(&mut self, part: &Fields, sink: &dyn ExecutionSink) {
        self.reason = Some(part.text("reason").unwrap_or_default());
        // A step that ends after an error has got over it.
        self.failed = None;
        let tokens = part.below(&["tokens"]);
        let cache = tokens.below(&["cache"]);
        let mut usage = Usage::default();
        usage.input = tokens.number("input");
        usage.output = tokens.number("output");
        usage.reasoning = tokens.number("reasoning");
        (usage.cache_read, usage.cache_write) = (cache.number("read"), cache.number("write"));
        usage.total_tokens = tokens.number("total").or(Some(usage.all_tokens()));
        self.used = plus(&self.used, &usage);
        if let Some(more) = cost(part.json("cost")) {
            self.cost = Some(self.cost.unwrap_or_default().plus(more));
        }
        let sum = match self.cost {
            Some(cost) => self.used.clone().with_cost(cost),
            None => self.used.clone(),
        };
        self.told.uses(sum, sink);
    }

    fn error(&mut self, event: &Fields) {
        let error = event.below(&["error"]);
        let data = error.below(&["data"]);
        let words = data.text("message").or_else(|| error.text("message")).or_else(|| error.text("name"));
        let retryable = data.flag("isRetryable").or(data.number("statusCode").map(may_work_later));
        self.failed = Some(self.told.failure(&words.unwrap_or_default(), retryable));
    }
}

impl OutputReader for OpenCode {
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading {
        let Some(event) = event_of(line, sink) else { return Reading::GoOn };
        if let Some(id) = event.text("sessionID") {
            self.told.session.id = id;
        }
        let part = event.below(&["part"]);
        match event.text("type").as_deref() {
            Some("step_start") => {}
            Some("text") => {
                self.told.begin_message(sink);
                self.told.say(part.piece("text"), sink);
            }
            Some("reasoning") => self.told.think(part.piece("text"), sink),
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
