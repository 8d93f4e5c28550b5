//! The events of Claude Code (`--output-format stream-json`).

use crate::seam::piece_at;
use harness_core::message::Usage;
use harness_core::{Json, JsonObject};

use super::output::{AgentOutput, cost, event_of, may_work_later, note};
use crate::execution::{ExecutionError, ExecutionSink};
use crate::local::output::{OutputReader, ParsedOutput, Reading};

pub(super) struct Claude {
    told: AgentOutput,
    /// Whether the text of the next message was already sent as deltas.
    streamed: bool,
    /// Whether its reasoning was already sent as deltas.
    thought: bool,
    /// The last event of a run.
    result: Option<JsonObject>,
    refused: Option<ExecutionError>,
}

impl Claude {
    pub(super) fn new(told: AgentOutput) -> Self {
        Self { told, streamed: false, thought: false, result: None, refused: None }
    }

    fn system(&mut self, event: &JsonObject, line: &str, sink: &dyn ExecutionSink) -> Reading {
        match event.text("subtype").as_deref() {
            Some("init") => {
                self.told.session.id = event.text("session_id").unwrap_or_default();
                self.told.fact("model", event.get("model").cloned());
                self.told.fact("version", event.get("claude_code_version").cloned());
            }
            Some("status") => {}
            Some("api_retry") => return self.retry(event, sink),
            _ => note(line, sink),
        }
        Reading::GoOn
    }

    /// Handles a retry of its provider request. If the API key was rejected, further attempts are
    /// useless, and would continue for minutes.
    fn retry(&mut self, event: &JsonObject, sink: &dyn ExecutionSink) -> Reading {
        let (status, why) = (event.to("error_status"), event.text("error").unwrap_or_default());
        let shown = status.map_or_else(|| why.clone(), |status| format!("{why}, HTTP status {status}"));
        note(&format!("its provider is called again ({shown})"), sink);
        self.told.fact("lastRetry", Some(Json::string(&shown)));
        if !matches!(status, Some(401 | 403)) {
            return Reading::GoOn;
        }
        let told = format!("its provider refuses its key ({shown}); check it, or log in with `claude`");
        self.refused = Some(self.told.failure(&told, Some(false)));
        Reading::Enough
    }

    fn piece(&mut self, event: &JsonObject, sink: &dyn ExecutionSink) {
        let inner = event.object("event").unwrap_or_default();
        let delta = inner.object("delta").unwrap_or_default();
        match (inner.text("type").as_deref(), delta.text("type").as_deref()) {
            (Some("message_start"), _) => self.told.begin_message(sink),
            (_, Some("text_delta")) => {
                self.streamed = true;
                self.told.say(piece_at(&delta, "text"), sink);
            }
            (_, Some("thinking_delta")) => {
                self.thought = true;
                self.told.think(piece_at(&delta, "thinking"), sink);
            }
            _ => {}
        }
    }

    fn message(&mut self, event: &JsonObject, of_a_subagent: bool, sink: &dyn ExecutionSink) {
        for block in
            event.object("message").unwrap_or_default().to::<Vec<Json>>("content").unwrap_or_default()
        {
            let Some(block) = JsonObject::of(&block) else { continue };
            match block.text("type").as_deref() {
                Some("text") if !of_a_subagent => self.whole_text(&block, sink),
                Some("thinking") if !of_a_subagent => self.whole_thought(&block, sink),
                Some("tool_use") => {
                    let input = block.get("input").cloned().unwrap_or_else(Json::empty_object);
                    let (id, name) = (block.text("id"), block.text("name"));
                    self.told.call(&id.unwrap_or_default(), &name.unwrap_or_default(), input, sink);
                }
                Some("tool_result") => {
                    let output = block.get("content").map(readable).unwrap_or_default();
                    let failed = block.to::<bool>("is_error").unwrap_or(false);
                    self.told.result(&block.text("tool_use_id").unwrap_or_default(), &output, failed, sink);
                }
                _ => {}
            }
        }
    }

    fn whole_text(&mut self, block: &JsonObject, sink: &dyn ExecutionSink) {
        if !std::mem::take(&mut self.streamed) {
            self.told.begin_message(sink);
            self.told.say(piece_at(block, "text"), sink);
        }
    }

    fn whole_thought(&mut self, block: &JsonObject, sink: &dyn ExecutionSink) {
        if !std::mem::take(&mut self.thought) {
            self.told.think(piece_at(block, "thinking"), sink);
        }
    }

    fn end(&mut self, result: JsonObject, sink: &dyn ExecutionSink) {
        if let Some(id) = result.text("session_id") {
            self.told.session.id = id;
        }
        let used = result.object("usage").unwrap_or_default();
        let mut usage = Usage::default();
        usage.input = used.to("input_tokens");
        usage.output = used.to("output_tokens");
        usage.cache_read = used.to("cache_read_input_tokens");
        usage.cache_write = used.to("cache_creation_input_tokens");
        usage.total_tokens = Some(usage.all_tokens());
        if usage.input.is_some() || usage.output.is_some() {
            let usage = match cost(result.get("total_cost_usd")) {
                Some(cost) => usage.with_cost(cost),
                None => usage,
            };
            self.told.uses(usage, sink);
        }
        for (name, key) in [("turns", "num_turns"), ("ended", "subtype"), ("stopReason", "stop_reason")] {
            self.told.fact(name, result.get(key).filter(|value| !value.is_null()).cloned());
        }
        let denied = result.to::<Vec<Json>>("permission_denials").filter(|denied| !denied.is_empty());
        self.told.fact("denied", denied.and_then(|denied| Json::of(&denied).ok()));
        self.result = Some(result);
    }
}

impl OutputReader for Claude {
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading {
        let Some(event) = event_of(line, sink) else { return Reading::GoOn };
        let of_a_subagent = event.text("parent_tool_use_id").is_some();
        match event.text("type").as_deref() {
            Some("system") => return self.system(&event, line, sink),
            Some("stream_event") if of_a_subagent => {}
            Some("stream_event") => self.piece(&event, sink),
            Some("assistant" | "user") => self.message(&event, of_a_subagent, sink),
            Some("result") => self.end(event, sink),
            _ => note(line, sink),
        }
        Reading::GoOn
    }

    fn finish(self: Box<Self>, ended_well: bool) -> Option<ParsedOutput> {
        let Some(result) = self.result else {
            let unfinished = ended_well && self.refused.is_none();
            return (!unfinished).then(|| self.told.parsed(None, self.refused));
        };
        let said = result.text("result");
        if result.to::<bool>("is_error") != Some(true) {
            return Some(self.told.parsed(said, None));
        }
        let errors = result.to::<Vec<Json>>("errors").unwrap_or_default();
        let errors: Vec<_> = errors.iter().map(readable).collect();
        let words = said.filter(|said| !said.is_empty()).unwrap_or_else(|| errors.join("; "));
        let words = if words.is_empty() { result.text("subtype").unwrap_or_default() } else { words };
        let failure = self.told.failure(&words, result.to("api_error_status").map(may_work_later));
        Some(self.told.parsed(None, Some(failure)))
    }
}

/// A content that is a text or a list of blocks, as text.
fn readable(content: &Json) -> String {
    if let Some(text) = content.lenient_text() {
        return text;
    }
    let Ok(blocks) = content.to::<Vec<Json>>() else { return content.text().to_owned() };
    let texts = blocks.iter().filter_map(|block| JsonObject::of(block)?.text("text"));
    texts.collect::<Vec<_>>().join("\n")
}
