//! The events of Codex (`codex exec --json`).

use crate::seam::piece_at;
use harness_core::message::Usage;
use harness_core::{Json, JsonObject};

use super::output::{AgentOutput, event_of, may_work_later, note, since};
use crate::execution::ExecutionSink;
use crate::local::output::{OutputReader, ParsedOutput, Reading};

pub(super) struct Codex {
    told: AgentOutput,
    ended: bool,
    /// Error of the turn.
    failed: Option<String>,
    /// Last reported error; a turn may continue after one.
    error: Option<String>,
}

impl Codex {
    pub(super) fn new(told: AgentOutput) -> Self {
        Self { told, ended: false, failed: None, error: None }
    }

    fn item(&mut self, event: &JsonObject, line: &str, sink: &dyn ExecutionSink) {
        let item = event.object("item").unwrap_or_default();
        let over = event.text("type").as_deref() == Some("item.completed");
        let id = item.text("id").unwrap_or_default();
        match item.text("type").as_deref() {
            Some("agent_message") if over => {
                self.told.begin_message(sink);
                self.told.say(piece_at(&item, "text"), sink);
            }
            Some("reasoning") if over => {
                self.told.think(piece_at(&item, "text"), sink);
            }
            // Only a warning: the turn goes on.
            Some("error") => note(&item.text("message").unwrap_or_default(), sink),
            Some(name @ ("command_execution" | "file_change" | "mcp_tool_call" | "web_search")) => {
                self.tool(&id, name, &item, over, sink);
            }
            Some("agent_message" | "reasoning" | "todo_list") => {}
            _ => note(line, sink),
        }
    }

    fn tool(&mut self, id: &str, kind: &str, item: &JsonObject, over: bool, sink: &dyn ExecutionSink) {
        let key = match kind {
            "command_execution" => "command",
            "file_change" => "changes",
            "web_search" => "query",
            _ => "arguments",
        };
        let name = match (item.text("server"), item.text("tool")) {
            (Some(server), Some(tool)) => format!("{server}.{tool}"),
            _ => kind.to_owned(),
        };
        let input = item.get(key).cloned().unwrap_or_else(Json::null);
        let input = if key == "arguments" { input } else { Json::object([(key, input)]) };
        self.told.call(id, &name, input, sink);
        if !over {
            return;
        }
        let output = item
            .text("aggregated_output")
            .or_else(|| item.object("error").unwrap_or_default().text("message"))
            .or_else(|| Some(item.get("result")?.text().to_owned()))
            .unwrap_or_default();
        let failed = match item.get("exit_code").and_then(|code| code.to::<i64>().ok()) {
            Some(code) => code != 0,
            None => matches!(item.text("status").as_deref(), Some("failed" | "declined")),
        };
        self.told.result(id, &output, failed, sink);
    }

    /// Usage of the turn. Codex reports the sum of all turns of the thread, and cached tokens as a
    /// part of the input.
    fn usage(&mut self, event: &JsonObject, sink: &dyn ExecutionSink) {
        let used = event.object("usage").unwrap_or_default();
        let mut sum = Usage::default();
        sum.cache_read = used.to("cached_input_tokens");
        sum.cache_write = used.to("cache_write_input_tokens");
        let cached = sum.cache_read.unwrap_or(0).saturating_add(sum.cache_write.unwrap_or(0));
        sum.input = used.to::<u64>("input_tokens").map(|input| input.saturating_sub(cached));
        sum.output = used.to("output_tokens");
        sum.reasoning = used.to("reasoning_output_tokens");
        sum.total_tokens = Some(sum.all_tokens());
        if sum.input.is_none() && sum.output.is_none() {
            return;
        }
        let usage = self.told.session.used.as_ref().map_or_else(|| sum.clone(), |before| since(&sum, before));
        self.told.session.used = Some(sum);
        self.told.uses(usage, sink);
    }
}

impl OutputReader for Codex {
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading {
        let Some(event) = event_of(line, sink) else { return Reading::GoOn };
        match event.text("type").as_deref() {
            Some("thread.started") => {
                self.told.session.id = event.text("thread_id").unwrap_or_default();
            }
            Some("turn.started") => {}
            Some("item.started" | "item.updated" | "item.completed") => self.item(&event, line, sink),
            Some("turn.completed") => {
                self.ended = true;
                self.usage(&event, sink);
            }
            Some("turn.failed") => {
                self.failed =
                    Some(event.object("error").unwrap_or_default().text("message").unwrap_or_default());
            }
            // The turn may go on: it is asked again.
            Some("error") => {
                let message = event.text("message").unwrap_or_default();
                note(&message, sink);
                self.error = Some(message);
            }
            _ => note(line, sink),
        }
        Reading::GoOn
    }

    fn finish(self: Box<Self>, ended_well: bool) -> Option<ParsedOutput> {
        let Self { told, ended, failed, error } = *self;
        if ended && failed.is_none() {
            return Some(told.parsed(None, None));
        }
        let Some(words) = failed.filter(|words| !words.is_empty()).or(error) else {
            return (!ended_well).then(|| told.parsed(None, None));
        };
        let failure = told.failure(&words, status_in(&words).map(may_work_later));
        Some(told.parsed(None, Some(failure)))
    }
}

/// The HTTP status that a message of Codex speaks of.
fn status_in(words: &str) -> Option<u64> {
    words.split_once("status ")?.1.get(..3)?.parse().ok()
}
