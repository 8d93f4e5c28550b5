//! The whole conversation: all messages, calls and results in full.

use std::collections::HashMap;
use std::sync::Arc;

use harness::core::message::{Block, Message, ToolCall, ToolResultMessage};
use harness::core::{CallId, Millis};

use super::calls::{Over, shown_call};
use super::talk::Talk;
use super::{App, room};
use crate::render::line::{Line, Styling};

impl App {
    /// The messages as a text with styles.
    pub(crate) fn transcript(&self, messages: &[Arc<Message>]) -> String {
        let styling = self.talk.styling();
        let mut talk = Talk::new(styling, room(self.columns));
        let mut calls: HashMap<&CallId, &ToolCall> = HashMap::new();
        for message in messages {
            match &**message {
                Message::User(user) => talk.whole_user(user),
                Message::Assistant(answer) => {
                    talk.markdown(&answer.joined_text());
                    calls.extend(answer.tool_calls().map(|call| (&call.id, &**call)));
                }
                Message::ToolResult(result) => talk.result(calls.remove(&result.tool_call_id), result),
                Message::System(_) | Message::Custom(_) | _ => {}
            }
        }
        let line = |line: &Line| match styling {
            Styling::Plain => line.plain() + "\n",
            Styling::Colour => line.to_ansi() + "\n",
        };
        talk.take_finished().iter().map(line).collect()
    }
}

impl Talk {
    fn result(&mut self, call: Option<&ToolCall>, result: &ToolResultMessage) {
        let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
        let arguments = call.map_or_else(String::new, |call| shown_call(call).1);
        self.whole_call(Over {
            name: result.tool_name.to_string(),
            arguments,
            output: texts.join("\n"),
            failed: result.is_error,
            took: result.duration_ms.map(Millis),
        });
    }
}
