//! What a harness keeps from one run to the next.

use std::sync::Arc;

use harness_core::AgentId;
use harness_core::message::Message;
use harness_core::port::{DynSession, OpenCall, RetryClass, SessionError, TornTail};
use harness_core::run::Run;
use harness_core::transcript::{Prefix, Transcript};
use serde::Deserialize;

/// A thread between, and during, its runs.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// What the last run left; `None` before the first, and when what is in memory is not what the session
    /// holds.
    idle: Option<Idle>,
    /// The run that is on; it stays here when its future is dropped.
    running: Option<Run>,
}

#[derive(Debug)]
struct Idle {
    log: Transcript,
    open_calls: Vec<OpenCall>,
}

/// A transcript that a run can begin with.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) log: Transcript,
    pub(crate) open_calls: Vec<OpenCall>,
    /// The agent that is active at its end.
    pub(crate) agent: Option<AgentId>,
    /// The user's last message.
    pub(crate) last_said: String,
    /// An unfinished line that the session left out.
    pub(crate) torn_tail: Option<TornTail>,
}

impl Thread {
    /// The transcript, from memory or from the session.
    pub(crate) async fn open(&mut self, session: Option<&dyn DynSession>) -> Result<Opened, SessionError> {
        let mut torn_tail = None;
        let dropped = self.running.take();
        let Idle { log, open_calls } = match (self.idle.take(), session, dropped) {
            (Some(idle), _, _) => idle,
            (None, Some(session), _) => {
                let loaded = session.load_boxed().await?;
                torn_tail = loaded.torn_tail;
                Idle { log: loaded.messages.into_iter().collect(), open_calls: loaded.open_calls }
            }
            (None, None, Some(run)) => {
                let log = run.into_log();
                let open_calls = unanswered(&log);
                Idle { log, open_calls }
            }
            (None, None, None) => Idle { log: Transcript::default(), open_calls: Vec::new() },
        };
        let agent = active_agent(&log);
        let last_said = log.iter().rev().find(|message| matches!(&***message, Message::User(_)));
        let last_said = last_said.map(|message| message.joined_text()).unwrap_or_default();
        Ok(Opened { log, open_calls, agent, last_said, torn_tail })
    }

    /// A run that could not begin.
    pub(crate) fn put_back(&mut self, log: Transcript, open_calls: Vec<OpenCall>) {
        self.idle = Some(Idle { log, open_calls });
    }

    /// A run begins.
    pub(crate) fn begin(&mut self, run: Run) -> &mut Run {
        self.running.insert(run)
    }

    /// A run ended; `stored` says whether the session holds all of it. If not, the session counts, and the
    /// next run reads it again.
    pub(crate) fn finish(&mut self, stored: bool) -> Prefix {
        let log = self.running.take().map(Run::into_log).unwrap_or_default();
        let transcript = log.prefix();
        if stored {
            self.put_back(log, Vec::new());
        }
        transcript
    }
}

/// Calls of a run that was dropped: each may have begun.
fn unanswered(log: &Transcript) -> Vec<OpenCall> {
    let mut answered = 0;
    for message in log.iter().rev() {
        match &**message {
            Message::ToolResult(_) => answered += 1,
            Message::Assistant(answer) => {
                let open = answer.tool_calls().skip(answered);
                return open
                    .map(|call| OpenCall::new(call.id.clone(), 1, RetryClass::Unsafe, None))
                    .collect();
            }
            Message::System(_) | Message::User(_) | Message::Custom(_) | _ => return Vec::new(),
        }
    }
    Vec::new()
}

/// The agent to which the last handoff went, or else the one that spoke last.
fn active_agent(log: &Transcript) -> Option<AgentId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Moved {
        handoff_to: AgentId,
        accepted: bool,
    }
    log.iter().rev().find_map(|message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => {
            let moved: Moved = result.structured.as_ref()?.to().ok()?;
            (moved.accepted && !result.is_error).then_some(moved.handoff_to)
        }
        Message::Assistant(answer) => answer.agent.clone(),
        Message::System(_) | Message::User(_) | Message::Custom(_) | _ => None,
    })
}
