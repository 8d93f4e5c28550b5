//! What a script says, line by line.

use std::fmt;

use harness_core::CallId;
use harness_core::Millis;
use harness_core::decide::{CheckDecision, CheckVerdict, GateDecision, GateVerdict};
use harness_core::machine::{CallDecision, PortSet, Reply};
use harness_core::message::Message;
use harness_core::testing::Ran;
use harness_core::tool::ToolDef;
use harness_core::turn::TurnSpec;

/// A line of a script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script, `{text}`: {problem}")]
pub(crate) struct ScriptFault {
    /// The line, from 1.
    pub(crate) line: usize,
    /// What it says.
    pub(crate) text: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// A whole script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) spec: TurnSpec,
    pub(super) ports: PortSet,
    pub(super) tools: Vec<ToolDef>,
    pub(super) prompt: String,
    pub(super) lines: Vec<Line>,
}

/// A line that takes effect while the turn runs.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) says: Says,
    pub(super) used: bool,
}

impl Line {
    /// Whether it is an unused answer to `asked`.
    pub(super) fn answers(&self, asked: &Asked) -> bool {
        !self.used && matches!(&self.says, Says::Answer(to, _) if to == asked)
    }
}

#[derive(Debug)]
pub(super) enum Says {
    /// The answer to an operation, when the operation is asked for.
    Answer(Asked, Reply),
    Cancel,
    Steer(Message),
    Advance(Millis),
    Crash,
    /// Another turn, of the turn that ended: with a message, or going on where it stopped.
    Turn(Option<Message>),
    /// The same, with a decision about a pending call.
    Decide(CallDecision),
}

impl Says {
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Answer(..))
    }

    /// Whether it can happen now: another turn after the end, everything else before it.
    pub(super) fn fits(&self, ran: &Ran) -> bool {
        match ran {
            Ran::Waiting => !matches!(self, Self::Turn(_) | Self::Decide(_)),
            Ran::Ended(_) => matches!(self, Self::Turn(_) | Self::Decide(_)),
            _ => false,
        }
    }
}

/// Which operation a line answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Model,
    Tool(CallId),
    Gate(u32, CallId),
    Arguments(CallId),
    Approve(CallId),
    Check(u32),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("model"),
            Self::Tool(call) => write!(f, "tool #{call}"),
            Self::Gate(gate, call) => write!(f, "gate {gate} #{call}"),
            Self::Arguments(call) => write!(f, "arguments #{call}"),
            Self::Approve(call) => write!(f, "approve #{call}"),
            Self::Check(check) => write!(f, "check {check}"),
        }
    }
}

/// What a gate answers.
pub(super) fn gate_says(verdict: GateVerdict) -> Reply {
    Reply::Gate(Box::new(GateDecision::from(verdict).into()))
}

/// What a check answers.
pub(super) fn check_says(verdict: CheckVerdict) -> Reply {
    Reply::Check(Box::new(CheckDecision::from(verdict).into()))
}
