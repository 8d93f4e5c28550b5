//! Operations that are being performed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::decide::Answered;
use crate::ids::AgentId;
use crate::machine::{Op, Reply};
use crate::message::{AssistantMessage, Message};
use crate::outcome::{Fault, FaultSource};
use crate::panics::panic_text;
use crate::port::{BoxFuture, Decision, ModelFault, ModelFaultCode};
use crate::time::Millis;
use crate::tool::{ArgumentFault, ToolOutcome};

/// An operation that is being performed.
pub(super) enum Running<'p> {
    /// It needed no waiting.
    Ready(Reply),
    /// A model; the agent is written into its answer, and gone with it.
    Model(BoxFuture<'p, Result<AssistantMessage, ModelFault>>, Option<AgentId>),
    /// A tool that cannot fault.
    Tool(BoxFuture<'p, ToolOutcome>),
    /// The session or the checkpoint store, and what a panic of it means. Never given up: what it does then is not
    /// known, and what is stored twice is in the conversation twice.
    Store(BoxFuture<'p, Reply>, fn(String) -> Reply),
    /// Anything else, and what a panic of it means.
    Other(BoxFuture<'p, Reply>, fn(String) -> Reply),
}

impl Running<'_> {
    /// The agent whose model this is.
    pub(super) fn model_of(&self) -> Option<&AgentId> {
        if let Self::Model(_, agent) = self { agent.as_ref() } else { None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        match catch_unwind(AssertUnwindSafe(|| self.poll_inner(cx))) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(self.panicked(panic_text(&*panic))),
        }
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        match self {
            Self::Ready(reply) => Poll::Ready(std::mem::replace(reply, Reply::Interrupted { partial: None })),
            Self::Model(model, agent) => match model.as_mut().poll(cx) {
                Poll::Ready(Ok(message)) => Poll::Ready(answered(message, agent.take())),
                Poll::Ready(Err(fault)) => Poll::Ready(broke_off(fault, agent.take())),
                Poll::Pending => Poll::Pending,
            },
            Self::Tool(tool) => tool.as_mut().poll(cx).map(|outcome| Reply::Tool(Ok(Box::new(outcome)))),
            Self::Store(other, _) | Self::Other(other, _) => Pin::new(other).poll(cx),
        }
    }

    fn panicked(&self, text: String) -> Reply {
        match self {
            Self::Ready(_) => Reply::Interrupted { partial: None },
            Self::Model(..) => model_panicked(text),
            Self::Tool(_) => tool_panicked(text),
            Self::Store(_, panicked) | Self::Other(_, panicked) => panicked(text),
        }
    }
}

fn answered(mut message: AssistantMessage, agent: Option<AgentId>) -> Reply {
    if message.agent.is_none() {
        message.agent = agent;
    }
    Reply::Model(Ok(Arc::new(Message::Assistant(message))))
}

fn broke_off(mut fault: ModelFault, agent: Option<AgentId>) -> Reply {
    if let Some(partial) = fault.partial.as_mut().filter(|partial| partial.agent.is_none()) {
        partial.agent = agent;
    }
    Reply::Model(Err(Box::new(fault)))
}

fn fault(part: FaultSource, text: &str) -> Fault {
    Fault::new(part, "panicked", format!("panicked: {text}"))
}

fn model_panicked(text: String) -> Reply {
    Reply::Model(Err(Box::new(ModelFault::new(
        ModelFaultCode::Unknown,
        format!("the model panicked: {text}"),
    ))))
}

pub(super) fn tool_panicked(text: String) -> Reply {
    Reply::Tool(Err(Fault::new(FaultSource::Tool, "tool_panicked", format!("the tool panicked: {text}"))))
}

pub(super) fn prepare_panicked(text: String) -> Reply {
    Reply::Prepared(Err(fault(FaultSource::Agent, &text)))
}

fn note_layers_panicked(text: String) -> Reply {
    Reply::Noted(Err(fault(FaultSource::Layer, &text)))
}

fn append_panicked(text: String) -> Reply {
    Reply::Appended(Err(fault(FaultSource::Layer, &text)))
}

fn recall_panicked(text: String) -> Reply {
    Reply::Recalled(Err(fault(FaultSource::Layer, &text)))
}

fn compact_panicked(text: String) -> Reply {
    Reply::Compacted(Err(fault(FaultSource::Compactor, &text)))
}

fn after_model_panicked(text: String) -> Reply {
    Reply::AfterModel(Err(fault(FaultSource::Layer, &text)))
}

pub(super) fn gate_panicked(text: String) -> Reply {
    let answer = Err(fault(FaultSource::Gate, &text));
    Reply::Gate(Box::new(Answered { answer, took: Millis(0) }))
}

pub(super) fn check_panicked(text: String) -> Reply {
    let answer = Err(fault(FaultSource::Guardrail, &text));
    Reply::Check(Box::new(Answered { answer, took: Millis(0) }))
}

pub(super) fn approver_panicked(text: String) -> Reply {
    Reply::Approval(Decision::Denied { reason: format!("the approver failed ({text})") })
}

pub(super) fn note_panicked(text: String) -> Reply {
    Reply::ApprovalNoted(Err(fault(FaultSource::Approver, &text)))
}

pub(super) fn facts_panicked(text: String) -> Reply {
    Reply::Facts(Err(fault(FaultSource::Facts, &text)))
}

pub(super) fn store_panicked(text: String) -> Reply {
    Reply::Stored(Err(format!("the session panicked: {text}")))
}

pub(super) fn save_panicked(text: String) -> Reply {
    let text = format!("the checkpoint store panicked: {text}");
    Reply::Saved(Err(Fault::new(FaultSource::Checkpoints, "panicked", text)))
}

pub(super) fn panicked_by(op: &Op) -> fn(String) -> Reply {
    match op {
        Op::Prepare { .. } => prepare_panicked,
        Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => note_layers_panicked,
        Op::Append { .. } => append_panicked,
        Op::Recall { .. } => recall_panicked,
        Op::Compact { .. } => compact_panicked,
        Op::Model { .. } => model_panicked,
        Op::AfterModel { .. } => after_model_panicked,
        Op::Arguments { .. } => |text| {
            Reply::Arguments(Err(Box::new(ArgumentFault::new(
                "",
                format!("they could not be checked ({text})"),
            ))))
        },
        Op::Gate { .. } => gate_panicked,
        Op::Check { .. } => check_panicked,
        Op::Approve { .. } => approver_panicked,
        Op::NoteApproval { .. } => note_panicked,
        Op::Tool { .. } => tool_panicked,
        Op::Drain { .. } => |_| Reply::Drained(Vec::new()),
        Op::Facts { .. } => facts_panicked,
        Op::Store { .. } => store_panicked,
        Op::Save { .. } => save_panicked,
    }
}
