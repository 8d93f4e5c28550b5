//! Reports of `/cost`, `/status` and `/queue`.

use harness::core::ThreadId;
use harness::runtime::Status;

use super::Desk;
use crate::chat::{attach, grants};

impl Desk {
    pub(super) fn tell_cost(&mut self) {
        let used = self.app.used().clone();
        if used.model_calls == 0 {
            return self.app.tell("no usage yet");
        }
        let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let cost =
            used.cost.map_or_else(|| "not reported by the provider".to_owned(), |cost| cost.to_string());
        self.app.tell(&format!(
            "model calls  {}\ntool calls   {}\ntokens       {} in, {} out\ncost         {cost}",
            used.model_calls,
            used.tool_calls,
            tokens(used.input_tokens),
            tokens(used.output_tokens),
        ));
    }

    pub(super) fn tell_status(&mut self) {
        let thread: &ThreadId = self.chat.thread.id();
        let doing = match self.chat.thread.status() {
            Status::Generating { .. } => "running",
            Status::AwaitingApproval { .. } => "awaiting approval",
            Status::Aborting { .. } => "stopping",
            Status::Compacting => "compacting",
            Status::Idle | _ => "idle",
        };
        let file = self.chat.file().map_or_else(|| "in memory".to_owned(), |file| self.shown(&file));
        let grants = grants::summary(&self.chat.standing);
        let text = format!(
            "conversation   {thread}, {doing}\nkept           {file}\nwaiting        {}\ngrants         {grants}",
            self.chat.thread.queue_len()
        );
        self.app.tell(&text);
    }

    pub(super) fn tell_queue(&mut self) {
        let queue = self.chat.thread.queue();
        if queue.is_empty() {
            return self.app.tell("no queued messages");
        }
        let lines = queue.iter().enumerate();
        let lines = lines
            .map(|(number, entry)| format!("{}  {}", number + 1, attach::shown(entry.message.content())));
        self.app.tell(&lines.collect::<Vec<_>>().join("\n"));
    }

    pub(super) fn drop_waiting(&mut self, number: usize) {
        let queue = self.chat.thread.queue();
        let Some(entry) = queue.get(number.saturating_sub(1)) else {
            return self.app.complain(&format!("no queued message {number}"));
        };
        match self.chat.thread.cancel(&entry.id) {
            Ok(_) => self.app.tell("removed from the queue"),
            Err(fault) => self.app.complain(&fault.to_string()),
        }
    }
}
