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
pub(super) struct Running<'p> {
    work: Work<'p>,
    panicked: Panicked,
}

/// The reply of an operation whose part panicked with this text.
pub(super) type Panicked = fn(&str) -> Reply;

/// The work of an operation.
pub(super) enum Work<'p> {
    /// It needed no waiting.
    Ready(Reply),
    /// A model; the agent is written into its answer, and gone with it.
    Model(BoxFuture<'p, Result<AssistantMessage, ModelFault>>, Option<AgentId>),
    /// A tool that cannot fault.
    Tool(BoxFuture<'p, ToolOutcome>),
    /// The session or the checkpoint store. Never given up: what it does then is not known, and what is stored twice
    /// is in the conversation twice.
    Store(BoxFuture<'p, Reply>),
    /// Anything else.
    Other(BoxFuture<'p, Reply>),
}

impl<'p> Running<'p> {
    /// Starts the work of an operation; `None` when the part is not there that performs it. A panic while it is
    /// started counts like one while it runs.
    pub(super) fn start(panicked: Panicked, start: impl FnOnce() -> Option<Work<'p>>) -> Self {
        let work = match catch_unwind(AssertUnwindSafe(start)) {
            Ok(Some(work)) => work,
            Ok(None) => Work::Ready(panicked("it is not there")),
            Err(panic) => Work::Ready(panicked(&panic_text(&*panic))),
        };
        Self { work, panicked }
    }

    /// The reply, when it needed no waiting.
    pub(super) fn into_ready(self) -> Result<Reply, Self> {
        if let Work::Ready(reply) = self.work { Ok(reply) } else { Err(self) }
    }

    /// Whether it stores something.
    pub(super) fn is_store(&self) -> bool {
        matches!(self.work, Work::Store(_))
    }

    /// The agent whose model this is.
    pub(super) fn model_of(&self) -> Option<&AgentId> {
        if let Work::Model(_, agent) = &self.work { agent.as_ref() } else { None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        catch_unwind(AssertUnwindSafe(|| self.work.poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready((self.panicked)(&panic_text(&*panic))))
    }
}

impl Work<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        match self {
            Self::Ready(reply) => Poll::Ready(std::mem::replace(reply, Reply::Interrupted { partial: None })),
            Self::Model(model, agent) => model.as_mut().poll(cx).map(|answer| answered(answer, agent.take())),
            Self::Tool(tool) => tool.as_mut().poll(cx).map(|outcome| Reply::Tool(Ok(Box::new(outcome)))),
            Self::Store(other) | Self::Other(other) => Pin::new(other).poll(cx),
        }
    }
}

/// What a model answered, in the name of its agent.
fn answered(answer: Result<AssistantMessage, ModelFault>, agent: Option<AgentId>) -> Reply {
    match answer {
        Ok(mut message) => {
            message.agent = message.agent.or(agent);
            Reply::Model(Ok(Arc::new(Message::Assistant(message))))
        }
        Err(mut fault) => {
            if let Some(partial) = &mut fault.partial {
                partial.agent = partial.agent.take().or(agent);
            }
            Reply::Model(Err(Box::new(fault)))
        }
    }
}

/// What it means that the part panics which performs an operation.
pub(super) fn panicked_by(op: &Op) -> Panicked {
    fn fault(part: FaultSource, text: &str) -> Fault {
        Fault::new(part, "panicked", format!("panicked: {text}"))
    }
    match op {
        Op::Prepare { .. } => |text| Reply::Prepared(Err(fault(FaultSource::Agent, text))),
        Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => {
            |text| Reply::Noted(Err(fault(FaultSource::Layer, text)))
        }
        Op::Append { .. } => |text| Reply::Appended(Err(fault(FaultSource::Layer, text))),
        Op::Recall { .. } => |text| Reply::Recalled(Err(fault(FaultSource::Layer, text))),
        Op::Compact { .. } => |text| Reply::Compacted(Err(fault(FaultSource::Compactor, text))),
        Op::Model { .. } => |text| {
            let text = format!("the model panicked: {text}");
            Reply::Model(Err(Box::new(ModelFault::new(ModelFaultCode::Unknown, text))))
        },
        Op::AfterModel { .. } => |text| Reply::AfterModel(Err(fault(FaultSource::Layer, text))),
        Op::Arguments { .. } => |text| {
            let text = format!("they could not be checked ({text})");
            Reply::Arguments(Err(Box::new(ArgumentFault::new("", text))))
        },
        Op::Gate { .. } => |text| {
            let answer = Err(fault(FaultSource::Gate, text));
            Reply::Gate(Box::new(Answered { answer, took: Millis(0) }))
        },
        Op::Check { .. } => |text| {
            let answer = Err(fault(FaultSource::Guardrail, text));
            Reply::Check(Box::new(Answered { answer, took: Millis(0) }))
        },
        Op::Approve { .. } => {
            |text| Reply::Approval(Decision::Denied { reason: format!("the approver failed ({text})") })
        }
        Op::NoteApproval { .. } => |text| Reply::ApprovalNoted(Err(fault(FaultSource::Approver, text))),
        Op::Tool { .. } => |text| {
            let text = format!("the tool panicked: {text}");
            Reply::Tool(Err(Fault::new(FaultSource::Tool, "tool_panicked", text)))
        },
        Op::Drain { .. } => |_| Reply::Drained(Vec::new()),
        Op::Facts { .. } => |text| Reply::Facts(Err(fault(FaultSource::Facts, text))),
        Op::Store { .. } => store_panicked,
        Op::Save { .. } => |text| {
            let text = format!("the checkpoint store panicked: {text}");
            Reply::Saved(Err(Fault::new(FaultSource::Checkpoints, "panicked", text)))
        },
    }
}

pub(super) fn store_panicked(text: &str) -> Reply {
    Reply::Stored(Err(format!("the session panicked: {text}")))
}
